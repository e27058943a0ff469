"""Simulated datasets: uninformative scores, or scores that are higher for seen rows."""

import numpy as np
import pyarrow as pa

from analysis.dataset_detectors.detector import DatasetEvidence
from detect.dataset_detectors.orders import SCHEMA


def simulated(
    random: np.random.Generator,
    *,
    effect: float = 0.0,
    rows: int = 80,
    detectors: int = 5,
    group: int = 1,
    **more,
) -> DatasetEvidence:
    """Return `rows` members and as many non-members in groups of `group`, half of them for tuning.

    Rows of a group are on one side and share most of their score.
    """
    n = 2 * rows
    seen = np.arange(n) < rows
    groups = np.array([f"g{row // group}" for row in range(n)], dtype=object)
    shared = random.normal(size=n)[np.arange(n) // group * group]
    scores = {
        f"d{number}": effect * seen
        + (0.8 * shared if group > 1 else 0)
        + 0.6 * random.normal(size=n)
        for number in range(detectors)
    }
    evidence = {
        "dataset": "news",
        "datasets": np.array(["news"] * n, dtype=object),
        "seen": seen,
        "unseen": ~seen,
        "test": (np.arange(n) // group) % 2 == 0,
        "groups": groups,
        "scores": scores,
        "seed": 0,
        "replicates": 200,
        "confidence": 0.95,
    }
    return DatasetEvidence(**{**evidence, **more})


def order_table(gains: dict[str, list[float]], *, shuffles: int = 4) -> pa.Table:
    """Return orders in which the canonical one is likelier by each shard's gain."""
    rows = []
    for side, values in gains.items():
        for shard, gain in enumerate(values):
            for number in range(shuffles + 1):
                spread = 0.0 if number == 0 else (number - (shuffles + 1) / 2)
                rows.append(
                    {
                        "dataset": "news",
                        "rows": side,
                        "shard": shard,
                        "number": number,
                        "log_likelihood": -100.0 + (gain if number == 0 else spread),
                        "tokens": 50,
                    }
                )
    return pa.Table.from_pylist(rows, schema=SCHEMA)
