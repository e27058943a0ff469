"""A side's output as digests of contents: tables by column, weights by tensor, other files whole.

Identities, times and paths are omitted, so that a change which moves code, renames steps or gives
them other identities can still be compared to the last bit. A key is KIND/LABEL/FILE of the store,
`runs/NAME/FILE`, `detect/FILE` or `bundle/KIND/LABEL/FILE`; artifacts with one label are a set.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from analysis.findings import FINDINGS_FILE, as_table, questions
from inject.reading.former_names import with_current_columns

TIMED = frozenset({"tokens_per_second", "mfu", "seconds"})
"""Columns of durations."""
COMPARED = frozenset({".parquet", ".arrow", ".npy", ".bin", ".safetensors", ".csv"})
"""Tables, weights and tokens; the JSON files contain their identities and counts."""
ALSO = frozenset({"tokenizer.json", "rows.jsonl"})
IDENTITIES = frozenset({"models.parquet"})
"""Tables that name artifacts by their digests."""

Columns = dict[str, str]
"""A digest for each column, tensor, or for the whole file under an empty name."""
Contents = dict[str, list[Columns]]
"""The contents of each key: one for an artifact, more if artifacts share a label."""


def contents(out: Path) -> Contents:
    """Return the contents of a side's output.

    Raises:
        ValueError: The side has no output.
    """
    by_file: defaultdict[str, list[Columns]] = defaultdict(list)
    for key, name, data in _files(out):
        if name == FINDINGS_FILE:
            for question, table in _questions(name, data):
                own = key.replace(name, f"{question}.parquet")
                by_file[own].append(_columns(table))
        elif name not in IDENTITIES:
            by_file[key].append(digests(name, data))
    if not by_file:
        raise ValueError(f"{out} contains no files to compare")
    for same in by_file.values():
        same.sort(key=lambda columns: sorted(columns.items()))
    return dict(by_file)


def digests(name: str, data: bytes) -> Columns:
    """Return the digests of one file's parts."""
    suffix = Path(name).suffix
    if suffix == ".parquet":
        return _columns(_table(name, data))
    if suffix == ".arrow":
        table = ipc.open_file(pa.BufferReader(data)).read_all()
        return _columns(with_current_columns(table, Path(name)))
    if suffix == ".safetensors":
        return _tensors(data)
    return {"": _digest(data)}


def _files(out: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield each compared file: its key, its name and its bytes."""
    # A bundle contains artifacts in the store's layout.
    for root in (out / "store", *sorted(out.glob("*.bundle"))):
        prefix = "" if root.name == "store" else "bundle/"
        for artifact in sorted(root.glob("[!.]*/[!.]*")):
            label = artifact.name.rsplit("-", 1)[0]
            for path in _compared(artifact):
                # Figures are in the runs' folders, whichever step drew them.
                if path.parent.name == "figures":
                    continue
                key = f"{prefix}{artifact.parent.name}/{label}/{path.relative_to(artifact)}"
                yield key, path.name, path.read_bytes()
    for path in _compared(out / "runs"):
        # Runs are numbered; of each experiment there is one.
        parts = [part for part in path.relative_to(out).parts if not part.isdecimal()]
        yield "/".join(parts), path.name, path.read_bytes()
    for path in sorted(out.glob("detect.*")):
        yield f"detect/{path.name}", path.name, path.read_bytes()


def _compared(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and _is_compared(path))


def _is_compared(path: Path) -> bool:
    return path.suffix in COMPARED or path.name in ALSO


def _table(name: str, data: bytes) -> pa.Table:
    return with_current_columns(pq.read_table(pa.BufferReader(data)), Path(name))


def _questions(name: str, data: bytes) -> Iterator[tuple[str, pa.Table]]:
    """Yield the table of each question, so that a difference names it."""
    findings = _table(name, data)
    for question in questions(findings):
        yield question, as_table(findings, question)


def _columns(table: pa.Table) -> Columns:
    by_column = {"": f"{table.num_rows} rows"}
    for field in table.schema:
        if field.name not in TIMED:
            # repr keeps NaN, the sign of zero and the last bit of floats.
            values = repr(table[field.name].to_pylist())
            by_column[field.name] = _digest(f"{field.type} {values}".encode())
    return by_column


def _tensors(data: bytes) -> Columns:
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    body = memoryview(data)[8 + length :]
    by_name = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            kind = f"{tensor['dtype']} {tensor['shape']} ".encode()
            by_name[name] = _digest(kind + bytes(body[begin:end]))
    return by_name


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
