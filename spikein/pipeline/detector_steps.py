"""Which steps each detector's evidence was made by, so that a run can say what a detector cost.

A step counts for a detector when its scores are drawn from it and nothing but detectors needs it:
passes of models, generated texts, shadow models with their streams. The arm's own steps (corpus,
examples, plan, training), its base model and its reported twins count for none.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from detect.detector_settings import needs_of, with_grids
from detect.evidence.needs import Role, Scored, evidence_inputs
from detect.scores_step import detectors_of
from inject.step import Step
from spikein.pipeline.build_graph import ArmNodes
from spikein.pipeline.graph import Graph
from spikein.pipeline.training import ModelNode
from spikein.pipeline.twin_models import RETRAINED


class ScoredModel(NamedTuple):
    """One model that detectors scored."""

    scored: Scored
    scores: Step


class DetectorSteps(NamedTuple):
    """What one detector's scores of one model are drawn from."""

    detector: str
    scores: Step
    evidence: tuple[Step, ...]
    """Inputs before what is made of them; steps that other detectors read, too, included."""


def scored_models(node: ArmNodes) -> Iterator[ScoredModel]:
    """Yield every model of an arm that is scored, with its scores."""
    yield ScoredModel(Scored(ModelNode(step=node.trained), "arm"), node.scores)
    if node.base is not None and node.base_scores is not None:
        yield ScoredModel(Scored(node.base, "base"), node.base_scores)
    for twin in node.reported:
        role: Role = "retrained" if twin.model == RETRAINED else "clean"
        yield ScoredModel(Scored(ModelNode(step=twin.twin.trained), role), twin.scores)
    for unlearned in node.unlearning.unlearned if node.unlearning else ():
        model = ModelNode(step=unlearned.trained)
        yield ScoredModel(Scored(model, "unlearned"), unlearned.scores)
    ends = {node.scores.digest, *([node.base_scores.digest] if node.base_scores else [])}
    for step, scores in node.checkpoints.items():
        if scores.digest not in ends:
            model = ModelNode(step=node.trained, checkpoint=step)
            yield ScoredModel(Scored(model, "arm"), scores)


def detector_steps(nodes: Iterable[ArmNodes]) -> list[DetectorSteps]:
    """Return what every detector's scores are drawn from; each step of scores once."""
    found: dict[tuple[str, str], DetectorSteps] = {}
    for node in nodes:
        given = _given(node)
        for scored, scores in scored_models(node):
            for setting in detectors_of(node.sources, scored):
                key = (scores.digest, setting.name)
                inputs, _ = evidence_inputs(needs_of(with_grids([setting])), node.sources, scored)
                before = found[key].evidence if key in found else ()
                more = Graph(goals=(*before, *inputs.values())).steps if inputs else ()
                evidence = tuple(step for step in more if step.digest not in given)
                found[key] = DetectorSteps(setting.name, scores, evidence)
    return list(found.values())


def _given(node: ArmNodes) -> set[str]:
    """Return the digests of the steps that the arm has whichever detectors are asked for."""
    goals = [node.trained, node.examples, node.audit, node.plan, node.corpus, node.tokenizer]
    if node.base is not None and node.base.step is not None:
        goals.append(node.base.step)
    for twin in (node.twins.clean, node.twins.retrained):
        goals += [] if twin is None else [twin.trained, twin.membership]
    goals += [one.trained for one in node.unlearning.unlearned] if node.unlearning else []
    return {step.digest for step in Graph(goals=tuple(goals)).steps}
