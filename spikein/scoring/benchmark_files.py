"""Checks that files are those of the commit that defines a benchmark.

The commit of files of the hub, and of those that `spikein data fetch` wrote, is known. Other files
are checked only by their columns.
"""

from collections.abc import Iterator

from detect.user_rows.benchmarks import Benchmark
from inject.errors import InputError
from inject.public_data.fetch import MANIFEST, read_manifest
from inject.reading.rows import source_files


def check_commit(benchmark: Benchmark, path: str, read: tuple[str, str] | None) -> None:
    """Refuse rows of another commit than the benchmark's.

    Args:
        benchmark: the benchmark of the rows.
        path: a file, folder or glob.
        read: id and commit of the dataset of the hub that it was read from; None for files that
            the user names.

    Raises:
        InputError: naming both commits.
    """
    if not benchmark.hub:
        return
    for hub, commit in _fetched(path) if read is None else (read,):
        if hub == benchmark.hub and not commit.startswith(benchmark.commit):
            raise InputError(
                f"these rows are of commit {commit[:12]}, and {benchmark.name} is defined by "
                f"commit {benchmark.commit}",
                where=path,
                hint="--benchmark rows scores any rows with labels.",
            )


def _fetched(path: str) -> Iterator[tuple[str, str]]:
    """Yield the dataset and the commit of each file that `spikein data fetch` wrote."""
    for file in source_files(path, purpose="examples"):
        for folder in file.resolve().parents:
            if (folder / MANIFEST).is_file():
                name = file.resolve().relative_to(folder).as_posix()
                entry = read_manifest(folder)["files"].get(name, {})
                yield entry.get("hub", ""), entry.get("commit", "")
