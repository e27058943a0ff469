"""A bundle: a ground truth as a folder to share, checked and read.

It contains the tables of the run's artifacts under their names in the store, and `bundle.json`: the
parts of the ground truth, the SHA-256 of each file, and `content`, the digest of everything,
independent of the packing time (`detect.ground_truth.packing`). Every byte is checked before use,
and no path in it leaves its folder: its author is not trusted. Cost: hashing, about 1 GB/s, and
reading, 100 MB/s.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from detect.ground_truth.ground_truth import (
    Description,
    GroundTruth,
    ScoredModel,
    read_ground_truth,
)
from detect.registry import detector_names
from detect.scores.table import SCORES_FILE, read_scores
from inject.bounded_files import check_unpacked, open_regular
from inject.digest import digest, file_digest
from inject.errors import InputError, first_line
from inject.examples.example import EXAMPLES_FILE
from inject.tables import named_errors, unpacked_bytes

HEADER = "bundle.json"
FORMAT = "spikein ground truth"
VERSION = 5
_VERSIONS = (4, VERSION)
"""Version 4 contained every part, with token tables as Arrow files."""

FILE = re.compile(r"(?!\.)[^/\\]+/(?!\.)[^/\\]+/(?!\.)[^/\\]+")
_MOST_ROWS = 10_000_000
_MOST_BYTES = 8_000_000_000
"""Maximum size of a table in memory; in a file, repeated values take almost no bytes."""
_HEADER_BYTES = 1 << 26
_UNNAMED = ("content", "created")
"""Header fields that its digest does not cover."""
_HINT = "Get the bundle again from where it was published, or pack the run again: spikein bundle."


def read_bundle(path: Path) -> GroundTruth:
    """Read a bundle by `write_bundle`; every byte is checked first.

    Raises:
        InputError: not a bundle, another version, a missing or changed file, or a file whose rows
            contradict each other; names the file.
    """
    values = read_header(path)
    described = check_files(path, values)
    try:
        truth = read_ground_truth(described, path, withheld=True, content=values["content"])
        for tables, model in zip(
            (*described.models, *described.unlabelled),
            (*truth.models, *truth.unlabelled),
            strict=True,
        ):
            _check_rows(model, path / tables.examples / EXAMPLES_FILE)
            _check_scores(model, path / tables.scores)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise _error(f"its tables cannot be read: {first_line(error)}", path) from error
    return truth


def check_files(path: Path, values: Mapping[str, Any]) -> Description:
    """Check every file of a bundle, and return its description.

    Args:
        path: the folder.
        values: values of its header.

    Raises:
        InputError: as `read_bundle`.
    """
    for name, sha256 in values["files"].items():
        if not (path / name).exists():
            raise _error(f"lacks the file {name}", path)
        _check_link(path, name)
        if file_digest(path / name) != sha256:
            raise _error(f"the checksum of {name} is wrong: its bytes were changed", path)
    _check_sizes(path, list(values["files"]))
    try:
        described = Description.model_validate(
            {name: values[name] for name in Description.model_fields if name in values}
        )
    except ValidationError as error:
        first = str(error).splitlines()[0]
        raise _error(f"{HEADER} does not describe a ground truth: {first}", path) from None
    stored = {name.rpartition("/")[0] for name in values["files"]}
    if lacking := sorted(described.artifacts - stored):
        raise _error(f"{HEADER} lists no file of {', '.join(lacking)}", path)
    # A reader uses every file in a folder, so each must be checked.
    present_files = {
        file.relative_to(path).as_posix()
        for name in stored
        for file in (path / name).iterdir()
        if not file.name.startswith(".")
    }
    if unlisted := sorted(present_files - set(values["files"])):
        raise _error(f"contains {unlisted[0]}, which {HEADER} does not list", path)
    return described


def is_bundle(path: Path) -> bool:
    """Return whether a path is a bundle, of any version; it may still be damaged."""
    return (path / HEADER).is_file() or path.is_file()


def read_header(path: Path) -> dict[str, Any]:
    """Return the content of `bundle.json`; the files are not checked.

    Raises:
        InputError: not a bundle, another version, changed, or a file outside the folder.
    """
    if path.is_file():
        raise InputError(
            "is a file; a bundle is a folder since version 4, and was a file before",
            where=str(path),
            hint="Use the spikein that made it, or pack the run again: spikein bundle.",
        )
    if not (path / HEADER).exists():
        exists = path.is_dir()
        raise InputError(
            f"is not a bundle: it has no {HEADER}" if exists else "no such folder",
            where=str(path),
            hint="Pack a run first: spikein bundle RUN --out FOLDER.",
        )
    _check_link(path, HEADER)
    with open_regular(path / HEADER, purpose="bundle") as file:
        text = file.read(_HEADER_BYTES + 1)
    if len(text) > _HEADER_BYTES:
        raise _error(f"its {HEADER} has more than {_HEADER_BYTES:,} bytes", path)
    try:
        values = dict(json.loads(text))
        named = {name: value for name, value in values.items() if name not in _UNNAMED}
        content = digest(named)
    except (ValueError, TypeError, RecursionError) as error:
        raise _error(f"{HEADER} cannot be read: {error}", path) from None
    if values.get("format") != FORMAT:
        raise _error(f"is not a bundle: its {HEADER} has the format {values.get('format')!r}", path)
    if values.get("version") not in _VERSIONS:
        versions = " and ".join(map(str, _VERSIONS))
        raise InputError(
            f"is a bundle of version {values.get('version')!r}; this spikein reads {versions}",
            where=str(path),
            hint="Use the spikein that made it, or pack the run again: spikein bundle.",
        )
    if content != values.get("content"):
        raise _error(f"the checksum of {HEADER} is wrong: it was changed", path)
    files = values.get("files")
    if not isinstance(files, dict) or not files:
        raise _error(f"{HEADER} lists no files", path)
    for name in files:
        if not FILE.fullmatch(name):
            raise _error(f"the path of a file leaves the bundle: {name!r}", path)
    return values


def _error(problem: str, path: Path) -> InputError:
    return InputError(problem, where=str(path), hint=_HINT)


def _check_link(path: Path, name: str) -> None:
    """Reject a link out of the bundle; a link in the hub's cache leads to the cache's own files."""
    home = path.resolve()
    if home.parent.name == "snapshots":
        home = home.parents[1]
    if not (path / name).resolve().is_relative_to(home):
        raise _error(f"{name} is a link that leaves the bundle", path)


def _check_rows(model: ScoredModel, path: Path) -> None:
    for name, count in Counter(row.example_id for row in model.rows).most_common(1):
        if count > 1:
            raise _error(f"has the example {name} {count} times", path)


def _check_scores(model: ScoredModel, folder: Path) -> None:
    """Reject scores of other rows than they claim, and infinite scores of built-in detectors."""
    table = read_scores(folder, columns=["row", "example_id", "detector", "score"])
    places = pc.index_in(table["example_id"], pa.array([row.example_id for row in model.rows]))
    misplaced = pc.fill_null(pc.not_equal(places, table["row"]), True)
    built_in = pc.is_in(table["detector"], pa.array(detector_names()))
    for problem, wrong in (
        ("is not the row of its example", misplaced),
        ("has an infinite score", pc.and_(pc.is_inf(table["score"]), built_in)),
    ):
        if (first := pc.index(wrong, True).as_py()) >= 0:
            row, example_id, detector, _ = table.slice(first, 1).to_pylist()[0].values()
            raise _error(f"row {row} ({example_id}, {detector}) {problem}", folder / SCORES_FILE)


def _check_sizes(path: Path, names: Sequence[str]) -> None:
    """Reject tables that would fill the memory, without expanding repeated texts."""
    packed = sum((path / name).stat().st_size for name in names)
    others = 0
    for table in (path / name for name in names if name.endswith(".parquet")):
        with named_errors(table, hint=_HINT):
            rows = pq.read_metadata(table).num_rows
        size = 0
        for part in unpacked_bytes(table, hint=_HINT):
            size += part
            check_unpacked(others + size, packed, path, "bundle", hint=_HINT)
            if rows > _MOST_ROWS or size > _MOST_BYTES:
                raise InputError(
                    f"has {rows:,} rows, and {size:,} bytes or more once read",
                    where=str(table),
                    allowed=f"at most {_MOST_ROWS:,} rows and {_MOST_BYTES:,} bytes",
                    hint="Bundle fewer arms at a time: spikein bundle --arm.",
                )
        others += size
