"""Token statistics: the results of one pass of a model for each scored token of each text.

The table is small (seven numbers per token, and its position in the text) and suffices for every
likelihood detector, so detectors can be re-run, or newly written, without a model. This module
needs no torch.

Invariants: all arrays of one example have length N, the number of scored positions, or are absent
(null in the table): ids and positions if the text is withheld, and statistics that a server does
not report. If nothing could be scored, N is 0 and `reason` explains it. Natural logarithms. x_i is
among the most likely tokens (rank 1) exactly if `top_id` is x_i.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from inject.errors import InputError
from inject.reading.former_names import current_columns, note_former_name, with_current_columns
from inject.tables import named_errors

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int32]

EMPTY_TEXT = "empty text"
ONE_TOKEN = "one token, which has no history to be scored after"
CUT_BEFORE_START = "cut before the first token to score"

STATISTICS_FILE = "statistics.arrow"
PACKED_FILE = "statistics.parquet"
"""The same rows, packed: a third of the bytes, and some ten times slower to read."""
TEXT_COLUMNS = ("ids", "top_id", "offsets")
"""Columns that reveal a text's tokens; null, and absent once read, if the text is withheld."""
_METADATA_KEY = b"spikein"
_ENTROPY = "entropy"
_ROWS_A_BATCH = 4096

_PAIR = pa.list_(pa.int32(), 2)
_ARRAYS = {
    "ids": np.int32,
    "log_probability": np.float32,
    "mean_log_prob": np.float32,
    "std_log_prob": np.float32,
    "entropy": np.float32,
    "rank": np.int32,
    "top_log_probability": np.float32,
    "top_id": np.int32,
    "offsets": np.int32,
}
_TEMPERED = ("log_probability", "mean_log_prob", "std_log_prob")


class _FormerNames:
    """The names that detectors of version 0.1 use."""

    mean_log_prob: Floats
    std_log_prob: Floats

    @property
    def mean(self) -> Floats:
        """`mean_log_prob`."""
        note_former_name("detector", "statistics.mean", "statistics.mean_log_prob")
        return self.mean_log_prob

    @property
    def deviation(self) -> Floats:
        """`std_log_prob`."""
        note_former_name("detector", "statistics.deviation", "statistics.std_log_prob")
        return self.std_log_prob


@dataclass(frozen=True, kw_only=True, eq=False)
class TemperedStatistics(_FormerNames):
    """Statistics of p^(β) = softmax(β · logits), at one inverse temperature β; shape [N]."""

    log_probability: Floats
    """log p^(β)(x_i | x_<i)."""
    mean_log_prob: Floats
    """μ_i^(β) = Σ_v p^(β)_v log p^(β)_v."""
    std_log_prob: Floats
    """σ_i^(β), of log p^(β) under p^(β)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenStatistics(_FormerNames):
    """Statistics of the N scored positions of one text under one model; arrays of shape [N]."""

    ids: Integers
    """The true token x_i."""
    log_probability: Floats
    """ℓ_i = log p(x_i | x_<i), in nats."""
    mean_log_prob: Floats
    """μ_i = Σ_v p_v log p_v: the expected log-probability under the model's own p."""
    std_log_prob: Floats
    """σ_i, with σ²_i = Σ_v p_v (log p_v)² − μ_i²."""
    entropy: Floats
    """H_i = −μ_i, in nats."""
    rank: Integers
    """1 + the number of tokens with a strictly greater logit than x_i."""
    top_log_probability: Floats
    """max_v log p_v."""
    top_id: Integers
    """The most likely token; of several, x_i if it is one of them, else the lowest id."""
    offsets: Integers
    """Characters [start, stop) of x_i in the view's text, shape [N, 2]; −1 if the tokenizer gives
    none."""
    tempered: Mapping[float, TemperedStatistics] = field(default_factory=dict)
    """By inverse temperature, for those of `detect.inverse_temperatures`."""
    reason: str | None = None
    """Reason why nothing could be scored (then N = 0), else None."""

    def __len__(self) -> int:
        return len(self.log_probability)


def unscored(reason: str) -> TokenStatistics:
    """Return the statistics of a text that cannot be scored, with the reason."""
    arrays: dict[str, Any] = {name: np.zeros(0, kind) for name, kind in _ARRAYS.items()}
    arrays["offsets"] = np.zeros((0, 2), np.int32)
    return TokenStatistics(**arrays, reason=reason)


def scored_from(statistics: TokenStatistics, start: int) -> TokenStatistics:
    """Return the statistics of a text's tokens from a position on.

    Args:
        statistics: of all tokens but the first, which is never scored.
        start: position in the text; 0 and 1 leave the statistics as they are.
    """
    first = max(0, start - 1)
    if not first or statistics.reason is not None:
        return statistics
    if first >= len(statistics):
        return unscored(CUT_BEFORE_START)
    tempered = {
        beta: TemperedStatistics(**{name: getattr(values, name)[first:] for name in _TEMPERED})
        for beta, values in statistics.tempered.items()
    }
    columns = {name: getattr(statistics, name)[first:] for name in _ARRAYS}
    return replace(statistics, **columns, tempered=tempered)


def token_columns(
    *,
    ids: Integers,
    log_probability: Floats,
    offsets: Integers,
    rank: Integers | None = None,
) -> TokenStatistics:
    """Return statistics without columns of the whole distribution; these are absent."""
    columns = {"ids": ids, "log_probability": log_probability, "offsets": offsets, "rank": rank}
    present_columns = {name: column for name, column in columns.items() if column is not None}
    result = unscored("")
    for name in _ARRAYS:
        del vars(result)[name]
    vars(result).update(present_columns, reason=None)
    return result


def write_statistics(
    folder: Path,
    example_ids: Sequence[str],
    statistics: Sequence[TokenStatistics],
    *,
    record: Mapping[str, Any] | None = None,
) -> None:
    """Write `statistics.arrow`: one row per example, in order.

    Args:
        folder: output folder.
        example_ids: one per row; ids may repeat.
        statistics: as many.
        record: plain JSON values stored with the rows (policy, model, view).
    """
    betas = tuple(next((row.tempered for row in statistics if row.tempered), ()))
    schema = _schema(betas).with_metadata({_METADATA_KEY: json.dumps(record or {}).encode()})
    with (
        pa.OSFile(str(folder / STATISTICS_FILE), "wb") as sink,
        pa.ipc.new_file(sink, schema) as writer,
    ):
        for start in range(0, len(statistics), _ROWS_A_BATCH):
            rows = statistics[start : start + _ROWS_A_BATCH]
            columns: list[pa.Array] = [
                pa.array(example_ids[start : start + _ROWS_A_BATCH], pa.string())
            ]
            columns += [
                _lists([vars(row).get(name) for row in rows], kind)
                for name, kind in _ARRAYS.items()
            ]
            columns += [
                _lists([_tempered_array(row, beta, name) for row in rows], np.float32)
                for beta in betas
                for name in _TEMPERED
            ]
            columns.append(pa.array([row.reason for row in rows], pa.string()))
            writer.write_batch(pa.record_batch(columns, schema=schema))


def read_statistics(folder: Path) -> dict[str, TokenStatistics]:
    """Read the statistics that `write_statistics` wrote, by example id (rows of one id are equal).

    Raises:
        InputError: a damaged file, or one by a version with fewer columns of token statistics.
    """
    path = folder / (PACKED_FILE if (folder / PACKED_FILE).is_file() else STATISTICS_FILE)
    result: dict[str, TokenStatistics] = {}
    with named_errors(path):
        for batch in _batches(path):
            betas = _inverse_temperatures(batch.schema.names)
            columns = {name: _split(batch.column(name), kind) for name, kind in _ARRAYS.items()}
            tempered = {
                beta: [_split(batch.column(_column(name, beta)), np.float32) for name in _TEMPERED]
                for beta in betas
            }
            reasons = batch.column("reason").to_pylist()
            absent = {
                name: batch.column(name).is_null().to_pylist()
                for name in _ARRAYS
                if batch.column(name).null_count
            }
            for row, example_id in enumerate(batch.column("example_id").to_pylist()):
                result[example_id] = TokenStatistics(
                    **{name: columns[name][row] for name in _ARRAYS},
                    tempered={
                        beta: TemperedStatistics(
                            **{
                                name: array[row]
                                for name, array in zip(_TEMPERED, arrays, strict=True)
                            }
                        )
                        for beta, arrays in tempered.items()
                        if reasons[row] is None
                    },
                    reason=reasons[row],
                )
                for name, nulls in absent.items():
                    if nulls[row]:
                        del vars(result[example_id])[name]
    return result


def packed(table: pa.Table) -> pa.Table:
    """Return rows without columns that `read_statistics` restores exactly: `entropy`, which is
    −`mean`.

    Other rows are unchanged.
    """
    if not table.schema.equals(_schema(_inverse_temperatures(table.schema.names))):
        return table
    mean, entropy = (
        pc.list_flatten(table[name]).to_numpy() for name in ("mean_log_prob", _ENTROPY)
    )
    return table.drop([_ENTROPY]) if (-mean).tobytes() == entropy.tobytes() else table


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    if path.name == STATISTICS_FILE:
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
            _check_columns(reader.schema, path)
            for number in range(reader.num_record_batches):
                yield with_current_columns(reader.get_batch(number), path)
        return
    with pq.ParquetFile(path) as file:
        _check_columns(file.schema_arrow, path, without=(_ENTROPY,))
        for stored in file.iter_batches(_ROWS_A_BATCH):
            batch = with_current_columns(stored, path)
            if _ENTROPY not in batch.schema.names:
                mean = batch.column("mean_log_prob")
                entropy = pa.array(-mean.values.to_numpy())
                mask = mean.is_null() if mean.null_count else None
                batch = batch.append_column(
                    _ENTROPY, pa.ListArray.from_arrays(mean.offsets, entropy, mask=mask)
                )
            yield batch


def _schema(betas: Sequence[float]) -> pa.Schema:
    columns = [("example_id", pa.string())]
    for name, kind in _ARRAYS.items():
        value = _PAIR if name == "offsets" else pa.from_numpy_dtype(kind)
        columns.append((name, pa.list_(value)))
    columns += [
        (_column(name, beta), pa.list_(pa.float32())) for beta in betas for name in _TEMPERED
    ]
    return pa.schema([*columns, ("reason", pa.string())])


def _column(name: str, beta: float) -> str:
    """Return the name of a statistic's column at one inverse temperature."""
    return f"{name}@{beta!r}"


def _inverse_temperatures(columns: Sequence[str]) -> list[float]:
    prefix = f"{_TEMPERED[0]}@"
    return [float(name.removeprefix(prefix)) for name in columns if name.startswith(prefix)]


def _check_columns(schema: pa.Schema, path: Path, *, without: Sequence[str] = ()) -> None:
    names = current_columns(path.name, schema.names)
    expected = _schema(_inverse_temperatures(names))
    lacking = [name for name in expected.names if name not in (*names, *without)]
    if lacking:
        raise InputError(
            f"lacks {', '.join(lacking)}: these token statistics are of an older version",
            where=str(path),
            hint="Run the experiment again; it then recomputes its statistics.",
        )
    types = dict(zip(names, schema.types, strict=True))
    for column in expected:
        if column.name in types and types[column.name] != column.type:
            raise InputError(
                f"its column {column.name!r} is of the type {types[column.name]}",
                where=str(path),
                allowed=str(column.type),
            )


def _tempered_array(row: TokenStatistics, beta: float, name: str) -> Floats:
    if beta not in row.tempered:
        return np.zeros(0, np.float32)
    return getattr(row.tempered[beta], name)


def _lists(rows: Sequence[npt.NDArray[Any] | None], kind: type) -> pa.Array:
    """Return one list per row, null for an absent one; rows of a matrix become pairs."""
    arrays = [np.zeros(0) if array is None else array for array in rows]
    offsets = np.concatenate([[0], np.cumsum([len(array) for array in arrays])])
    flat: pa.Array = pa.array(np.concatenate([array.reshape(-1) for array in arrays]).astype(kind))
    if arrays[0].ndim == 2:
        flat = pa.FixedSizeListArray.from_arrays(flat, type=_PAIR)
    absent = [array is None for array in rows]
    mask = pa.array(absent) if any(absent) else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat, mask=mask)


def _split(column: pa.ListArray, kind: type) -> list[npt.NDArray[Any]]:
    offsets = column.offsets.to_numpy()
    values: pa.Array = column.values
    pairs = pa.types.is_fixed_size_list(values.type)
    flat = (values.flatten() if pairs else values).to_numpy().astype(kind)
    array = flat.reshape(-1, 2) if pairs else flat
    return [array[start:stop] for start, stop in pairwise(offsets)]
