"""What a user may say about the analysis: intervals, operating points, left-out rows."""

from typing import Annotated, Literal

from pydantic import Field

from inject.settings import PositiveInt, Settings

Share = Annotated[float, Field(gt=0, lt=1)]


class AnalysisSettings(Settings):
    """How scores become metrics. Everything here bears on the numbers."""

    replicates: Annotated[int, Field(ge=100, le=100_000)] = 1000
    """Bootstrap replicates behind the rank correlations of data sets (`prism`)."""
    confidence: Share = 0.95
    """Coverage asked of every interval."""
    false_positive_rates: tuple[Share, ...] = (0.001, 0.01, 0.05, 0.1)
    """Rates t at which the true-positive rate is reported, given 10 / t non-members."""
    false_discovery_rate: Share = 0.1
    """Expected share of non-members among the rows that a detector flags, at most; non-members of
    the split `tune` calibrate it."""
    zero_copies: Literal["apart", "nonmember"] = "apart"
    """Members that drew no copy: a row of their own (`0`), or counted as non-members."""
    max_unscored: Share = 0.1
    """A detector that cannot score a larger share of a dataset's rows is set apart on its own rows;
    up to it, rows that one detector cannot score leave every comparison."""
    max_unscored_tune: Share = 0.01
    """A grid setting that cannot score a larger share of the tune rows that another setting of its
    detector can score cannot be chosen."""
    min_members: PositiveInt = 10
    """Numbers of copies with fewer members than this get no row of their own; `all` has a row
    whatever it holds, with fewer members than this without an interval."""
    high_copies: PositiveInt = 4
    """Members with at least so many copies also form one row, `4+`."""
    task_accuracy: bool = True
    """Whether the models are also asked the questions of benchmarks with closed answers, before
    and after training."""
    background_tokens: Annotated[int, Field(ge=0)] = 0
    """Tokens of held-out background, of the documents after the corpus, whose loss is measured
    under the base model and every arm: how much a learning rate harms. 0 measures none, which an
    imported corpus requires."""
    dataset_detectors: Literal["all"] | tuple[str, ...] = ("dataset_inference", "ensemble")
    """Dataset-level detectors: `all`, or a list; `exchangeability` and `paraphrase_test` take
    passes of the arms' models."""
    shards: PositiveInt = 15
    """Of `exchangeability`: parts of each data set whose order is tested."""
    shuffles: PositiveInt = 25
    """Of `exchangeability`: shuffles of each shard; each is a pass over the data set."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of what the analysis draws (replicates, shuffles), apart from the experiment's seeds."""
