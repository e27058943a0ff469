"""Runs of graphs as separate processes, ended with the test that started them."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import processes


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str, str], subprocess.Popen[str]]]:
    """Return a function that runs one of our graphs by an executor, in the store of the test."""
    started: list[subprocess.Popen[str]] = []

    def run(executor: str, graph: str) -> subprocess.Popen[str]:
        process = processes.started(
            *("-m", "tests.spikein.executors.graphs", executor, tmp_path / "store", graph)
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()
