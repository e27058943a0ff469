"""`exchangeability`: is a dataset likelier in its own order than shuffled?

Oren et al. 2024, "Proving Test Set Contamination in Black Box Language Models", the sharded test:
the dataset is cut into shards; s_i is the log-likelihood of shard i in canonical order less the
mean over its shuffles, and a one-sided t-test asks whether the mean of s_i is above 0. Under the
null hypothesis every order of exchangeable rows is equally likely, so that the p-value is honest
for any model. Public code divides by the deviation with n in place of n − 1.
"""

import numpy as np
import pyarrow as pa

from analysis.dataset_detectors.detector import (
    SIDES,
    DatasetDetector,
    DatasetEvidence,
    DatasetFinding,
    Rows,
    mean_test,
    no_result,
)
from detect.dataset_detectors.orders import CANONICAL

_STATISTIC = "t"
_FEWEST = 3


def _find(evidence: DatasetEvidence) -> list[DatasetFinding]:
    return [_test_rows(evidence, rows) for rows in SIDES]


def _test_rows(evidence: DatasetEvidence, rows: Rows) -> DatasetFinding:
    if evidence.orders is None:
        return no_result(rows, _STATISTIC, "no shuffles were read")
    gains = canonical_gains(evidence.orders, evidence.dataset, rows)
    if len(gains) < _FEWEST:
        return no_result(rows, _STATISTIC, f"n too small: {len(gains)} shards", len(gains))
    test = mean_test(np.asarray(gains))
    if test is None:
        return no_result(rows, _STATISTIC, "all orders are equally likely", len(gains))
    note = evidence.order_in_stream if rows == "members" else "the control"
    return DatasetFinding(rows, _STATISTIC, test[0], p_value=test[1], n=len(gains), note=note)


def canonical_gains(orders: pa.Table, dataset: str, rows: str) -> list[float]:
    """Return s_i of each shard: canonical log-likelihood less the mean over its shuffles."""
    canonical: dict[int, float] = {}
    shuffled: dict[int, list[float]] = {}
    for row in orders.to_pylist():
        if (row["dataset"], row["rows"]) != (dataset, rows):
            continue
        if row["number"] == CANONICAL:
            canonical[row["shard"]] = row["log_likelihood"]
        else:
            shuffled.setdefault(row["shard"], []).append(row["log_likelihood"])
    return [
        value - float(np.mean(shuffled[shard]))
        for shard, value in canonical.items()
        if shuffled.get(shard)
    ]


DETECTOR = DatasetDetector(
    name="exchangeability",
    summary="log-likelihood of the canonical order against shuffles, by shard",
    source="Oren et al. 2024",
    assumption="rows are exchangeable, and the model saw them one after the other in this order",
    reads=("orders",),
    find=_find,
)
