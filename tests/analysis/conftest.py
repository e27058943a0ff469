"""One small experiment, analysed and drawn once for all tests that only look at it."""

from typing import NamedTuple

import pytest

from analysis.arm import Arm
from analysis.figures.figures_step import results_figures
from analysis.figures.panel import Figure
from analysis.figures.render import ReportFigure, write_figures
from analysis.results import Analysis, analyse
from analysis.settings import AnalysisSettings
from tests.analysis.synthetic import make_experiment


class Drawn(NamedTuple):
    arms: list[Arm]
    analysis: Analysis
    data: list[Figure]
    figures: list[ReportFigure]


@pytest.fixture(scope="session")
def drawn(tmp_path_factory) -> Drawn:
    folder = tmp_path_factory.mktemp("drawn")
    settings = AnalysisSettings(replicates=100)
    arms = make_experiment(folder, n=60)
    analysis = analyse(arms, settings)
    figures = results_figures(arms, analysis, settings)
    return Drawn(arms, analysis, figures, write_figures(folder, figures))
