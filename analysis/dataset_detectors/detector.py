"""A dataset-level detector: what it declares, what it is given, and what it finds.

It looks at all rows of one data set under one model and answers once, with a statistic and, where
it is a test, a p-value. Wherever that is possible it answers a second time on rows that nobody saw
(`rows` of `Finding`): there its p-values must be uniform.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.metrics import Floats
from detect.token_statistics import TokenStatistics

Mask = npt.NDArray[np.bool_]
Rows = Literal["members", "non-members", "both"]
Further = Literal["orders", "statistics", "paraphrases"]
"""What a detector reads besides the stored scores: log-likelihoods of shuffled data sets
(`orders`), token statistics of the target and of a reference model (`statistics`), scores of
paraphrases (`paraphrases`). All but `statistics` take further passes of the target."""
TOO_SMALL = "n too small"
POOLED = "all"
"""All data sets of a pool together."""


class Finding(NamedTuple):
    """One answer."""

    rows: Rows
    """`members`: those the model saw; `non-members`: the control; `both`: one against the other."""
    statistic: str
    value: float
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    """One-sided: small where the rows were seen; NaN for what is no test."""
    n: int = 0
    """What the statistic is over: groups of rows, documents, shards, pairs."""
    note: str = ""
    """Why there is no value, or what to know of it."""


@dataclass(frozen=True, kw_only=True)
class DatasetEvidence:
    """What is known of one data set under one model; arrays run over its rows."""

    dataset: str
    """Its name; `all` for the pool."""
    datasets: npt.NDArray[np.object_]
    """The data set of each row."""
    seen: Mask
    """Members with at least one copy."""
    unseen: Mask
    """Non-members."""
    test: Mask
    """Rows of the test split; the others are for choosing and fitting."""
    groups: npt.NDArray[np.object_]
    """Rows of one group share a passage."""
    scores: Mapping[str, Floats]
    """By detector, under the setting that is reported; contestants alone."""
    seed: int
    replicates: int
    confidence: float
    orders: pa.Table | None = None
    """Of `detect.dataset_detectors.orders`."""
    order_in_stream: str = ""
    """Whether the model saw the rows in their canonical order, in words."""
    target_scores: Floats | None = None
    """`DatasetDetector.score` of each row under the target."""
    reference_scores: Floats | None = None
    """The same under a reference model."""
    paraphrase_scores: Mapping[str, tuple[Floats, Floats]] | None = None
    """By detector: of the text, and of its first paraphrase; NaN if it has none."""


@dataclass(frozen=True, kw_only=True)
class DatasetDetector:
    """A dataset-level detector."""

    name: str
    summary: str
    source: str
    """Paper."""
    assumption: str
    """What must hold for its answer to mean that the data set was seen."""
    reads: tuple[Further, ...] = ()
    """What it reads besides the stored scores."""
    score: Callable[[TokenStatistics], float] | None = None
    """Of a row, where it reads `statistics`."""
    pooled: bool = False
    """Whether it also answers for all data sets together."""
    find: Callable[[DatasetEvidence], list[Finding]]


def nothing(rows: Rows, statistic: str, note: str, n: int = 0) -> Finding:
    """Return an answer that says why there is none."""
    return Finding(rows, statistic, math.nan, n=n, note=note)


def group_means(values: Floats, groups: npt.NDArray[np.object_]) -> Floats:
    """Return the mean of each group's finite values, so that a passage counts once."""
    there = np.isfinite(values)
    names, index = np.unique(groups[there].astype(str), return_inverse=True)
    sums = np.bincount(index, weights=values[there], minlength=len(names))
    counts = np.bincount(index, minlength=len(names))
    return np.asarray(sums / np.maximum(counts, 1), np.float64)


class TTest(NamedTuple):
    """A one-sided t-test."""

    t: float
    p_value: float


def welch_test(higher: Floats, lower: Floats) -> TTest | None:
    """Test whether the first mean is higher, variances unequal; None if nothing varies."""
    from scipy.stats import ttest_ind

    if min(len(higher), len(lower)) < 2 or (np.ptp(higher) == 0 and np.ptp(lower) == 0):
        return None
    found = ttest_ind(higher, lower, equal_var=False, alternative="greater")
    return TTest(float(found.statistic), float(found.pvalue))


def mean_test(differences: Floats) -> TTest | None:
    """Test whether a mean is above 0; None if nothing varies."""
    from scipy.stats import ttest_1samp

    if len(differences) < 2 or np.ptp(differences) == 0:
        return None
    found = ttest_1samp(differences, 0.0, alternative="greater")
    return TTest(float(found.statistic), float(found.pvalue))


def holm(p_values: Floats) -> Floats:
    """Return p-values adjusted for their number (Holm 1979); NaN stays NaN and does not count."""
    from statsmodels.stats.multitest import multipletests

    adjusted = np.full(len(p_values), np.nan)
    there = np.isfinite(p_values)
    if there.any():
        adjusted[there] = multipletests(p_values[there], method="holm")[1]
    return adjusted
