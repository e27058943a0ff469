"""What stands on the panels: the tables' numbers, told apart by more than their colour."""

import numpy as np
import pytest

from analysis.arm import Cohort
from analysis.figures.copies import copies_figure
from analysis.figures.figures_step import results_figures
from analysis.figures.lines import axis_values, sweep_figures
from analysis.figures.render import draw, house_style
from analysis.metrics_table import Cell, CohortMetrics, Key, contaminated_cohorts, split_by_cohort
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from tests.analysis.synthetic import make_arm

SETTINGS = AnalysisSettings(replicates=100, min_members=5)
SIZES = {20_000: 0.0, 40_000: 0.5, 640_000: 1.2}
NAN = float("nan")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    axes = ["corpus.tokens", "train.mode"]
    arms = [
        make_arm(folder / f"{size}-{mode}", axes=dict(zip(axes, (str(size), mode), strict=True)),
                 seed=0, effect=effect, n=40)
        for size, effect in SIZES.items()
        for mode in ("continue", "lora")
    ]  # fmt: skip
    return contaminated_cohorts(split_by_cohort(analyse(arms, SETTINGS).metrics, axes))


def figures_of(tables, detectors):
    return {one.name: one for one in sweep_figures(tables, detectors) if one}


def table(axes, values, copies=("all",)):
    """Return an arm with detectors whose value and interval are the same for every dose."""
    return CohortMetrics(
        cohort=Cohort(tuple(axes.items()), "contaminated"),
        cells={
            Key("all", name, "tuned", dose, "all", "auc"): Cell(
                setting="-", value=value, low=low, high=high, n_members=40, n_nonmembers=50,
                n_seeds=1,
            )
            for name, (value, low, high) in values.items()
            for dose in copies
        },
    )  # fmt: skip


def distances(figure, values):
    """Return how far three values stand apart on the axis, and what is written there."""
    with house_style():
        axis = draw(figure).axes[0].xaxis
        places = axis.get_transform().transform(np.array(values, dtype=float))
        return *np.diff(places), {text.get_text() for text in axis.get_ticklabels()}


def test_a_swept_number_has_an_axis_of_numbers(tables):
    """By logarithms, as 20,000 to 640,000 tokens span a decade; two values are drawn, too."""
    figures = figures_of(tables, ["min_k", "loss"])
    name = "sweep-corpus-tokens"
    assert list(figures) == [name, f"{name}-arms", f"{name}-datasets"]
    assert axis_values(tables, "train.mode") == []
    figure = figures[name]
    assert "one training seed" in figure.caption
    for panel, mode in zip(figure.panels, ("continue", "lora"), strict=True):
        cells = [one.get("min_k", selection="tuned") for one in tables
                 if dict(one.cohort.axes)["train.mode"] == mode]  # fmt: skip
        assert panel.title == f"mode {mode}"
        line = panel.series[0]
        assert (line.label, list(line.x)) == ("min_k", list(SIZES))
        assert list(zip(line.y, line.low, line.high, strict=True)) == [
            (cell.value, cell.low, cell.high) for cell in cells
        ]
        for cell in (cells[0], cells[-1]):
            assert f"{cell.value:.2f} ({cell.low:.2f} to {cell.high:.2f})" in figure.alternative
    near, far, labels = distances(figure, list(SIZES))
    assert far / near > 2, "40,000 to 640,000 is a long way"
    assert labels >= {"20k", "40k", "640k"}
    two = [one for one in tables if dict(one.cohort.axes)["corpus.tokens"] != "640000"]
    assert "20k" in figures_of(two, ["loss"])[name].alternative
    assert figures_of(two[:2], ["loss"]) == {}, "one value makes no curve"


def test_arms_of_one_panel_are_told_apart_by_dashes_marks_and_names(tables):
    """Not by colour alone: a panel a detector, a line an arm."""
    figure = figures_of(tables, ["min_k", "loss"])["sweep-corpus-tokens-arms"]
    assert [panel.title for panel in figure.panels] == ["min_k", "loss"]
    for panel in figure.panels:
        assert [line.label for line in panel.series] == ["mode continue", "mode lora"]
        first, second = panel.series
        assert first.line != second.line
        assert first.mark != second.mark
    one = [each for each in tables if dict(each.cohort.axes)["train.mode"] == "lora"]
    assert "sweep-corpus-tokens-arms" not in figures_of(one, ["loss"])


def test_a_decade_is_drawn_by_logarithms_and_words_make_no_axis():
    """3e-4 / 3e-5 is a bit less than ten in floats; Python takes `nan` and `inf` for numbers."""
    scales = {"3e-05 0.0003": ["symlog"], "0 0.0003": ["linear"], "-1 10": ["linear"],
              "0.0001 0.0003": ["linear"], "0.1 nan": [], "0.1 inf": []}  # fmt: skip
    for values, wanted in scales.items():
        arms = [table({"train.lr": value}, {"loss": (0.6, 0.5, 0.7)}) for value in values.split()]
        figures = figures_of(arms, ["loss"])
        assert [one.panels[0].x.scale for one in figures.values()] == wanted


def test_doses_stand_as_far_apart_as_they_are_and_arms_look_different():
    figure = copies_figure(
        [table({"copies": f"fixed={dose}"}, {"loss": (0.6, 0.5, 0.7)}, [str(dose)])
         for dose in (1, 2, 16)], ["loss"],
    )  # fmt: skip
    (panel,) = figure.panels
    assert [list(one.x) for one in panel.series] == [[1], [2], [16]]
    assert [one.label for one in panel.series] == ["", "", "loss"]
    near, far, labels = distances(figure, [1, 2, 16])
    assert far / near == pytest.approx(3), "16 is three doublings from 2, which is one from 1"
    assert {"1", "2", "16"} <= labels
    values = {"loss": (0.6, 0.5, 0.7), "min_k": (0.7, 0.6, 0.8), "surp": (0.8, 0.7, 0.9)}
    arms = [table({"copies": f"poisson={rate}"}, values, ["1", "2"]) for rate in (1.0, 4.0)]
    figure = copies_figure(arms, list(values))
    (panel,) = figure.panels
    assert len({(one.colour, one.line, one.mark) for one in panel.series}) == 6
    assert [one.label for one in figure.key] == ["a: poisson=1.0", "b: poisson=4.0"]


@pytest.mark.parametrize(("n", "floor"), [(40, None), (160, 10 / 120)])
def test_a_roc_curve_goes_no_lower_than_its_nonmembers_support(tmp_path, n, floor):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, datasets=("news",), n=n)
    figures = results_figures([arm], analyse([arm], SETTINGS), SETTINGS)
    roc = next(one for one in figures if one.name == "roc")
    log = [panel for panel in roc.panels if panel.x.scale == "log"]
    if floor is None:
        assert log == []
        assert "no logarithmic axes" in roc.caption
    else:
        assert log[0].x.limits == (pytest.approx(floor), 1)
        assert min(x for curve in log[0].series for x in curve.x) >= floor
        assert "down to 0.083" in roc.caption
