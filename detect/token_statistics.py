"""Token statistics: what one pass of a model says about each scored token of each text.

The table is small (five numbers a token) and enough for every likelihood detector, so that
detectors can be re-run, or newly written, without a model. This module needs no torch.

Invariants: all arrays of one example have length N, the number of scored positions; where
nothing could be scored N is 0 and `reason` says why. Natural logarithms.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from inject.tables import named_errors

Floats = npt.NDArray[np.float32]

EMPTY_TEXT = "empty text"
ONE_TOKEN = "one token, which has no history to be scored after"

STATISTICS_FILE = "statistics.arrow"
_METADATA_KEY = b"spikein"
_ROWS_A_BATCH = 4096

SCHEMA = pa.schema(
    [
        ("example_id", pa.string()),
        ("ids", pa.list_(pa.int32())),
        ("log_probability", pa.list_(pa.float32())),
        ("mean", pa.list_(pa.float32())),
        ("deviation", pa.list_(pa.float32())),
        ("entropy", pa.list_(pa.float32())),
        ("rank", pa.list_(pa.int32())),
        ("reason", pa.string()),
    ]
)
_ARRAYS = {
    "ids": np.int32,
    "log_probability": np.float32,
    "mean": np.float32,
    "deviation": np.float32,
    "entropy": np.float32,
    "rank": np.int32,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenStatistics:
    """Statistics of the N scored positions of one text under one model; arrays of shape [N]."""

    ids: npt.NDArray[np.int32]
    """The true token x_i."""
    log_probability: Floats
    """ℓ_i = log p(x_i | x_<i), in nats."""
    mean: Floats
    """μ_i = Σ_v p_v log p_v: the expected log-probability under the model's own p."""
    deviation: Floats
    """σ_i, with σ²_i = Σ_v p_v (log p_v)² − μ_i²."""
    entropy: Floats
    """H_i = −μ_i, in nats."""
    rank: npt.NDArray[np.int32]
    """1 + the number of tokens with a strictly greater logit than x_i."""
    reason: str | None = None
    """Why nothing could be scored (then N = 0), else None."""

    def __len__(self) -> int:
        return len(self.ids)


def unscored(reason: str) -> TokenStatistics:
    """Return the statistics of a text that cannot be scored, with the reason."""
    integers, floats = np.zeros(0, np.int32), np.zeros(0, np.float32)
    return TokenStatistics(
        ids=integers,
        log_probability=floats,
        mean=floats,
        deviation=floats,
        entropy=floats,
        rank=integers,
        reason=reason,
    )


def write_statistics(
    folder: Path,
    example_ids: Sequence[str],
    statistics: Sequence[TokenStatistics],
    *,
    record: Mapping[str, Any] | None = None,
) -> None:
    """Write `statistics.arrow`: one row an example, in order.

    Args:
        folder: where to write it.
        example_ids: one for each row; the same id may stand twice.
        statistics: as many.
        record: plain JSON values stored beside the rows (policy, model, view).
    """
    schema = SCHEMA.with_metadata({_METADATA_KEY: json.dumps(record or {}).encode()})
    with (
        pa.OSFile(str(folder / STATISTICS_FILE), "wb") as sink,
        pa.ipc.new_file(sink, schema) as writer,
    ):
        for start in range(0, len(statistics), _ROWS_A_BATCH):
            rows = statistics[start : start + _ROWS_A_BATCH]
            columns: list[pa.Array] = [
                pa.array(example_ids[start : start + _ROWS_A_BATCH], pa.string())
            ]
            columns += [_lists([getattr(row, name) for row in rows], name) for name in _ARRAYS]
            columns.append(pa.array([row.reason for row in rows], pa.string()))
            writer.write_batch(pa.record_batch(columns, schema=schema))


def read_statistics(folder: Path) -> dict[str, TokenStatistics]:
    """Read what `write_statistics` wrote, by example id (rows of one id are alike)."""
    path = folder / STATISTICS_FILE
    result: dict[str, TokenStatistics] = {}
    with named_errors(path), pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index)
            columns = {name: _split(batch.column(name), kind) for name, kind in _ARRAYS.items()}
            reasons = batch.column("reason").to_pylist()
            for row, example_id in enumerate(batch.column("example_id").to_pylist()):
                arrays = {name: columns[name][row] for name in _ARRAYS}
                result[example_id] = TokenStatistics(**arrays, reason=reasons[row])
    return result


def _lists(arrays: Sequence[npt.NDArray[Any]], name: str) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum([len(array) for array in arrays])])
    values = np.concatenate([*arrays, np.zeros(0, _ARRAYS[name])]).astype(_ARRAYS[name])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values))


def _split(column: pa.ListArray, kind: type) -> list[npt.NDArray[Any]]:
    offsets = column.offsets.to_numpy()
    values = column.values.to_numpy().astype(kind)
    return [values[start:stop] for start, stop in pairwise(offsets)]
