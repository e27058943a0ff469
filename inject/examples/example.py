"""One example, the files of a pool of them, and the parts that steps read of a pool.

An `Example` is a rendered row with the character spans of its parts, its side (member or
non-member) and its split (tune or test). `example_id` is a hash of the rendered text, so the same
text is the same example wherever it comes from. Held-out rows, which are neither trained on nor
scored, have a separate file, so that no reader of the examples mistakes one for an example.

A facet is the digest of a part of an artifact, taken when it is built. A step that declares to read
only a facet is not built again when the rest of its input changes: another `tune_share` draws no
plan again. Each facet names the parts that it omits, so that any addition to an artifact counts.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from inject.digest import digest, text_digest
from inject.errors import InputError
from inject.step import InputProjection
from inject.tables import read_parquet

EXAMPLES_FILE = "examples.parquet"
HELD_OUT_FILE = "held_out.parquet"
DROPPED_ROWS_FILE = "dropped_rows.parquet"

Side = Literal["member", "nonmember"]
Split = Literal["tune", "test"]


class Span(NamedTuple):
    """Characters `start` (included) to `stop` (excluded) of the rendered text."""

    start: int
    stop: int


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a dataset before it is rendered."""

    fields: Mapping[str, Any]
    """The fields for templates: strings, or lists of strings. Plain JSON values."""
    source_id: str
    """The row's own id, or `file:line`; unique within the dataset."""
    group: str | None = None
    """Rows that share a passage share a group; None means a separate group."""
    stratum: str = ""
    """Members and non-members are drawn in equal shares from each stratum."""
    paraphrases: tuple[Mapping[str, Any], ...] = ()
    """The same row in other words, each as complete `fields`."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A rendered row; with side and split once they are drawn."""

    example_id: str
    """First 16 hex digits of the SHA-256 of `text`."""
    dataset: str
    source_id: str
    group: str
    stratum: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    text: str
    spans: Mapping[str, Span] = field(default_factory=dict)
    """Spans of `question`, `passage`, `answer` … if the template names them."""
    paraphrases: tuple[str, ...] = ()
    protected: bool = False
    """A protected text never appears in output made to be shared, only its id and scores."""
    side: Side = "nonmember"
    split: Split = "test"


class DropReason(StrEnum):
    """Why a row is not used as it is; the last two drop none."""

    DUPLICATE = "duplicates"
    EMPTY = "empty"
    UNANSWERED = "without an answer"
    TOO_SHORT = "for their length (shorter than pool.min_tokens)"
    TOO_LONG = "for their length (longer than the context or pool.max_tokens)"
    EQUAL_ONCE_CUT = "equal to another row once cut"
    NEAR_DUPLICATE = "near-duplicates"
    NEAR_DUPLICATE_ACROSS = "near-duplicates of rows of other datasets"
    CUT = "cut to the context or pool.max_tokens"
    CUT_BEFORE_ANSWER = "cut to the context or pool.max_tokens, before the end of their answer"


class DroppedRow(NamedTuple):
    """A row that was dropped, or cut, before sides were drawn, with the reason."""

    dataset: str
    source_id: str
    drop_reason: DropReason
    duplicate_of: str | None = None
    """Dataset and source_id of the row that stays in its place."""
    similarity: float | None = None


def example_id(text: str) -> str:
    """Return the id of a rendered text: 16 hex digits of its SHA-256."""
    return text_digest(text)[:16]


_SPAN = pa.struct([("name", pa.string()), ("start", pa.int32()), ("stop", pa.int32())])
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("example_id", "dataset", "source_id", "group")),
        *((name, pa.string()) for name in ("stratum", "fields", "text")),
        ("spans", pa.list_(_SPAN)),
        ("paraphrases", pa.list_(pa.string())),
        ("protected", pa.bool_()),
        ("side", pa.string()),
        ("split", pa.string()),
    ]
)


def examples_table(examples: Iterable[Example]) -> pa.Table:
    """Return examples as a table (columns as in `SCHEMA`; `fields` as JSON)."""
    rows = [
        {
            **vars(example),
            "fields": json.dumps(example.fields, ensure_ascii=False, sort_keys=True),
            "spans": [{"name": name, **span._asdict()} for name, span in example.spans.items()],
        }
        for example in examples
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def write_examples(folder: Path, examples: Iterable[Example]) -> None:
    """Write the pool into a folder, as `examples.parquet`."""
    pq.write_table(examples_table(examples), folder / EXAMPLES_FILE)


def read_examples(folder: Path) -> list[Example]:
    """Read the examples that `write_examples` wrote, in the same order.

    Raises:
        InputError: naming the file, if it is missing or damaged, or has an unknown side or split.
    """
    return _read(folder / EXAMPLES_FILE)


def write_dropped_rows(folder: Path, losses: Sequence[DroppedRow]) -> None:
    """Write the dropped and cut rows, with reasons, as `dropped_rows.parquet`."""
    types = [pa.string(), pa.string(), pa.string(), pa.string(), pa.float64()]
    schema = pa.schema(list(zip(DroppedRow._fields, types, strict=True)))
    table = pa.Table.from_pylist([row_loss._asdict() for row_loss in losses], schema=schema)
    pq.write_table(table, folder / DROPPED_ROWS_FILE)


def write_held_out(folder: Path, examples: Sequence[Example]) -> None:
    """Write the held-out rows into a folder as `held_out.parquet`, if there are any."""
    if examples:
        pq.write_table(examples_table(examples), folder / HELD_OUT_FILE)


def read_held_out(folder: Path) -> list[Example]:
    """Read the rows that `write_held_out` wrote, in the same order; empty without such a file."""
    path = folder / HELD_OUT_FILE
    return _read(path) if path.is_file() else []


def _read(path: Path) -> list[Example]:
    table = read_parquet(path)
    for name, values in (("side", get_args(Side)), ("split", get_args(Split))):
        if unknown := set(table[name].unique().to_pylist()) - set(values):
            raise InputError(
                f"has the {name} {unknown.pop()!r}", where=str(path), allowed=" and ".join(values)
            )
    return examples_of(table)


def examples_of(table: pa.Table) -> list[Example]:
    """Return the examples of a table with the columns of `SCHEMA`, in the same order."""
    return [
        Example(
            **{
                **row,
                "fields": json.loads(row["fields"]),
                "spans": {span["name"]: Span(span["start"], span["stop"]) for span in row["spans"]},
                "paraphrases": tuple(row["paraphrases"]),
            }
        )
        for row in table.select(SCHEMA.names).to_pylist()
    ]


def members(examples: Sequence[Example]) -> list[Example]:
    """Return the examples on the member side, in order."""
    return [example for example in examples if example.side == "member"]


UNSPLIT = InputProjection(facet="unsplit", files=(EXAMPLES_FILE,))
"""The rows in their order, with their sides, but not their split into tune and test."""
TEXTS = InputProjection(facet="texts", files=(EXAMPLES_FILE,))
"""Ids and texts in their order."""
AUDITED = InputProjection(facet="audited", files=(EXAMPLES_FILE, HELD_OUT_FILE))
"""As `UNSPLIT`, and the held-out rows."""
HELD_OUT = InputProjection(facet="held_out", files=(HELD_OUT_FILE,))
"""The held-out rows in their order."""

OF_EXAMPLES: Mapping[str, str] = {
    name: f"{__name__}:{name}" for name in ("unsplit", "texts", "audited", "held_out")
}
"""The facets of a pool, for `Step.facets`."""


def unsplit(folder: Path) -> str:
    """Return the digest of the content that `UNSPLIT` names."""
    return _rows_digest(read_examples(folder), _without_split)


def texts(folder: Path) -> str:
    """Return the digest of the content that `TEXTS` names."""
    return _rows_digest(read_examples(folder), lambda row: [row.example_id, row.text])


def held_out(folder: Path) -> str:
    """Return the digest of the content that `HELD_OUT` names."""
    return _rows_digest(read_held_out(folder), _without_split)


def audited(folder: Path) -> str:
    """Return the digest of the content that `AUDITED` names."""
    return digest([unsplit(folder), held_out(folder)])


def _without_split(row: Example) -> object:
    return {name: value for name, value in asdict(row).items() if name != "split"}


def _rows_digest(rows: Sequence[Example], plain: Callable[[Example], object]) -> str:
    state = hashlib.sha256()
    for row in rows:
        state.update(json.dumps(plain(row), sort_keys=True).encode())
        state.update(b"\n")
    return state.hexdigest()
