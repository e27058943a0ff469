"""The section `unlearning` of an experiment file: what is forgotten, by which methods.

The names and parameters of methods are looked up when the parts of an experiment are held against
each other (`spikein.config.cross_checks`), as those of detectors are.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from analysis.settings import ChunkAudit, MeasureSettings
from inject.examples.forget_set import ForgetSet, RetainSet
from inject.settings import PositiveFloat, PositiveInt, Settings

SECTION = "unlearning"
Condition = Literal["8bit", "4bit", "paraphrase"]


class Relearning(Settings):
    """Plain training of unlearned models, and of the retrained one, on a part of the forget set."""

    steps: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = (1, 2, 4, 8)
    """Optimiser steps after which the rest of the forget set is scored; each step sees all texts
    of the part once."""
    lr: PositiveFloat | None = None
    """Learning rate, constant; null takes `train.lr`."""
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The share of the forget set that is trained on, drawn in whole groups."""

    @field_validator("steps")
    @classmethod
    def _ascending(cls, steps: tuple[int, ...]) -> tuple[int, ...]:
        if list(steps) != sorted(set(steps)):
            raise ValueError(f"{', '.join(map(str, steps))}: give each step once, ascending")
        return steps


class UnlearningSection(Settings):
    """Models that are to forget some members, beside one that was trained without them."""

    forget: ForgetSet
    """The members that are to be forgotten; the retrained model never sees them."""
    retain: RetainSet = RetainSet()
    """The other members that methods hold on to; without a rule, all of them."""
    methods: Annotated[tuple[str | dict[str, Any], ...], Field(min_length=1)]
    """Methods by name, by `FILE.py:NAME`, or as a mapping of `method`, `name`, `sweep` and the
    method's own settings; each makes a model for each value that its `sweep` names."""
    measures: MeasureSettings = MeasureSettings()
    """Margins and tests behind what is said of them."""
    general_tokens: Annotated[int, Field(ge=0, le=10**9)] = 20_000
    """Tokens of background that lie behind the corpus, on which it is measured what unlearning
    costs elsewhere; 0 for none. With an imported corpus there are none."""
    relearn: Relearning | None = None
    """How models relearn a part of the forget set, to see how fast the rest comes back; null
    trains none."""
    audit: ChunkAudit | None = None
    """How unlearned models are audited text by text, with what they still write; null audits
    none."""
    conditions: tuple[Condition, ...] = ()
    """Under what all models are scored again: weights rounded to `8bit` or `4bit`, and the
    `paraphrase` that examples bring along."""

    @field_validator("conditions")
    @classmethod
    def _distinct(cls, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        if len(set(conditions)) < len(conditions):
            raise ValueError("a condition is given twice")
        return conditions
