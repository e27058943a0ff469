"""`prism`: do target and reference find the same documents surprising?

PRISM (2603.22707) takes evidence of *non*-membership: ρ, the Spearman correlation over documents
of Min-K++ at k = 0.01 between a reference model and the target. A target that never saw them is
surprised as the reference is; one that did is not, so that ρ falls. Its verdict also needs a
reference that was tuned on the documents, which is not built here: ρ of non-members serves
as the comparison instead. Percentile bootstrap over groups; fewer than 100 documents are too few.
"""

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from analysis.dataset_detectors.detector import (
    SIDES,
    TOO_SMALL,
    DatasetDetector,
    DatasetEvidence,
    DatasetFinding,
    Rows,
    no_result,
)
from analysis.intervals.influence import Floats
from detect.detectors.min_k import MinKParameters, lowest_means
from detect.detectors.min_k_plus_plus import standardised
from detect.token_statistics import TokenStatistics
from inject.keyed import Stream, generator, item_key

FEWEST = 100
_LEAST_LIKELY = MinKParameters(k=Decimal("0.01"))
_STATISTIC = "rho"
_MOST_WITHOUT = 0.05
"""Share of replicates without a correlation beyond which there is no interval."""


def spearman(first: Floats, second: Floats, weights: Floats) -> Floats:
    """Return the rank correlation under each column of integer weights [n, replicates].

    Ranks are those of the whole sample, ties at their mean; a row drawn twice counts twice.
    """
    from scipy.stats import rankdata

    ranks = np.stack([rankdata(first), rankdata(second)])
    total = weights.sum(axis=0)
    means = ranks @ weights / total
    products = (ranks[0] * ranks[1]) @ weights / total - means[0] * means[1]
    squares = (ranks**2) @ weights / total - means**2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(products / np.sqrt(squares[0] * squares[1]), np.float64)


def drawn_groups(names: Sequence[str], *, replicates: int, seed: int, stratum: str) -> Floats:
    """Return weights of rows whose whole groups are drawn with replacement, [rows, R + 1].

    Args:
        names: the group of each row; as many are drawn as there are.
        replicates: R. Column 0 is the sample itself, all ones.
        seed: of the analysis.
        stratum: whose rows these are: another stratum has other draws.
    """
    groups, index = np.unique(np.asarray(names, dtype=str), return_inverse=True)
    n = len(groups)
    random = generator(seed, Stream.BOOTSTRAP, item_key(f"\0{stratum}"))
    picks = random.integers(0, n, size=(replicates, n)) + n * np.arange(replicates)[:, None]
    counts = np.bincount(picks.ravel(), minlength=replicates * n).reshape(replicates, n)
    return np.column_stack([np.ones(len(index)), counts.T[index]])


def surprise(statistics: TokenStatistics) -> float:
    """Return Min-K++ at k = 0.01 of a row."""
    return lowest_means(standardised(statistics), [_LEAST_LIKELY])[0].value


def _find(evidence: DatasetEvidence) -> list[DatasetFinding]:
    return [_test_rows(evidence, rows) for rows in SIDES]


def _test_rows(evidence: DatasetEvidence, rows: Rows) -> DatasetFinding:
    target, reference = evidence.target_scores, evidence.reference_scores
    if target is None or reference is None:
        return no_result(rows, _STATISTIC, "no reference model")
    side = evidence.seen if rows == "members" else evidence.unseen
    used = side & evidence.test & np.isfinite(target) & np.isfinite(reference)
    n = int(used.sum())
    if n < FEWEST:
        return no_result(rows, _STATISTIC, f"{TOO_SMALL}: {n} of {FEWEST} documents", n)
    weights = drawn_groups(
        [str(name) for name in evidence.groups[used]],
        replicates=evidence.replicates,
        seed=evidence.seed,
        stratum=rows,
    )
    value, *replicates = spearman(target[used], reference[used], weights).tolist()
    if not math.isfinite(value):
        return no_result(rows, _STATISTIC, "all values are equal", n)
    low = high = math.nan
    if np.isnan(replicates).mean() <= _MOST_WITHOUT:
        tail = 50 * (1 - evidence.confidence)
        low, high = np.nanpercentile(replicates, [tail, 100 - tail]).tolist()
    return DatasetFinding(rows, _STATISTIC, value, low, high, n=n)


DETECTOR = DatasetDetector(
    name="prism",
    summary="rank correlation of Min-K++ (k = 0.01) between target and reference; falls where seen",
    source="PRISM (2603.22707), only its ρ",
    assumption="the reference model saw none of the documents and is as able as the target",
    reads=("statistics",),
    score=surprise,
    pooled=True,
    find=_find,
)
