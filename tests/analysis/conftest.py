"""One small experiment, analysed once for all tests and processes, which only read it."""

import pickle
from pathlib import Path
from typing import NamedTuple

import pytest

from analysis.arm import Arm
from analysis.results import Analysis, analyse
from analysis.settings import AnalysisSettings
from tests.analysis.synthetic import make_experiment
from tests.conftest import made_once


class Analysed(NamedTuple):
    arms: list[Arm]
    analysis: Analysis


@pytest.fixture(scope="session")
def analysed(tmp_path_factory) -> Analysed:
    def make(root: Path) -> None:
        arms = make_experiment(root, n=60)
        analysis = analyse(arms, AnalysisSettings(replicates=100))
        (root / "analysed.pickle").write_bytes(pickle.dumps(Analysed(arms, analysis)))

    root = made_once(tmp_path_factory, "analysed", make)
    # A file of this session.
    return pickle.loads((root / "analysed.pickle").read_bytes())  # noqa: S301
