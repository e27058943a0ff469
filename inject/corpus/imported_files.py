"""Files of an imported corpus that stay where they are: found where they lie now, known by content.

The corpus's facts name them by SHA-256 and never by a path, so that a copy in another folder is
the same corpus, and files that were moved are found where the experiment says they are. Where
nobody says it (an export of an old run), the places of the import are tried. Whoever opens the
corpus compares the content first. Cost: one reading of the files a process (about 1 GB/s with
the SHA instructions of recent processors), shared with that for the experiment's identity.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from inject.corpus.tokens import Shard
from inject.errors import InputError
from inject.reading.unchanged import content_digest

PLACES = "outside.json"
"""In the corpus folder: where the files lay when they were imported."""


def write_places(folder: Path, files: Sequence[Path]) -> None:
    """Write down where the files of an import lie."""
    text = json.dumps([str(file) for file in files], indent=1, ensure_ascii=False)
    (folder / PLACES).write_text(text + "\n", encoding="utf-8")


def shard_files(
    folder: Path, shards: Sequence[Shard], outside: Sequence[Path] | None
) -> tuple[Path, ...]:
    """Return where the shards lie, in the order of the stream.

    Args:
        folder: the corpus's.
        shards: its shards.
        outside: where those of somebody else lie; None for the places of the import.

    Raises:
        InputError: there are fewer files than shards, or the places cannot be read.
    """
    if not any(shard.outside for shard in shards):
        return tuple(folder / shard.name for shard in shards)
    found = _places(folder) if outside is None else list(outside)
    if len(found) < len(shards):
        raise InputError(
            f"the import names {len(found)} token files, and the corpus was made from "
            f"{len(shards)}",
            where=str(folder),
            hint="Name all files that were imported, in the same order.",
        )
    return tuple(found[: len(shards)])


def check_outside(shards: Sequence[Shard], files: Sequence[Path]) -> None:
    """Compare the files of somebody else with what was imported, by content.

    Raises:
        InputError: a file is gone or is another one; names it.
    """
    for shard, file in zip(shards, files, strict=True):
        if not shard.outside:
            continue
        if not file.is_file():
            raise InputError(
                "the token file is not here any more",
                where=str(file),
                hint="Say in corpus.imported where it is now; its content decides, not its place.",
            )
        if content_digest(file) != shard.file_sha256:
            raise InputError(
                "the token file is not the one that was imported: its content changed since",
                where=str(file),
                hint="Bring the imported file back, or run again to import this one.",
            )


def _places(folder: Path) -> list[Path]:
    path = folder / PLACES
    try:
        return [Path(str(one)) for one in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"cannot be read ({error})", where=str(path)) from error
