"""A dataset-level detector: what it declares, what it is given, what it finds, and its name.

It uses all rows of one dataset under one model and answers once, with a statistic and,
if it is a test, a p-value. If possible, it answers a second time on unseen rows
(`rows` of `DatasetFinding`): there its p-values must be uniform.

Scores of many detectors are features: on one scale, outliers cut, gaps filled, fitted on `tune`.
Everything that is estimated comes from the tuning rows, both sides together, so that no label and
no test row affects the scale. The detectors by name are the `DETECTOR` of each file in `methods`.
"""

import importlib
import math
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.intervals.influence import Floats, Mask, positions
from detect.token_statistics import TokenStatistics
from inject.errors import InputError, did_you_mean

Rows = Literal["members", "non-members", "both"]
SIDES: tuple[Rows, Rows] = ("members", "non-members")
Further = Literal["orders", "statistics", "paraphrases"]
"""What a detector reads besides the stored scores: log-likelihoods of shuffled datasets
(`orders`), token statistics of the target and of a reference model (`statistics`), scores of
paraphrases (`paraphrases`). All but `statistics` take further passes of the target."""
TOO_SMALL = "n too small"
POOLED = "all"
"""All datasets of a pool together."""


class DatasetFinding(NamedTuple):
    """One answer."""

    rows: Rows
    """`members`: those the model saw; `non-members`: the control; `both`: one against the other."""
    statistic: str
    value: float
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    """One-sided: small if the rows were seen; NaN if the method is not a test."""
    n: int = 0
    """The units of the statistic: groups of rows, documents, shards, pairs."""
    note: str = ""
    """The reason for a missing value, or a caveat."""


@dataclass(frozen=True, kw_only=True)
class DatasetEvidence:
    """The evidence of one dataset under one model; arrays run over its rows."""

    dataset: str
    """Its name; `all` for the pool."""
    datasets: npt.NDArray[np.object_]
    """The dataset of each row."""
    seen: Mask
    """Members with at least one copy."""
    unseen: Mask
    """Non-members."""
    test: Mask
    """Rows of the test split; the others are for choosing and fitting."""
    groups: npt.NDArray[np.object_]
    """Rows of one group share a passage."""
    scores: Mapping[str, Floats]
    """By detector, under the reported setting; only contestants."""
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
    """The assumptions under which its answer means that the dataset was seen."""
    reads: tuple[Further, ...] = ()
    """Its evidence in addition to the stored scores."""
    score: Callable[[TokenStatistics], float] | None = None
    """Of a row, if it reads `statistics`."""
    pooled: bool = False
    """Whether it also answers for all datasets together."""
    find: Callable[[DatasetEvidence], list[DatasetFinding]]


def no_result(rows: Rows, statistic: str, note: str, n: int = 0) -> DatasetFinding:
    """Return a finding without a value, whose note is the reason."""
    return DatasetFinding(rows, statistic, math.nan, n=n, note=note)


def group_means(values: Floats, groups: npt.NDArray[np.object_]) -> Floats:
    """Return the mean of each group's finite values, so that a passage counts once."""
    measured = np.isfinite(values)
    names, index = np.unique(groups[measured].astype(str), return_inverse=True)
    sums = np.bincount(index, weights=values[measured], minlength=len(names))
    counts = np.bincount(index, minlength=len(names))
    return np.asarray(sums / np.maximum(counts, 1), np.float64)


TTest = tuple[float, float]
"""The statistic and the p-value of a one-sided t-test."""


def welch_test(higher: Floats, lower: Floats) -> TTest | None:
    """Test whether the first mean is higher, variances unequal; None if nothing varies."""
    from scipy.stats import ttest_ind

    if min(len(higher), len(lower)) < 2 or (np.ptp(higher) == 0 and np.ptp(lower) == 0):
        return None
    result = ttest_ind(higher, lower, equal_var=False, alternative="greater")
    return float(result.statistic), float(result.pvalue)


def mean_test(differences: Floats) -> TTest | None:
    """Test whether a mean is above 0; None if nothing varies."""
    from scipy.stats import ttest_1samp

    if len(differences) < 2 or np.ptp(differences) == 0:
        return None
    result = ttest_1samp(differences, 0.0, alternative="greater")
    return float(result.statistic), float(result.pvalue)


def holm(p_values: Floats) -> Floats:
    """Return p-values adjusted for their number (Holm 1979); NaN stays NaN and does not count."""
    adjusted = np.full(len(p_values), np.nan)
    # NaN sorts last.
    order = np.argsort(p_values)[: int(np.isfinite(p_values).sum())]
    products = p_values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(products), 1.0)
    return adjusted


_CUT = 2.5
"""Per cent at each end (Maini et al. 2024 cut as much)."""
_MOST_MISSING = 0.1


Features = tuple[Floats, tuple[str, ...]]
"""A matrix [rows, features], and the detectors that they are of."""


def standardised_features(evidence: DatasetEvidence, fitted: Mask) -> Features:
    """Return scores cut at the 2.5th and 97.5th percentile of the fitted rows, in their units."""
    columns: dict[str, Floats] = {}
    for name, scores in evidence.scores.items():
        fitted_scores = scores[fitted & np.isfinite(scores)]
        if len(fitted_scores) < 2 or len(fitted_scores) < (1 - _MOST_MISSING) * fitted.sum():
            continue
        low, high = np.percentile(fitted_scores, [_CUT, 100 - _CUT])
        within = np.clip(fitted_scores, low, high)
        if (spread := float(within.std())) > 0:
            column = (np.clip(scores, low, high) - within.mean()) / spread
            columns[name] = np.where(np.isfinite(column), column, 0.0)
    return _stack(columns, len(fitted))


def ranked_features(evidence: DatasetEvidence, fitted: Mask) -> Features:
    """Return each score's place among the fitted rows of its own dataset, from 0 to 1."""
    columns: dict[str, Floats] = {}
    for name, scores in evidence.scores.items():
        column = np.full(len(scores), np.nan)
        for dataset in dict.fromkeys(evidence.datasets):
            in_dataset = evidence.datasets == dataset
            fitted_scores = np.sort(scores[in_dataset & fitted & np.isfinite(scores)])
            scored = in_dataset & np.isfinite(scores)
            if len(fitted_scores) >= 2:
                below, upto = positions(fitted_scores, scores[scored])
                column[scored] = (below + upto) / (2 * len(fitted_scores))
        if np.isfinite(column[fitted]).mean() >= 1 - _MOST_MISSING:
            columns[name] = np.where(np.isfinite(column), column, 0.5)
    return _stack(columns, len(fitted))


def _stack(columns: Mapping[str, Floats], rows: int) -> Features:
    matrix = np.stack([*columns.values()], axis=1) if columns else np.zeros((rows, 0))
    return matrix, tuple(columns)


def fitted_probability(features: Floats, labels: Mask, fitted: Mask) -> Floats:
    """Return a logistic regression's log-odds of every row, fitted on some of them."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=1000, class_weight="balanced")
    model.fit(features[fitted], labels[fitted])
    return np.asarray(model.decision_function(features), np.float64)


_FOLDER = Path(__file__).with_name("methods")
_METHODS = f"{__package__}.{_FOLDER.name}"


def dataset_detector_names() -> tuple[str, ...]:
    """Return all names in order; imports none of the files."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules([str(_FOLDER)])))


def get_dataset_detector(name: str) -> DatasetDetector:
    """Return one by its name.

    Raises:
        InputError: an unknown name.
    """
    names = dataset_detector_names()
    if name not in names:
        raise InputError(
            f"no dataset-level detector is called {name!r}.{did_you_mean(name, names)}",
            allowed=", ".join([POOLED, *names]),
        )
    return importlib.import_module(f"{_METHODS}.{name}").DETECTOR


def asked_dataset_detectors(requested: Literal["all"] | Sequence[str]) -> list[DatasetDetector]:
    """Return the requested detectors, each once.

    Raises:
        InputError: an unknown name.
    """
    names = dataset_detector_names() if requested == POOLED else dict.fromkeys(requested)
    return [get_dataset_detector(name) for name in names]


def method_roots(requested: Literal["all"] | Sequence[str]) -> tuple[str, ...]:
    """Return the modules of the requested detectors, found by name, for `Step.code`."""
    return tuple(f"{_METHODS}.{detector.name}" for detector in asked_dataset_detectors(requested))
