"""One small experiment, analysed once for all tests that only read it."""

from typing import NamedTuple

import pytest

from analysis.arm import Arm
from analysis.results import Analysis, analyse
from analysis.settings import AnalysisSettings
from tests.analysis.synthetic import make_experiment


class Analysed(NamedTuple):
    arms: list[Arm]
    analysis: Analysis


@pytest.fixture(scope="session")
def analysed(tmp_path_factory) -> Analysed:
    arms = make_experiment(tmp_path_factory.mktemp("analysed"), n=60)
    return Analysed(arms, analyse(arms, AnalysisSettings(replicates=100)))
