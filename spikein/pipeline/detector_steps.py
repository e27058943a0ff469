"""Which steps each detector's evidence was made by, so that a run can say what a detector cost.

A step counts for a detector when its scores are drawn from it and nothing but detectors needs it:
passes of models, generated texts, shadow models with their streams. The arm's own steps (corpus,
examples, plan, training), its base model and its reported twins count for none.
"""

from collections.abc import Iterable
from typing import NamedTuple

from detect.detector_settings import needs_of, with_grids
from detect.evidence.needs import evidence_inputs
from detect.scores_step import detectors_of
from inject.step import Step
from spikein.pipeline.arm_nodes import ArmNodes
from spikein.pipeline.graph import Graph
from spikein.pipeline.models import SHADOW


class DetectorSteps(NamedTuple):
    """What one detector's scores of one model are drawn from."""

    detector: str
    scores: Step
    evidence: tuple[Step, ...]
    """Inputs before what is made of them; steps that other detectors read, too, included."""


def detector_steps(nodes: Iterable[ArmNodes]) -> list[DetectorSteps]:
    """Return what every detector's scores are drawn from; each step of scores once."""
    found: dict[tuple[str, str], DetectorSteps] = {}
    for node in nodes:
        given = _given(node)
        for model in node.models:
            if model.scores is None:
                continue
            for setting in detectors_of(node.sources, model.scored):
                key = (model.scores.digest, setting.name)
                needs = needs_of(with_grids([setting]))
                inputs, _ = evidence_inputs(needs, node.sources, model.scored)
                before = found[key].evidence if key in found else ()
                more = Graph(goals=(*before, *inputs.values())).steps if inputs else ()
                evidence = tuple(step for step in more if step.digest not in given)
                found[key] = DetectorSteps(setting.name, model.scores, evidence)
    return list(found.values())


def _given(node: ArmNodes) -> set[str]:
    """Return the digests of the steps that the arm has whichever detectors are asked for."""
    goals = [node.trained, node.examples, node.audit, node.plan, node.corpus, node.tokenizer]
    if node.base is not None and node.base.node.step is not None:
        goals.append(node.base.node.step)
    goals += [twin.trained for twin in node.twins.models if twin.role != SHADOW]
    goals += [one.trained for one in node.unlearning.unlearned] if node.unlearning else []
    return {step.digest for step in Graph(goals=tuple(goals)).steps}
