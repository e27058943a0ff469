"""Made-up token statistics and evidence for tests of detectors."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from detect.evidence import Evidence
from detect.token_frequency import TokenFrequency
from detect.token_statistics import TokenStatistics


def scores_record(path: Path) -> dict[str, Any]:
    """Return how the scores of a Parquet file were made, as it says itself."""
    record: dict[str, Any] = json.loads(pq.read_schema(path).metadata[b"spikein"])
    return record


def statistics_of(
    log_probability: Sequence[float],
    *,
    entropy: Sequence[float] | None = None,
    deviation: Sequence[float] | None = None,
    ids: Sequence[int] | None = None,
) -> TokenStatistics:
    count = len(log_probability)
    uncertainty = np.array(entropy if entropy is not None else [1.0] * count, np.float32)
    return TokenStatistics(
        ids=np.array(ids if ids is not None else range(count), np.int32),
        log_probability=np.array(log_probability, np.float32),
        mean=-uncertainty,
        deviation=np.array(deviation if deviation is not None else [1.0] * count, np.float32),
        entropy=uncertainty,
        rank=np.ones(count, np.int32),
    )


def random_statistics(count: int, *, seed: int = 0) -> TokenStatistics:
    random = np.random.Generator(np.random.Philox(key=seed))
    return statistics_of(
        -random.gamma(1.0, 2.0, count),
        entropy=random.gamma(2.0, 1.5, count),
        deviation=random.gamma(2.0, 1.0, count),
        ids=random.integers(0, 50, count),
    )


def evidence_of(*rows: TokenStatistics, texts: Sequence[str] | None = None, **more) -> Evidence:
    shown = texts if texts is not None else [f"Text {row}" for row in range(len(rows))]
    return Evidence(texts=shown, statistics={"text": rows, "lowercase": rows}, **more)


def small_frequency(size: int = 64) -> TokenFrequency:
    return TokenFrequency(counts=np.arange(size, dtype=np.int64) * 10)
