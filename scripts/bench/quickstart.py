"""The waiting time of a new user: `python -m scripts.bench.quickstart`.

The last commit is cloned into a scratch folder, once per try; there `make quickstart` sets up an
environment from nothing and runs, then runs again with nothing to do. It counts the seconds from
the first line to the last, and all lines that make, pip and spikein print. The machine should be
idle otherwise. The last line is one JSON object; docs/benchmarks.md gives the medians.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from inject.errors import SpikeinError
from spikein.store.filesystem import delete_tree

REPOSITORY = Path(__file__).resolve().parents[2]


class _Made(NamedTuple):
    """The time and output of one `make`."""

    seconds: float
    lines: list[str]


class Try(NamedTuple):
    """One fresh clone."""

    setup_seconds: float
    run_seconds: float
    quickstart_seconds: float
    """Both together."""
    rerun_seconds: float
    lines: int
    """Printed by the set-up and the run."""


def measure(folder: Path) -> Try:
    """Return the time and output of `make quickstart` in a fresh clone, and again.

    Args:
        folder: of the clone; must not exist.

    Raises:
        SpikeinError: when a command fails.
    """
    clone = ["git", "clone", "--quiet", "--no-hardlinks", str(REPOSITORY), str(folder)]
    subprocess.run(clone, check=True)
    # Two commands, which `make quickstart` would run one after the other.
    setup = _make(folder, ".venv/.installed-runtime")
    run = _make(folder, "quickstart")
    again = _make(folder, "quickstart")
    print("\n".join([*setup.lines, *run.lines]), flush=True)
    return Try(
        setup_seconds=setup.seconds,
        run_seconds=run.seconds,
        quickstart_seconds=setup.seconds + run.seconds,
        rerun_seconds=again.seconds,
        lines=len(setup.lines) + len(run.lines),
    )


def _make(folder: Path, target: str) -> _Made:
    # A fresh machine has no variables that point at another clone or another set of modules.
    outside = ("PYTHON", "VIRTUAL_ENV", "SPIKEIN_", "MAKE", "OMP_NUM_THREADS")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(outside)}
    started = time.perf_counter()
    done = subprocess.run(
        ["make", target],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SpikeinError(f"make {target} failed in {folder}:\n{done.stdout}")
    return _Made(seconds, done.stdout.splitlines())


def main() -> None:
    """Print the figures of each try; the last line is JSON, with the medians."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=3)
    tries = []
    for _ in range(parser.parse_args().tries):
        with tempfile.TemporaryDirectory(prefix="spikein-quickstart-") as name:
            tries.append(measure(Path(name) / "clone"))
            delete_tree(Path(name) / "clone")
        print(json.dumps(tries[-1]._asdict()), flush=True)
    medians = {
        name: round(statistics.median(getattr(attempt, name) for attempt in tries), 1)
        for name in Try._fields
    }
    commit = ["git", "-C", str(REPOSITORY), "rev-parse", "HEAD"]
    version = subprocess.run(commit, check=True, capture_output=True, text=True).stdout.strip()
    print(json.dumps({"tries": len(tries), "commit": version, **medians}))


if __name__ == "__main__":
    main()
