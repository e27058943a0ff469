"""Checks that files are those of the commit that defines a benchmark.

The commit of files of the hub, and of those that `spikein data fetch` wrote, is known. Other files
are checked only by their columns.
"""

from pathlib import Path

from detect.user_rows.benchmark import Benchmark
from inject.errors import InputError
from inject.hub.address import HubAddress
from inject.public_data.fetch import MANIFEST, read_manifest
from inject.reading.rows import source_files


def check_commit(benchmark: Benchmark, commit: str, address: HubAddress) -> None:
    """Refuse rows of the hub at another commit.

    Args:
        benchmark: the benchmark of the rows.
        commit: that of the address.
        address: of the rows; another data set than the benchmark's is not checked.

    Raises:
        InputError: naming both commits.
    """
    if address.id == benchmark.hub:
        _require(benchmark, commit, f"hf://datasets/{address.id}")


def check_fetched(benchmark: Benchmark, path: str) -> None:
    """Refuse files that `spikein data fetch` wrote from another commit.

    Args:
        benchmark: the benchmark of the rows.
        path: a file, folder or glob.

    Raises:
        InputError: naming both commits.
    """
    if not benchmark.commit:
        return
    for file in source_files(path, what="examples"):
        folder = next((up for up in file.resolve().parents if (up / MANIFEST).is_file()), None)
        if folder is not None:
            entry = _entry(folder, file)
            if entry.get("hub") == benchmark.hub:
                _require(benchmark, entry["commit"], str(file))


def _entry(folder: Path, file: Path) -> dict[str, str]:
    name = file.resolve().relative_to(folder).as_posix()
    entry: dict[str, str] = read_manifest(folder)["files"].get(name, {})
    return entry


def _require(benchmark: Benchmark, commit: str, location: str) -> None:
    if not commit.startswith(benchmark.commit):
        raise InputError(
            f"these rows are of commit {commit[:12]}, and {benchmark.name} is defined by commit "
            f"{benchmark.commit}",
            where=location,
            hint="Numbers of another revision cannot be compared. --benchmark rows scores any rows "
            "with labels.",
        )
