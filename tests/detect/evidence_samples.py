"""Invented token statistics and evidence for tests of detectors."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from detect.evidence import Evidence
from detect.token_frequency import TokenFrequency
from detect.token_statistics import TokenStatistics

DISTRIBUTION = ("mean_log_prob", "std_log_prob", "entropy", "rank", "top_log_probability", "top_id")
"""Columns of token statistics that require the whole distribution."""


def scores_record(path: Path) -> dict[str, Any]:
    """Return a Parquet file's own record of its scores."""
    record: dict[str, Any] = json.loads(pq.read_schema(path).metadata[b"spikein"])
    return record


def statistics_of(
    log_probability: Sequence[float],
    *,
    entropy: Sequence[float] | None = None,
    deviation: Sequence[float] | None = None,
    ids: Sequence[int] | None = None,
    top: Sequence[float] | None = None,
    top_ids: Sequence[int] | None = None,
    offsets: Sequence[tuple[int, int]] | None = None,
) -> TokenStatistics:
    """Statistics with invented defaults: x_i is the most likely token and has no offset."""
    count = len(log_probability)
    own_ids = np.array(ids if ids is not None else range(count), np.int32)
    most_likely = np.array(top_ids if top_ids is not None else own_ids, np.int32)
    uncertainty = np.array(entropy if entropy is not None else [1.0] * count, np.float32)
    return TokenStatistics(
        ids=own_ids,
        log_probability=np.array(log_probability, np.float32),
        mean_log_prob=-uncertainty,
        std_log_prob=np.array(deviation if deviation is not None else [1.0] * count, np.float32),
        entropy=uncertainty,
        rank=np.where(most_likely == own_ids, 1, 2).astype(np.int32),
        top_log_probability=np.array(top if top is not None else log_probability, np.float32),
        top_id=most_likely,
        offsets=np.array(offsets if offsets is not None else [(-1, -1)] * count, np.int32).reshape(
            -1, 2
        ),
    )


def random_statistics(count: int, *, seed: int = 0) -> TokenStatistics:
    random = np.random.Generator(np.random.Philox(key=seed))
    log_probability = -random.gamma(1.0, 2.0, count)
    entropy = random.gamma(2.0, 1.5, count)
    deviation = random.gamma(2.0, 1.0, count)
    ids = random.integers(0, 50, count)
    is_top = random.random(count) < 0.4
    starts = np.arange(count)
    return statistics_of(
        log_probability,
        entropy=entropy,
        deviation=deviation,
        ids=ids,
        top=np.where(is_top, log_probability, log_probability * random.random(count)),
        top_ids=np.where(is_top, ids, 50 + ids),
        offsets=np.stack([4 * starts, 4 * starts + 3], axis=1),
    )


def evidence_of(*rows: TokenStatistics, texts: Sequence[str] | None = None, **more) -> Evidence:
    row_texts = texts if texts is not None else [f"Text {row}" for row in range(len(rows))]
    return Evidence(texts=row_texts, statistics={"text": rows, "lowercase": rows}, **more)


def small_frequency(size: int = 64) -> TokenFrequency:
    return TokenFrequency(counts=np.arange(size, dtype=np.int64) * 10)
