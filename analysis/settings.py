"""User settings of the analysis: intervals, operating points, unlearning and its audit."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from inject.settings import PositiveFloat, PositiveInt, Settings

Share = Annotated[float, Field(gt=0, lt=1)]


class AnalysisSettings(Settings):
    """How scores become metrics. Everything here affects the numbers."""

    replicates: Annotated[int, Field(ge=100, le=100_000)] = 1000
    """Bootstrap replicates for `prism`, and permutations for the palimpsest test."""
    confidence: Share = 0.95
    """Coverage of every interval."""
    false_positive_rates: tuple[Share, ...] = (0.001, 0.01, 0.05, 0.1)
    """Rates t at which the true-positive rate is reported, given 10 / t non-members."""
    false_discovery_rate: Share = 0.1
    """Highest expected share of non-members among flagged rows; the non-members of `tune` calibrate
    it."""
    zero_copies: Literal["apart", "nonmember"] = "apart"
    """Members that drew no copy: `apart`, in the row `0`, or each counted as a `nonmember`."""
    max_unscored: Share = 0.1
    """Share of a dataset's rows that a detector may fail to score: these rows leave every
    comparison; with more, the detector is compared on its own rows."""
    max_unscored_tune: Share = 0.01
    """A grid setting that fails on a larger share of the tuning rows that another setting scores
    cannot be chosen."""
    min_members: PositiveInt = 10
    """Copy counts with fewer members get no row; `all` always has one, with fewer members no
    interval."""
    high_copies: PositiveInt = 4
    """Members with at least this many copies also form one row, `4+`."""
    task_accuracy: bool = True
    """Ask base model, arms and clean twin the benchmarks' closed questions; the answers also
    correct scores for contamination."""
    background_tokens: Annotated[int, Field(ge=0)] = 0
    """Tokens of held-out background whose loss is measured under base model and arms; 0 for none,
    as an imported corpus requires."""
    dataset_detectors: Literal["all"] | tuple[str, ...] = ("dataset_inference", "ensemble")
    """Dataset-level detectors: `all`, or a list."""
    shards: PositiveInt = 15
    """Parts of each dataset whose order `exchangeability` tests."""
    shuffles: PositiveInt = 25
    """Shuffles of each shard in `exchangeability`; each is a pass over the dataset."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of replicates, shuffles and calibration sets."""


class MeasureSettings(Settings):
    """Margins of the verdict, and the resolution of the tests."""

    utility_margin: PositiveFloat = 0.1
    """Nats a token of retained or general text that an unlearned model may lose beyond the
    retrained one; a model that surely loses more is called ruined. 0.1 is a perplexity 10 %
    higher."""
    accuracy_margin: Share = 0.05
    """The same for the accuracy on the benchmark's questions that are retained."""
    small_denominator: Share = 0.2
    """PrivLeak divides by 1 - AUC of the retrained model; below this it has a warning."""
    permutations: Annotated[int, Field(ge=99, le=100_000)] = 999
    """Swaps of the two models' values for the p-value of forget quality."""


class AuditRule(Settings):
    """The rule of an unlearning audit: which texts it flags."""

    detector: str = "min_k:k=0.2"
    """Whose scores the ratio is of; in an experiment one of `detect.detectors`."""
    band: tuple[float, float] = (1 / 1.15, 1.15)
    """Ratios between these are suspicious."""
    false_alarms: Share = 0.05
    """Share of false alarms that the calibrated band is to have."""

    @field_validator("band")
    @classmethod
    def _holds_something(cls, band: tuple[float, float]) -> tuple[float, float]:
        if not 0 <= band[0] < band[1]:
            raise ValueError(f"{band[0]:g} to {band[1]:g} contains no ratio: take 0 <= LOW < HIGH")
        return band


class ChunkAudit(AuditRule):
    """The audit of Shi et al. 2024, section 7, of every unlearned model; each forgotten text is one
    chunk, and the retrained model calibrates."""

    prompt: Share = 0.5
    """Share of a text's words that the models continue."""
    samples: PositiveInt = 20
    """Continuations of each text by each model."""
    max_tokens: PositiveInt = 128
    """Longest continuation."""
    temperature: Annotated[float, Field(gt=0, le=2)] = 1.0
    """Of the sampling."""
