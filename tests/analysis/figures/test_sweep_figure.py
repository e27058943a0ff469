"""AUC against a swept number: which axes are drawn, and what stands on them."""

import csv

import pytest

from analysis.arm import Cohort
from analysis.figures import lines
from analysis.figures.sweep import axis_values, draw_sweeps
from analysis.metrics_table import CohortMetrics, contaminated_cohorts, split_by_cohort
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from tests.analysis.synthetic import make_arm

SETTINGS = AnalysisSettings(replicates=100)
EFFECTS = {"1e-05": 0.0, "0.0003": 0.5, "0.003": 1.2}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    arms = [
        make_arm(
            folder / f"{lr}-{mode}",
            axes={"train.lr": lr, "train.mode": mode},
            seed=0,
            effect=effect,
            n=40,
        )
        for lr, effect in EFFECTS.items()
        for mode in ("continue", "lora")
    ]
    metrics = analyse(arms, SETTINGS).metrics
    return contaminated_cohorts(split_by_cohort(metrics, ["train.lr", "train.mode"]))


def test_numeric_axes_alone_are_drawn(tables, tmp_path):
    figures = draw_sweeps(tmp_path, tables, ["min_k", "loss"])
    assert [figure.name for figure in figures] == [
        "sweep-train-lr", "sweep-train-lr-arms", "sweep-train-lr-datasets",
    ]  # fmt: skip
    figure = figures[0]
    assert figure.title == "AUC against train.lr"
    assert "one training seed" in figure.caption
    assert figure.png.stat().st_size > 10_000
    assert axis_values(tables, "train.lr") == [1e-05, 0.0003, 0.003]
    assert axis_values(tables, "train.mode") == []


def test_two_values_are_drawn_too(tables, tmp_path):
    few = [table for table in tables if dict(table.cohort.axes)["train.lr"] != "0.003"]
    [figure, by_arm, by_dataset] = draw_sweeps(tmp_path, few, ["loss"])
    assert by_arm.name == "sweep-train-lr-arms"
    for at in ("1e-05", "0.0003"):
        assert at in figure.alternative
    assert by_dataset.name == "sweep-train-lr-datasets"


def test_one_value_makes_no_curve(tables, tmp_path):
    one = [table for table in tables if dict(table.cohort.axes)["train.lr"] == "0.003"]
    assert draw_sweeps(tmp_path, one, ["loss"]) == []
    assert not any(tmp_path.iterdir())


def test_what_the_figure_says_of_its_ends_is_what_the_metrics_say(tables, tmp_path):
    figure = draw_sweeps(tmp_path, tables, ["min_k"])[0]
    for table in tables:
        if dict(table.cohort.axes)["train.lr"] in ("1e-05", "0.003"):
            cell = table.get("min_k", selection="tuned")
            told = f"{cell.value:.2f} ({cell.low:.2f} to {cell.high:.2f})"
            assert told in figure.alternative


def cohorts(*values):
    return [
        CohortMetrics(cohort=Cohort((("train.lr", value),), "contaminated"), cells={})
        for value in values
    ]


def test_words_that_python_takes_for_numbers_make_no_axis():
    assert axis_values(cohorts("0.1", "nan"), "train.lr") == []
    assert axis_values(cohorts("0.1", "inf"), "train.lr") == []
    assert axis_values(cohorts("-0.1", "0"), "train.lr") == [-0.1, 0.0]


def test_a_decade_is_one_in_floats_too(tmp_path, monkeypatch):
    assert 3e-4 / 3e-5 < 10
    asked = []
    monkeypatch.setattr(
        "analysis.figures.sweep.draw_lines",
        lambda *_, logarithmic, **__: asked.append(logarithmic),
    )
    for values in (("3e-05", "0.0003"), ("0", "0.0003"), ("-1", "10"), ("0.0001", "0.0003")):
        draw_sweeps(tmp_path, cohorts(*values), ["loss"])
    assert asked == [True, False, False, False]


def test_arms_of_one_panel_are_told_apart_by_dashes_marks_and_names(tables, tmp_path, monkeypatch):
    """Not by colour alone: a panel a detector, a line an arm."""
    kept = {}
    save = lines.save_figure
    monkeypatch.setattr(
        lines, "save_figure",
        lambda figure, folder, **rest: (kept.update({rest["name"]: figure}),
                                        save(figure, folder, **rest))[1],
    )  # fmt: skip
    figure = next(one for one in draw_sweeps(tmp_path, tables, ["min_k", "loss"])
                  if one.name.endswith("-arms"))  # fmt: skip
    panels = kept[figure.name].axes
    assert [axis.get_title(loc="left") for axis in panels] == ["min_k", "loss"]
    for axis in panels:
        drawn = [line for line in axis.lines if len(line.get_xdata()) == 3]
        looks = [(line.get_linestyle(), line.get_marker()) for line in drawn]
        assert len(looks) == 2
        assert looks[0][1] != looks[1][1]
        assert drawn[0]._dash_pattern != drawn[1]._dash_pattern
        names = {text.get_text() for text in axis.texts}
        assert names == {"mode continue", "mode lora"}
    rows = list(csv.DictReader(figure.csv.open(encoding="utf-8")))
    wanted = {
        (detector, f"mode {mode}", float(lr)): cell.value
        for detector in ("min_k", "loss")
        for table in tables
        for lr, mode in [[value for _, value in table.cohort.axes]]
        if (cell := table.get(detector, selection="tuned"))
    }
    assert {(row["panel"], row["line"], float(row["train.lr"])): float(row["auc"])
            for row in rows} == wanted  # fmt: skip
    one = [table for table in tables if dict(table.cohort.axes)["train.mode"] == "lora"]
    names = [found.name for found in draw_sweeps(tmp_path, one, ["loss"])]
    assert "sweep-train-lr-arms" not in names, "one arm: nothing to tell apart"
