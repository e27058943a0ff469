"""The steps of one arm, and its models."""

from dataclasses import dataclass

from analysis.dataset_detectors.registry import asked_dataset_detectors
from analysis.dataset_detectors.table import ORDERS, PARAPHRASES, REFERENCE, TARGET
from analysis.settings import AnalysisSettings
from detect.dataset_detectors.orders_step import orders_step
from detect.dataset_detectors.paraphrases_step import paraphrase_scores_step
from detect.evidence.needs import EvidenceSources
from detect.evidence.reference import Reference, reference_model
from detect.evidence.views import statistics_step
from detect.views import TEXT
from inject.errors import InputError
from inject.step import Step
from spikein.config.sweep import ArmExperiment
from spikein.pipeline.models import Model
from spikein.pipeline.twin_models import TwinNodes
from spikein.pipeline.unlearning.models import UnlearningNodes
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
    """The models along its training that are scored, the first and the last included; empty where
    none is kept."""
    twins: TwinNodes
    """Models with the arm's settings that saw no members, or other members."""
    sources: EvidenceSources
    """What its detectors' needs are met with."""
    accuracy: Step | None
    """How the trained model answers the benchmarks' questions."""
    base_accuracy: Step | None
    further: dict[str, Step]
    """What dataset-level detectors read of the trained model."""
    further_notes: tuple[str, ...]
    """What of that is left out."""
    unlearning: UnlearningNodes | None
    """Unlearned models and their scores; None without the section `unlearning`."""

    @property
    def examples(self) -> Step:
        """The arm's pool."""
        return self.sources.examples

    @property
    def plan(self) -> Step:
        """Where copies stand in the arm's stream."""
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
        """The twins that are scored as the arm is."""
        return tuple(twin for twin in self.twins.models if twin.scores is not None)

    @property
    def models(self) -> tuple[Model, ...]:
        """Every model of the arm once: its own, the base model, twins, unlearned, checkpoints."""
        unlearned = self.unlearning.unlearned if self.unlearning else ()
        first = (self.contaminated, self.base, *self.twins.models)
        known = [model for model in first if model is not None]
        ends = {model.scores.digest for model in known if model.scores is not None}
        along = [one for one in self.checkpoints if one.scores and one.scores.digest not in ends]
        return (*known, *unlearned, *along)


def further_steps(
    model: ModelNode, sources: EvidenceSources, analysis: AnalysisSettings
) -> tuple[dict[str, Step], tuple[str, ...]]:
    """Return what dataset-level detectors read of an arm's model, and notes on what is left out.

    Raises:
        InputError: an unknown detector, or one that was named and lacks a reference model.
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
        problem = f"{detector.name} needs a reference model, which is not given"
        if analysis.dataset_detectors != "all":
            raise InputError(problem, where="analysis.dataset_detectors", hint=Reference.hint)
        notes.append(f"{problem}, and is left out. {Reference.hint}")
    return steps, tuple(notes)
