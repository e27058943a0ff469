"""The schema of an experiment file.

Each package owns the settings of its part; this module combines them. A rule about one part is in
that part, a rule about two in `cross_checks`, which also looks up the names and parameters of
detectors and unlearning methods.
"""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, field_validator, model_validator

from analysis.settings import AnalysisSettings, ChunkAudit, MeasureSettings
from analysis.studies.claims import Claim
from detect.settings import DetectSettings
from inject.corpus.background.registry import AnySource, source_kind
from inject.examples.contaminant import Contaminant, PoolSettings
from inject.examples.forget_set import ForgetSet, RetainSet
from inject.examples.twin_membership import Twins
from inject.formats.importing import AnyImport
from inject.overlap.settings import OverlapSettings
from inject.plan.settings import Copies, Placement
from inject.settings import Distinct, PositiveFloat, PositiveInt, Settings
from inject.variants.settings import Variants
from spikein.config.executor_settings import AnyExecutor, InProcessSettings
from train.execution import ExecutionSettings
from train.settings import (
    BaseSettings,
    ModelSettings,
    TrainSettings,
)

Seed = Annotated[int, Field(ge=0, lt=2**63)]

SECTION = "unlearning"
Condition = Literal["8bit", "4bit", "paraphrase"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def check_name(name: str) -> str:
    """Return a name that is valid for a run's folder.

    Raises:
        ValueError: when it is not valid.
    """
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise ValueError(
            f"{name!r} cannot name a folder everywhere; use letters, digits, '.', '_' and "
            "'-', starting with a letter or a digit, at most 100 of them"
        )
    return name


class CorpusSettings(Settings):
    """The background text that examples are spiked into."""

    tokens: PositiveInt
    """Size of the training stream in tokens, copies included."""
    repeat: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """How often the background, `tokens / repeat` unique tokens, occurs in the stream; each copy is
    placed once."""
    sources: tuple[AnySource, ...] = ()
    """Sources of the background, mixed by weight."""
    imported: AnyImport | None = None
    """A tokenised corpus in place of `sources`."""
    seed: Seed = 0
    """Seed of the order of documents, for all arms."""

    @model_validator(mode="after")
    def _one_background(self) -> "CorpusSettings":
        if bool(self.sources) == (self.imported is not None):
            present = "both" if self.sources else "neither"
            raise ValueError(f"give exactly one of sources and imported; got {present}")
        return self

    @property
    def unique_tokens(self) -> int:
        """Tokens of the background that the stream repeats."""
        return math.ceil(self.tokens / self.repeat)

    def described(self) -> str:
        """Return the sources of the background as text."""
        if self.imported is not None:
            sources = self.imported.label()
        else:
            sources = ", ".join(source.label() for source in self.sources)
        if self.repeat == 1:
            return sources
        return f"{sources} ({self.unique_tokens:,} tokens laid out {self.repeat} times)"

    def label(self) -> str:
        """Return a short name of the background for folders."""
        if self.imported is not None:
            return self.imported.kind
        return "-".join(source_kind(source) for source in self.sources)[:40]


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
    def _check_steps(cls, steps: tuple[int, ...]) -> tuple[int, ...]:
        if list(steps) != sorted(set(steps)):
            raise ValueError(f"{', '.join(map(str, steps))}: give each step once, ascending")
        return steps


class UnlearningSection(Settings):
    """Models that unlearn some members, compared with one trained without them."""

    forget: ForgetSet
    """The members to forget; the retrained model never sees them."""
    retain: RetainSet = RetainSet()
    """The other members that methods hold on to; without a rule, all of them."""
    methods: Annotated[tuple[str | dict[str, Any], ...], Field(min_length=1)]
    """Methods by name, by `FILE.py:NAME`, or as a mapping of `method`, `name`, `sweep` and the
    method's own settings; each makes a model for each value that its `sweep` names."""
    measures: MeasureSettings = MeasureSettings()
    """Margins and tests of the verdicts."""
    general_tokens: Annotated[int, Field(ge=0, le=10**9)] = 20_000
    """Tokens of background after the corpus, used to measure the cost of unlearning on other text;
    0 for none. An imported corpus has none."""
    relearn: Relearning | None = None
    """How models relearn a part of the forget set, to see how fast the rest returns; null trains
    none."""
    audit: ChunkAudit | None = None
    """How unlearned models are audited text by text, with their continuations; null audits
    none."""
    conditions: Annotated[tuple[Condition, ...], Distinct] = ()
    """Conditions under which all models are scored again: weights rounded to `8bit` or `4bit`, and
    the examples' `paraphrase`."""


class Experiment(Settings):
    """One experiment file."""

    name: Annotated[str, AfterValidator(check_name)]
    """The run's folder: letters, digits, `.`, `_`, `-`, starting with a letter or digit."""
    variables: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Values for `${name}` elsewhere; `name=value` on the command line sets one."""
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1, max_length=1000), Distinct] = (0,)
    """Seeds; each arm is run with each."""
    model: ModelSettings
    """The model to train: a shape from scratch, or a pretrained model; and its tokenizer."""
    base: BaseSettings | None = None
    """How the base model is trained that all arms start from; absent with `model.pretrained`."""
    corpus: CorpusSettings
    """The background text."""
    contaminants: Annotated[tuple[Contaminant, ...], Field(min_length=1)]
    """The datasets whose members are spiked in and whose non-members are withheld."""
    copies: Copies
    """Number of copies of each member."""
    placement: Placement = Placement()
    """Positions of the copies."""
    variants: Variants = Variants()
    """Content of the copies: whole examples, or variants of them."""
    audit: OverlapSettings = OverlapSettings()
    """What counts as an overlap of the background with an example; such documents are dropped."""
    twins: Twins = Twins()
    """Further models of each arm: the clean twin, the retrained model, shadow models."""
    unlearning: UnlearningSection | None = None
    """Models that unlearn some members; by default none."""
    pool: PoolSettings = PoolSettings()
    """How members and non-members are drawn."""
    train: TrainSettings
    """How the arms' models are trained."""
    training_runtime: ExecutionSettings = ExecutionSettings()
    """Where and how models are trained; changes no result."""
    executor: AnyExecutor = InProcessSettings()
    """Where the steps run: in this process, several, or on a cluster; changes no result."""
    detect: DetectSettings = DetectSettings()
    """Which detectors score the examples, and how."""
    analysis: AnalysisSettings = AnalysisSettings()
    """Intervals, bins and figures of the results."""
    sweep: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(default_factory=dict)
    """Dotted keys with their values; the arms are all combinations."""
    arms: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """In place of `sweep`: named arms, with the dotted keys that each sets."""
    claims: dict[str, Claim] = Field(default_factory=dict)
    """Hypotheses by name, with the comparison and margin that decide each; fixed when the run
    starts."""

    @property
    def forget_set(self) -> ForgetSet | None:
        """The members that the retrained model never sees; None without such a model."""
        if self.unlearning is not None:
            return self.unlearning.forget
        share = self.twins.retrained
        return None if share is None else ForgetSet(share=share)


def plain_values(settings: BaseModel) -> dict[str, Any]:
    """Return settings as plain JSON values, without the nulls that are defaults anyway.

    Reading the result gives the same settings again.
    """
    return _plain_values(settings, settings.model_dump(mode="json"))


def _plain_values(value: Any, dumped: Any) -> Any:
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        return {
            name: _plain_values(getattr(value, name), dumped[name])
            for name in fields
            if not (dumped[name] is None and fields[name].default is None)
        }
    if isinstance(value, list | tuple):
        return [_plain_values(item, plain) for item, plain in zip(value, dumped, strict=True)]
    if isinstance(value, Mapping):
        return {str(key): _plain_values(item, dumped[key]) for key, item in value.items()}
    return dumped
