"""Packs a ground truth as a bundle (`detect.ground_truth.bundle`), as small as its use allows.

Every bundle contains the data to evaluate a new detector: sides, copies, all stored scores, and the
token tables of the plain text under each model and its reference. The inputs of further kinds of
need are parts, included by name on request (`Need.parts`). Each kind also declares the files to
include, and their columns that show a text (`Need.leaves`): these are null in the rows of protected
datasets. No number is rounded. Cost: reading, and 30 MB/s of writing.
"""

import json
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from detect.evidence.needs import every_kind
from detect.ground_truth.bundle import FORMAT, HEADER, VERSION
from detect.ground_truth.ground_truth import Description, ModelTables
from detect.scores.table import SCORES_FILE
from detect.token_statistics import PACKED_FILE, packed
from inject.digest import digest
from inject.errors import unknown_name
from inject.examples.example import (
    EXAMPLES_FILE,
    HELD_OUT_FILE,
    Example,
    examples_table,
    read_examples,
    read_held_out,
)
from inject.files import write_text
from inject.formats.folder import exporting, file_facts
from inject.stream.exposures import EXPOSURES_FILE
from inject.tables import write_compact

ALL = "all"
"""Requests every part."""
HELD_OUT = "held_out"
"""The part of the held-out rows themselves."""


class BundleFacts(NamedTuple):
    """Summary of a bundle."""

    content: str
    """The digest of its content."""
    models: int
    rows: int
    withheld: int
    """Rows whose texts are withheld."""
    size: int
    """Bytes."""
    left_out: tuple[str, ...] = ()
    """Parts that the run has and the bundle does not."""


def write_bundle(
    out: Path,
    described: Description,
    root: Path,
    *,
    parts: Collection[str] = (),
    unlabelled: Mapping[str, str] | None = None,
) -> BundleFacts:
    """Write a bundle atomically.

    Args:
        out: the folder.
        described: description of the ground truth.
        root: the folder of its artifacts.
        parts: optional parts to include; `all` for everything.
        unlabelled: artifacts whose labels are removed, by their names in the bundle.

    Raises:
        InputError: no such part; the folder exists and is not empty, or cannot be written.
    """
    described = with_parts(described, parts)
    models = (*described.models, *described.unlabelled)
    scored = {model.examples for model in models}
    hidden = unlabelled or {}
    sources = {name: root / hidden.get(name, name) for name in sorted(described.artifacts)}
    pools = {name: (read_examples(sources[name]), read_held_out(sources[name])) for name in scored}
    protected = {
        row.example_id for pool in pools.values() for part in pool for row in part if row.protected
    }
    held_out = any(_part(name) == HELD_OUT for model in models for name in model.inputs)
    with exporting(out) as folder:
        for name, source in sources.items():
            _pack_artifact(source, folder / name, protected)
            if (source / EXAMPLES_FILE).is_file():
                # Pools that are not scored only record the members of a shadow model.
                _pack_pool(source, folder / name, scored=name in scored, held_out=held_out)
            if name in hidden:
                _remove_labels(folder / name, scored=name in scored)
        content = _write_header(folder, described)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    ids = {row.example_id for rows, _ in pools.values() for row in rows}
    return BundleFacts(
        content=content,
        models=len(models),
        rows=len(ids),
        withheld=len(ids & protected),
        size=size,
        left_out=tuple(sorted({part for model in described.models for part in model.left_out})),
    )


def with_parts(described: Description, parts: Collection[str]) -> Description:
    """Return a ground truth with only the requested parts.

    Raises:
        InputError: if the run has no such part.
    """
    names = parts_of(described)
    for part in parts:
        if part not in (*names, ALL):
            raise unknown_name(
                f"the run has no part {part!r}",
                part,
                (*names, ALL) if names else (),
                where="--include",
                none="none: bundles include everything",
                hint="Every bundle contains the plain text, the reference and token frequencies; "
                "`spikein bundle RUN --list` prints the size of the rest.",
            )
    chosen = {None, *(names if ALL in parts else parts)}

    def trim(tables: ModelTables) -> ModelTables:
        by_part = {name: _part(name) for name in tables.inputs}
        inputs = {name: of for name, of in tables.inputs.items() if by_part[name] in chosen}
        left_out = sorted({part for part in by_part.values() if part and part not in chosen})
        return tables.model_copy(update={"inputs": inputs, "left_out": tuple(left_out)})

    return described.model_copy(
        update={
            name: tuple(map(trim, getattr(described, name))) for name in ("models", "unlabelled")
        }
    )


def parts_of(described: Description) -> list[str]:
    """Return the optional parts of a ground truth, by name."""
    names = {name for model in described.models for name in model.inputs}
    return sorted({part for part in map(_part, names) if part})


def part_sizes(described: Description, root: Path) -> dict[str, int]:
    """Return the approximate bytes of every bundle, under the name ``, and of each optional part.

    For each part one table of a kind is packed; the others are assumed to shrink as much.
    """
    base = with_parts(described, ()).artifacts
    sizes = {"": _packed_size(base, root)}
    for part in parts_of(described):
        sizes[part] = _packed_size(with_parts(described, [part]).artifacts - base, root)
    return sizes


def _packed_size(artifacts: Collection[str], root: Path) -> int:
    by_kind: dict[str, list[str]] = {}
    for name in sorted(artifacts):
        by_kind.setdefault(name.partition("/")[0], []).append(name)
    total = 0.0
    for names in by_kind.values():
        with TemporaryDirectory() as folder:
            out = Path(folder) / "packed"
            _pack_artifact(root / names[0], out, ())
            packed_bytes = sum(path.stat().st_size for path in out.iterdir())
        whole = [sum(path.stat().st_size for path in _leaf_files(root / name)) for name in names]
        total += packed_bytes * sum(whole) / max(whole[0], 1)
    return round(total)


@cache
def _part(name: str) -> str | None:
    """Return the part of an input of the scores; None: every bundle includes it."""
    patterns = {part: like for kind in every_kind() for part, like in kind.parts.items()}
    return next((part for part, like in patterns.items() if re.fullmatch(like, name)), None)


def _write_header(folder: Path, described: Description) -> str:
    """Write `bundle.json`, without inputs that contribute no file; return the digest of
    everything."""
    facts = file_facts(folder)
    folders = {name.rpartition("/")[0] for name in facts}
    values = described.model_dump(mode="json")
    if not described.unlabelled:
        del values["unlabelled"]
    for model in (*values["models"], *values.get("unlabelled", ())):
        model["inputs"] = {name: of for name, of in model["inputs"].items() if of in folders}
    files = {name: file["sha256"] for name, file in facts.items()}
    values = {"format": FORMAT, "version": VERSION, **values, "files": files}
    content = digest(values)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    values |= {"content": content, "created": created}
    write_text(folder / HEADER, json.dumps(values, indent=1, ensure_ascii=False))
    return content


@cache
def _leaf_columns() -> Mapping[str, Sequence[str]]:
    """Return the files to include, each with the columns that show a text."""
    files: dict[str, Sequence[str]] = {SCORES_FILE: (), EXPOSURES_FILE: ()}
    for kind in every_kind():
        files |= kind.leaves
    return files


def _leaf_files(artifact: Path) -> Iterator[Path]:
    return (path for path in sorted(artifact.iterdir()) if path.name in _leaf_columns())


def _pack_artifact(artifact: Path, out: Path, protected: Collection[str]) -> None:
    out.mkdir(parents=True)
    for path in _leaf_files(artifact):
        _pack(path, out / path.name, protected)


def _pack(path: Path, out: Path, protected: Collection[str]) -> None:
    """Write one file without columns that show a protected text, and without its metadata."""
    columns = _leaf_columns()[path.name]
    if path.suffix == ".parquet":
        write_compact(_redact(pq.read_table(path), columns, protected), out)
    elif path.suffix == ".arrow":
        with pa.memory_map(str(path)) as source:
            table = _redact(pa.ipc.open_file(source).read_all(), columns, protected)
            write_compact(packed(table), out.with_name(PACKED_FILE))
    elif columns:
        values = json.loads(path.read_text(encoding="utf-8"))
        for entry in values.values():
            entry |= {name: [None] * len(entry[name]) for name in columns}
        write_text(out, json.dumps(values))
    else:
        shutil.copyfile(path, out)


def _redact(table: pa.Table, columns: Sequence[str], protected: Collection[str]) -> pa.Table:
    if columns:
        hidden = pc.is_in(table["example_id"], pa.array(sorted(protected), pa.string()))
    for name in columns:
        at = table.column_names.index(name)
        column = pc.if_else(hidden, pa.scalar(None, table[name].type), table[name])
        table = table.set_column(at, name, column)
    return table.replace_schema_metadata(None)


def _pack_pool(folder: Path, out: Path, *, scored: bool, held_out: bool) -> None:
    """Write the rows of a pool, with blanks instead of protected texts, or of all texts."""

    def shown(row: Example) -> Example:
        if scored and not row.protected:
            return row
        return replace(row, text=" " * len(row.text), fields={}, spans={}, paraphrases=())

    write_compact(examples_table(map(shown, read_examples(folder))), out / EXAMPLES_FILE)
    if scored and held_out and (rows := read_held_out(folder)):
        write_compact(examples_table(map(shown, rows)), out / HELD_OUT_FILE)


def _remove_labels(folder: Path, *, scored: bool) -> None:
    """Remove everything that depends on the sides of the rows: even their order does.

    Args:
        folder: a packed artifact.
        scored: its pool is of the scored model, not of a shadow model, whose sides are evidence.
    """
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        constant = {"split": "test"} | ({"side": "nonmember"} if scored else {})
        for name in set(constant) & set(table.column_names):
            values = pa.array([constant[name]] * len(table), pa.string())
            table = table.set_column(table.column_names.index(name), name, values)
        stored_scores = path.name == SCORES_FILE
        # The ids are digests of the texts.
        write_compact(table.slice(0, 0) if stored_scores else table.sort_by("example_id"), path)
