"""The steps of one arm, and its models."""

from dataclasses import dataclass

from detect.evidence.needs import EvidenceSources
from inject.step import Step
from spikein.config.sweep import ArmExperiment
from spikein.pipeline.models import Model
from spikein.pipeline.twin_models import TwinNodes
from spikein.pipeline.unlearning.models import UnlearningNodes


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
        twins = (self.twins.clean, self.twins.retrained)
        return tuple(twin for twin in twins if twin is not None and twin.scores is not None)

    @property
    def models(self) -> tuple[Model, ...]:
        """Every model of the arm once: its own, the base model, twins, unlearned, checkpoints."""
        twins = (self.twins.clean, self.twins.retrained, *self.twins.shadows)
        unlearned = [one.model for one in self.unlearning.unlearned] if self.unlearning else []
        first = (self.contaminated, self.base, *twins)
        known = [model for model in first if model is not None]
        ends = {model.scores.digest for model in known if model.scores is not None}
        along = [one for one in self.checkpoints if one.scores and one.scores.digest not in ends]
        return (*known, *unlearned, *along)
