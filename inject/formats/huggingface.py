"""Token ids in rows: Hugging Face datasets, Parquet and Arrow files with a column of ids.

Rows are read batch by batch through memory maps (the hub: streamed) and arrive as one flat array
with offsets, so that nothing is done row by row in Python. Ids stay unchanged; if a row is a
document, the end token is added to rows without one, and empty rows are skipped.

A dataset is written as a folder that `datasets.load_from_disk` opens: Arrow streams
`data-00000-of-0000N.arrow` with one column `input_ids` (lists of int32), plus `dataset_info.json`
and `state.json`. The library is not used, so that the same stream always gives the same bytes (the
library's fingerprint is random). One batch of rows is in memory at a time.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from pydantic import model_validator

from inject.corpus.imported_layout import I64, found_files
from inject.digest import digest, file_digest
from inject.errors import InputError, reading, unknown_name
from inject.formats.exported_rows import BLOCK, ExportedRows
from inject.hub.dataset_rows import HubDataset, hub_errors, load_hub_dataset
from inject.hub.resolver import identity_commit
from inject.model_folder import resolve_inside
from inject.reading.rows import content_digest
from inject.settings import Settings
from inject.tables import named_errors

if TYPE_CHECKING:
    import pyarrow as pa

SHARD_TOKENS = 125_000_000
"""A file is closed when it has at least this many ids: 500 MB."""
_MOST = 2**31 - 1
# Newer versions of the library write `List` here, which older ones cannot read.
_FEATURES = {
    "input_ids": {"feature": {"dtype": "int32", "_type": "Value"}, "_type": "Sequence"},
}
_ARROW_FILE = b"ARROW1"
_BATCH = 1000
_HINT = "`column:` names another one."
_LOCAL = "Check the network, the id and your access to it, or give `path:` with local files."


class IdBatch(NamedTuple):
    """Consecutive rows."""

    first: int
    """Number of the first row."""
    ids: I64
    """Ids of all rows, one row after the other."""
    edges: I64
    """The start of each row in `ids`, and the end of the last one; shape [rows + 1]."""


class DatasetsImport(Settings):
    """Rows of token ids: a dataset of the Hugging Face library, Parquet or Arrow files."""

    kind: Literal["datasets"]
    """`datasets`."""
    path: str | None = None
    """A folder of `save_to_disk`, or a Parquet or Arrow file, a folder or glob of such files."""
    id: str | None = None
    """Id of a dataset on the hub, instead of `path`."""
    config: str | None = None
    """Configuration (subset) on the hub, if there are several."""
    split: str | None = None
    """The split, if there are several; on the hub `train` by default."""
    revision: str | None = None
    """Branch, tag or commit on the hub; the newest commit if absent."""
    column: str = "input_ids"
    """Column of the ids."""
    rows: Literal["documents", "stream"] = "documents"
    """`documents`: each row is a document, and gets the end token if it lacks one; `stream`:
    rows are consecutive pieces of one stream (packed windows), and documents end with the end
    token."""

    @model_validator(mode="after")
    def _one_place(self) -> "DatasetsImport":
        if (self.path is None) == (self.id is None):
            raise ValueError("give exactly one of path and id")
        return self

    def label(self) -> str:
        """Return a short name for messages and reports."""
        return f"datasets {self.path or self.id}"

    def identity(self) -> dict[str, Any]:
        """Return the inputs that determine the tokens: the files' content, or the hub's commit.

        Raises:
            InputError: no files, or an unreachable hub.
        """
        place: dict[str, Any]
        if self.id is not None:
            commit = identity_commit("dataset", self.id, self.revision, label=f"corpus {self.id}")
            place = {"id": self.id, "commit": commit, "config": self.config}
        else:
            state = [_state(path) for path in self._saved_states()]
            place = {"files": [content_digest(path) for path in self._files()], "state": state}
        return {**self.model_dump(include={"kind", "split", "column", "rows"}), **place}

    def batches(self) -> Iterator[IdBatch]:
        """Yield all rows in their order.

        Raises:
            InputError: unreadable data, no such column, or a column without ids.
        """
        row = 0
        for place, table in self._tables():
            batch = _ids(table, self.column, row, place)
            yield batch
            row += len(batch.edges) - 1

    def _files(self) -> list[Path]:
        kinds = (".arrow",) if self._saved_states() else (".parquet", ".arrow")
        return found_files(self.path or "", *kinds, purpose="datasets")

    def _saved_states(self) -> list[Path]:
        """Return the `state.json` of each split that `save_to_disk` wrote; [] for other files."""
        folder = Path(self.path or "").expanduser()
        return sorted([*folder.glob("state.json"), *folder.glob("*/state.json")])

    def _tables(self) -> Iterator[tuple[str, "pa.Table"]]:
        """Yield the name of each table for messages, and the table."""
        if self.id is not None:
            yield from ((self.label(), table) for table in self._from_hub(self.id))
            return
        for path in self._files_in_order():
            with named_errors(path, hint="Copy or download it again."):
                yield from ((str(path), table) for table in _from_file(path))

    def _files_in_order(self) -> list[Path]:
        """Return the files to read; of a saved dataset, those that its state names."""
        states = {state.parent.name: state for state in self._saved_states()}
        if not states:
            return self._files()
        state = Path(self.path or "").expanduser() / "state.json"
        if not state.is_file():
            if self.split not in states:
                raise InputError(
                    f"there is no split {self.split!r}" if self.split else "it has several splits",
                    where=self.label(),
                    allowed=", ".join(f"split: {name}" for name in states),
                )
            state = states[self.split]
        names = [str(file.get("filename")) for file in _json(state).get("_data_files") or []]
        return [resolve_inside(state.parent, name, source=str(state)) for name in names]

    def _from_hub(self, name: str) -> Iterator["pa.Table"]:
        place = HubDataset(name, self.split or "train", self.config)
        with hub_errors(self.label(), hint=_LOCAL):
            loaded = load_hub_dataset(place, revision=self.revision, streaming=True)
            yield from loaded.with_format("arrow").iter(batch_size=_BATCH)


def _from_file(path: Path) -> Iterator["pa.Table"]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        with pq.ParquetFile(path, memory_map=True) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                yield pa.Table.from_batches([batch])
        return
    with pa.memory_map(str(path)) as source:
        # The library writes streams, other programs the file format with its footer.
        footer = source.read(len(_ARROW_FILE)) == _ARROW_FILE
        source.seek(0)
        if footer:
            reader = pa.ipc.open_file(source)
            for index in range(reader.num_record_batches):
                yield pa.Table.from_batches([reader.get_batch(index)])
        else:
            for batch in pa.ipc.open_stream(source):
                yield pa.Table.from_batches([batch])


def _ids(table: "pa.Table", column: str, first: int, place: str) -> IdBatch:
    import pyarrow as pa

    if column not in table.column_names:
        raise unknown_name(
            f"no column {column!r}", column, table.column_names, where=place, hint=_HINT
        )
    chunks = table[column].combine_chunks()
    rows = chunks if isinstance(chunks, pa.Array) else pa.concat_arrays(chunks.chunks)
    kind = rows.type
    is_list = isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType)
    if not is_list or not pa.types.is_integer(kind.value_type):
        raise InputError(
            f"column {column!r} contains {kind}, not lists of integers", where=place, hint=_HINT
        )
    lengths = rows.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    flat = rows.flatten()
    edges = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    if flat.null_count:
        at = int(flat.is_null().to_numpy(zero_copy_only=False).argmax())
        row = int(np.searchsorted(edges, at, side="right")) - 1
        raise InputError("a token id is null", where=f"{place}: row {first + row:,}")
    return IdBatch(first, flat.to_numpy(zero_copy_only=False).astype(np.int64), edges)


def _state(path: Path) -> dict[str, Any]:
    """Return which files make a split, in which order; not the library's random fingerprint."""
    values = _json(path)
    return {name: values.get(name) for name in ("_data_files", "_indices_files", "_split")}


def _json(path: Path) -> dict[str, Any]:
    with reading(path):
        values = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(values, dict):
        raise InputError("not the state of a saved dataset", where=str(path))
    return values


def write_dataset(folder: Path, rows: ExportedRows) -> None:
    """Write the rows of a stream, its documents or windows, into the folder of an export.

    Raises:
        InputError: a document has too many tokens for one row.
    """
    import pyarrow as pa

    metadata = {"huggingface": json.dumps({"info": {"features": _FEATURES}})}
    schema = pa.schema([("input_ids", pa.list_(pa.int32()))], metadata=metadata)
    batches = rows.batches(BLOCK)
    names: list[str] = []
    batch = next(batches, None)
    while batch is not None:
        names.append(f"data-{len(names):05d}.arrow")
        tokens = 0
        with pa.ipc.new_stream(str(folder / names[-1]), schema) as writer:
            while batch is not None and tokens < SHARD_TOKENS:
                edges, ids = batch
                if len(ids) > _MOST:
                    raise InputError(
                        f"a document of {len(ids):,} tokens is too long for one row",
                        allowed=f"at most {_MOST:,} tokens",
                        hint="Export windows instead of documents.",
                    )
                offsets = pa.array((edges - edges[0]).astype(np.int32))
                lists = pa.ListArray.from_arrays(offsets, pa.array(ids.astype(np.int32)))
                writer.write_batch(pa.record_batch([lists], schema=schema))
                tokens += len(ids)
                batch = next(batches, None)
    files = []
    for number, name in enumerate(names):
        files.append({"filename": f"data-{number:05d}-of-{len(names):05d}.arrow"})
        (folder / name).rename(folder / files[-1]["filename"])
    digests = [file_digest(folder / file["filename"]) for file in files]
    state: dict[str, object] = {
        "_data_files": files,
        "_fingerprint": digest(digests)[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    info = {"citation": "", "description": "", "features": _FEATURES, "homepage": "", "license": ""}
    for name, values in (("dataset_info.json", info), ("state.json", state)):
        text = json.dumps(values, indent=2, sort_keys=True)
        (folder / name).write_text(text, encoding="utf-8")
