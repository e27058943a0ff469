"""The steps of one arm, its models, and the steps behind each detector's evidence.

A step counts for a detector if its scores depend on it and only detectors need it: passes of
models, generated texts, shadow models with their streams. The arm's own steps (corpus, examples,
plan, training), its base model and its reported twins count for none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from analysis.dataset_detectors.detector import asked_dataset_detectors
from analysis.dataset_detectors.table import ORDERS, PARAPHRASES, REFERENCE, TARGET
from analysis.settings import AnalysisSettings
from detect.dataset_detectors.orders_step import orders_step
from detect.dataset_detectors.paraphrases_step import paraphrase_scores_step
from detect.detector_settings import needs_of, with_grids
from detect.evidence.needs import EvidenceSources, evidence_inputs
from detect.evidence.views import Reference, reference_model, statistics_step
from detect.scores_step import detectors_of
from detect.views import TEXT
from inject.errors import InputError
from inject.step import Step
from spikein.config.sweep import ArmExperiment
from spikein.pipeline.graph import Graph
from spikein.pipeline.models import SHADOW, Model
from spikein.pipeline.twin_models import TwinNodes
from spikein.pipeline.unlearning import UnlearningNodes
from train.models.model_node import ModelNode


@dataclass(frozen=True, kw_only=True)
class ArmNodes:
    """The steps of one arm."""

    arm: ArmExperiment
    tokenizer: Step
    corpus: Step
    contaminated: Model
    base: Model | None
    """Scored or not."""
    checkpoints: tuple[Model, ...]
    """The scored models of its training, from first to last; empty without scored checkpoints."""
    twins: TwinNodes
    """Models with the arm's settings that saw no members, or other members."""
    sources: EvidenceSources
    """The sources of its detectors' evidence."""
    answers: Mapping[str, Step]
    """The models' answers to the benchmarks' questions, by the names of
    `analysis.correction.question`; empty unless they are queried."""
    background: Mapping[str, Step]
    """Held-out background as the base and the trained model read it, `background-before` and
    `background-after`; empty unless it is measured."""
    further: dict[str, Step]
    """Inputs of dataset-level detectors on the trained model."""
    further_notes: tuple[str, ...]
    """Notes on skipped dataset-level detectors."""
    unlearning: UnlearningNodes | None
    """Unlearned models and their scores; None without the section `unlearning`."""

    @property
    def examples(self) -> Step:
        """The arm's pool."""
        return self.sources.examples

    @property
    def plan(self) -> Step:
        """The positions of copies in the arm's stream."""
        return self.contaminated.plan

    @property
    def audit(self) -> Step:
        """The audit of the arm's stream."""
        return self.contaminated.audit

    @property
    def trained(self) -> Step:
        """The training of the contaminated model."""
        return self.contaminated.trained

    @property
    def scores(self) -> Step | None:
        """The scores of the contaminated model."""
        return self.contaminated.scores

    @property
    def reported(self) -> tuple[Model, ...]:
        """The twins that are scored like the arm."""
        return tuple(twin for twin in self.twins.models if twin.scores is not None)

    @property
    def models(self) -> tuple[Model, ...]:
        """Every model of the arm once: its own, base, twins, unlearned, scored checkpoints."""
        unlearned = self.unlearning.unlearned if self.unlearning else ()
        main_models = (self.contaminated, self.base, *self.twins.models)
        present = [model for model in main_models if model is not None]
        scored_digests = {model.scores.digest for model in present if model.scores is not None}
        intermediate = [
            checkpoint
            for checkpoint in self.checkpoints
            if checkpoint.scores and checkpoint.scores.digest not in scored_digests
        ]
        return (*present, *unlearned, *intermediate)


def further_steps(
    model: ModelNode, sources: EvidenceSources, analysis: AnalysisSettings
) -> tuple[dict[str, Step], tuple[str, ...]]:
    """Return the inputs of dataset-level detectors on an arm's model, and notes on skipped ones.

    Raises:
        InputError: for an unknown detector, or a named one without its reference model.
    """
    steps: dict[str, Step] = {}
    notes = []
    detect, examples = sources.detect, sources.examples
    for detector in asked_dataset_detectors(analysis.dataset_detectors):
        if "orders" in detector.reads:
            steps[ORDERS] = orders_step(
                model,
                examples,
                detect,
                shards=analysis.shards,
                shuffles=analysis.shuffles,
                seed=analysis.seed,
            )
        if "paraphrases" in detector.reads:
            steps[PARAPHRASES] = paraphrase_scores_step(model, examples, detect)
        if "statistics" not in detector.reads:
            continue
        other = reference_model(sources)
        if other is not None:
            steps[TARGET] = statistics_step(model, examples, view=TEXT, detect=detect)
            steps[REFERENCE] = statistics_step(other, examples, view=TEXT, detect=detect)
            continue
        problem = f"{detector.name} needs a reference model, but none is given"
        if analysis.dataset_detectors != "all":
            raise InputError(problem, where="analysis.dataset_detectors", hint=Reference.hint)
        notes.append(f"{problem}, so it is skipped. {Reference.hint}")
    return steps, tuple(notes)


class DetectorSteps(NamedTuple):
    """The sources of one detector's scores of one model."""

    detector: str
    scores: Step
    evidence: tuple[Step, ...]
    """Steps, inputs first; includes those that other detectors also read."""


def detector_steps(nodes: Iterable[ArmNodes]) -> list[DetectorSteps]:
    """Return the sources of every detector's scores; each step of scores once."""
    collected: dict[tuple[str, str], DetectorSteps] = {}
    for node in nodes:
        arm_steps = _without_detectors(node)
        for model in node.models:
            if model.scores is None:
                continue
            for setting in detectors_of(node.sources, model.scored):
                key = (model.scores.digest, setting.name)
                needs = needs_of(with_grids([setting]))
                inputs, _ = evidence_inputs(needs, node.sources, model.scored)
                before = collected[key].evidence if key in collected else ()
                more = Graph(goals=(*before, *inputs.values())).steps if inputs else ()
                evidence = tuple(step for step in more if step.digest not in arm_steps)
                collected[key] = DetectorSteps(setting.name, model.scores, evidence)
    return list(collected.values())


def _without_detectors(node: ArmNodes) -> set[str]:
    """Return the digests of the arm's steps that do not depend on the detectors."""
    goals = [node.trained, node.examples, node.audit, node.plan, node.corpus, node.tokenizer]
    if node.base is not None and node.base.node.step is not None:
        goals.append(node.base.node.step)
    goals += [twin.trained for twin in node.twins.models if twin.role != SHADOW]
    goals += (
        [unlearned.trained for unlearned in node.unlearning.unlearned] if node.unlearning else []
    )
    return {step.digest for step in Graph(goals=tuple(goals)).steps}
