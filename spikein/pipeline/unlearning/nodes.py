"""What the graph has of unlearning for one arm: models, and the scores of each.

- The original is the arm's contaminated model; each unlearned model is made from it by one setting
  of a method; the retrained model never saw the forget set; the base model saw no member at all.
- The forget set of an arm is everybody who is a member in `examples` and a non-member in
  `retrained.membership`. The retain set is what a method holds on to: among the other members, as
  the setting of the experiment says. The holdout are the non-members of `examples`, whom no model
  saw.
- All scores are over all rows of `examples`, by `example_id`, of the same detectors.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from detect.evidence.needs import EvidenceSources
from inject.step import Step
from spikein.config.sweep import ArmExperiment
from spikein.pipeline.training import ModelNode
from spikein.pipeline.twin_models import Twin
from train.unlearn.registry import MethodSetting


@dataclass(frozen=True, kw_only=True)
class FurtherScores:
    """Scores of a model after something was done to it, as the section `unlearning` asks."""

    relearned: Mapping[int, Step] = field(default_factory=dict)
    """Optimiser steps of plain training on one half of the forget set to the scores after them,
    ascending; empty where `unlearning.relearn` is absent, and for the original."""
    conditions: Mapping[str, Step] = field(default_factory=dict)
    """A name of `unlearning.conditions` (`8bit`, `4bit`, `paraphrase`) to the scores under it. The
    scores under `paraphrase` are over the rows that have a paraphrase alone, under the
    `example_id` of the row."""


@dataclass(frozen=True, kw_only=True)
class UnlearnedModel:
    """One model that was made to forget."""

    setting: MethodSetting
    """The method and its parameters; its label is unique in the arm."""
    trained: Step
    """A `model` artifact: checkpoint, tokenizer, `log.parquet`, `exposures.parquet`."""
    scores: Step
    further: FurtherScores = FurtherScores()


@dataclass(frozen=True, kw_only=True)
class UnlearningNodes:
    """The steps of unlearning of one arm."""

    arm: ArmExperiment
    examples: Step
    """The arm's pool."""
    original: Step
    """The arm's contaminated model."""
    original_scores: Step
    retrained: Twin
    retrained_scores: Step
    base: ModelNode | None
    base_scores: Step | None
    unlearned: tuple[UnlearnedModel, ...]
    sources: EvidenceSources
    """What the detectors' needs are met with."""
    relearn_half: Step | None = None
    """An `examples` artifact in which the members are the half of the forget set that models learn
    again; the forgotten rows outside of it are the half that `relearned` scores are read of. None
    where `unlearning.relearn` is absent."""
    original_further: FurtherScores = FurtherScores()
    retrained_further: FurtherScores = FurtherScores()
    general: Step | None = None
    """General text, which no model was fed: an `examples` artifact; None where there is none."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step that is there for unlearning alone: unlearned models, and all scores."""
        further = [self.original_further, self.retrained_further]
        found = [self.retrained_scores]
        for one in self.unlearned:
            found += [one.trained, one.scores]
            further.append(one.further)
        for each in further:
            found += [*each.relearned.values(), *each.conditions.values()]
        return tuple(found)
