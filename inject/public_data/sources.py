"""The files of the hub that the layout is made of: brought by hand, downloaded, or read in part.

A download lies in a hidden folder until its file of the layout is made, so that no protected row
stays behind in plain text, and is checked against the size and the digest that the hub gives for
the pinned commit. The library resumes a connection that breaks, and begins a file anew where the
process ended; whole files here have at most 21 MB.
"""

import errno
import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inject.digest import file_digest
from inject.errors import InputError, SpikeinError, Unreachable, did_you_mean, first_line
from inject.hub.resolver import describe_repository
from inject.public_data.catalogue import DataFile
from inject.reading.row_parsers import PARSERS, format_of

DOWNLOADS = "downloads"
"""Where files that were brought by hand are looked for, below the data folder."""
_BLOCK = 1 << 20
_BATCH = 64
"""Rows of a Parquet file that are turned into Python's values at a time."""

_OF_THIS_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG}


class Sources:
    """Where the files of the hub come from that one file of the layout is made of."""

    def __init__(self, file: DataFile, folder: Path, hidden: Path) -> None:
        """Look for files that were brought in `folder`; download to `hidden`."""
        self.file = file
        self.places = {
            source: folder / DOWNLOADS / file.hub.replace("/", "--") / source
            for source in file.sources
        }
        """Where each is looked for that was brought by hand."""
        self.facts: list[dict[str, Any]] = []
        """What the manifest says of each that was read."""
        self._hidden = hidden

    def brought(self) -> bool:
        """Return whether all of them were brought by hand."""
        return all(place.is_file() for place in self.places.values())

    def whole(self, source: str) -> Path:
        """Return where a file of the hub lies, brought by hand or downloaded now.

        Raises:
            Unreachable: the hub gives no answer.
            InputError: it has no such file, gives no access, or what arrived is not what it has.
        """
        path = self.places[source]
        brought = path.is_file()
        if not brought:
            path = _download(self.file, source, self._hidden)
        self.facts.append(
            {"path": source, "sha256": file_digest(path), "checked_against_hub": not brought}
        )
        return path

    def rows(self, source: str) -> Iterator[dict[str, Any]]:
        """Return the rows of a file of the hub; a large one is read from its beginning only.

        Raises:
            Unreachable: as of `whole`, and while the rows are read.
            InputError: as of `whole`, and while the rows are read.
        """
        if self.file.rows is not None and not self.places[source].is_file():
            _require_listed(self.file, source)
            self.facts.append({"path": source, "sha256": None})
            return _first_rows(self.file, source)
        path = self.whole(source)
        # `.json` of the hub holds lines or one array; the parser knows both.
        parse = PARSERS[format_of(path) or ""]
        return (row.values for row in parse(path, "download"))


def _require_listed(file: DataFile, source: str) -> None:
    """Refuse a file that the commit lacks, with the names that it has."""
    _, names = describe_repository("dataset", file.hub, file.commit)
    if source not in names:
        raise InputError(
            f"commit {file.commit} has no file {source!r}.{did_you_mean(source, names)}",
            where=f"datasets/{file.hub}",
            allowed=", ".join(name for name in names if not name.startswith(".")),
            hint="What spikein knows of this data set is out of date; please report it.",
        )


def _download(file: DataFile, source: str, hidden: Path) -> Path:
    from huggingface_hub import HfApi, hf_hub_download

    _require_listed(file, source)
    with _hub_errors(file, source):
        [described] = HfApi().get_paths_info(
            file.hub, [source], repo_type="dataset", revision=file.commit
        )
        path = Path(
            hf_hub_download(
                file.hub,
                source,
                repo_type="dataset",
                revision=file.commit,
                local_dir=hidden / file.hub.replace("/", "--"),
            )
        )
    large = described.lfs  # type: ignore[union-attr]
    expected = large.sha256 if large else described.blob_id  # type: ignore[union-attr]
    arrived = file_digest(path) if large else _blob_id(path)
    if arrived != expected:
        path.unlink()
        raise InputError(
            f"what arrived of {source} is not what the hub has (digest {arrived[:12]}…, and not "
            f"{expected[:12]}…)",
            where=f"datasets/{file.hub}",
            hint="Nothing was kept of it. Give the same command again; a proxy may alter files.",
        )
    return path


def _blob_id(path: Path) -> str:
    """Return git's name of a content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _first_rows(file: DataFile, source: str) -> Iterator[dict[str, Any]]:
    """Yield rows from the beginning of a file, reading no more of it than they take."""
    from huggingface_hub import HfFileSystem

    with _hub_errors(file, source):
        place = f"datasets/{file.hub}@{file.commit}/{source}"
        with HfFileSystem().open(place, "rb", block_size=_BLOCK) as remote:
            if source.endswith(".parquet"):
                import pyarrow.parquet as pq

                parquet = pq.ParquetFile(remote)
                # Asked for all groups at once, the reader fetches the whole file.
                for group in range(parquet.num_row_groups):
                    for batch in parquet.iter_batches(batch_size=_BATCH, row_groups=[group]):
                        yield from batch.to_pylist()
                return
            lines = gzip.GzipFile(fileobj=remote) if source.endswith(".gz") else remote
            for line in lines:
                yield json.loads(line)


@contextmanager
def _hub_errors(file: DataFile, source: str) -> Iterator[None]:
    """Turn the library's errors into one that says what to do."""
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError

    where = f"datasets/{file.hub}: {source}"
    try:
        yield
    except SpikeinError:
        raise
    except GatedRepoError as error:
        known = "its token has none" if os.environ.get("HF_TOKEN") else "it is not set"
        raise InputError(
            "the hub gives access only to the HF_TOKEN of those who accepted its conditions, and "
            f"{known}",
            where=where,
            hint=f"Accept them on https://huggingface.co/datasets/{file.hub}, make a token on "
            "https://huggingface.co/settings/tokens, and set the variable HF_TOKEN to it.",
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "unknown"
        raise InputError(
            f"the hub refused the file (HTTP {status})",
            where=where,
            hint="Give the same command again later; files that are there stay.",
        ) from error
    except (gzip.BadGzipFile, EOFError, ValueError) as error:
        raise InputError(
            f"the file cannot be read ({first_line(error)})",
            where=where,
            hint="Give the same command again; nothing was kept of it.",
        ) from error
    # Network libraries share no base class of errors.
    except Exception as error:
        # A full disk is this machine's fault, and the command line says so.
        if isinstance(error, OSError) and error.errno in _OF_THIS_MACHINE:
            raise
        problem = f"the hub cannot be reached ({first_line(error)})"
        raise Unreachable(problem, where=where) from error
