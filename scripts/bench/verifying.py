"""The cost of verifying an artifact before use: `python -m scripts.bench.verifying`.

An artifact of one large file and many small ones is written once. The check (a listing of the
folder, all files hashed with XXH3) alternates with the floor, which only reads the same files in
blocks of the same size, and with SHA-256. All come from the page cache, where hashing
costs most relative to reading; from a disk the reading dominates. The last line is one JSON object.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from inject.step import Recipe
from spikein.store import artifact as verification
from spikein.store.artifact import Artifact, verified
from spikein.store.filesystem import delete_tree
from spikein.store.store import Store

BLOCK = 1 << 20
SMALL_FILES, SMALL_BYTES = 100, 20_000


def measure(*, megabytes: int = 1_000, rounds: int = 7) -> dict[str, float]:
    """Return MB/s of the check, of reading and of SHA-256, and the median ratios of turns."""
    with tempfile.TemporaryDirectory(prefix="spikein-bench-") as name:
        store = Store(Path(name) / "store")
        artifact = store.obtain(_recipe(), lambda out: _fill(out, megabytes), label="l").artifact
        size = sum(record.size for record in artifact.manifest.files.values())
        reading, checking, strong = [], [], []
        for _ in range(rounds):
            reading.append(_timed(lambda: _read(artifact)))
            verification._checked.clear()
            checking.append(_timed(lambda: verified(artifact)))
            strong.append(_timed(lambda: store.verify(artifact)))
        repeated = _timed(lambda: verified(artifact))
        delete_tree(artifact.path)
    pairs = list(zip(reading, checking, strong, strict=True))
    return {
        "bytes": size,
        "check_mb_per_second": size / 1e6 / statistics.median(checking),
        "read_mb_per_second": size / 1e6 / statistics.median(reading),
        "sha256_mb_per_second": size / 1e6 / statistics.median(strong),
        "read_over_check": statistics.median(read / check for read, check, _ in pairs),
        "sha256_over_check": statistics.median(slow / check for _, check, slow in pairs),
        "second_check_milliseconds": 1e3 * repeated,
    }


def _recipe() -> Recipe:
    return Recipe(kind="bench", function="made:build", settings={})


def _fill(out: Path, megabytes: int) -> None:
    with (out / "large.bin").open("wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(1_000_000))
    for number in range(SMALL_FILES):
        (out / f"small-{number:03d}.bin").write_bytes(os.urandom(SMALL_BYTES))


def _read(artifact: Artifact) -> None:
    buffer = bytearray(BLOCK)
    for name in artifact.manifest.files:
        with (artifact / name).open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    """Measure, and print one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1_000, help="size of the large file")
    parser.add_argument("--rounds", type=int, default=7, help="turns")
    arguments = parser.parse_args()
    print(json.dumps(measure(megabytes=arguments.megabytes, rounds=arguments.rounds)))


if __name__ == "__main__":
    main()
