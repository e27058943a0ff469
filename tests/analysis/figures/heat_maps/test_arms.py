"""The heat map of a study: its cells against the metrics, its panels, and its letters."""

import csv

import pytest

from analysis.arm import Cohort
from analysis.figures.heat_maps import arms as heat_map
from analysis.figures.heat_maps.arms import MAX_COLUMNS, draw_heat_map
from analysis.figures.style import INK, PAPER
from analysis.metrics_table import Cell, CohortMetrics, Key


def table(axes: dict[str, str], values: dict[str, tuple[float, float, float]]) -> CohortMetrics:
    cells = {
        Key("all", name, "tuned", "all", "all", "auc"): Cell(
            setting="-", value=value, low=low, high=high, n_members=40, n_nonmembers=50, n_seeds=1
        )
        for name, (value, low, high) in values.items()
    }
    return CohortMetrics(cohort=Cohort(tuple(axes.items()), "contaminated"), cells=cells)


@pytest.fixture
def drawn(monkeypatch):
    kept = {}
    save = heat_map.save_figure

    def caught(figure, folder, **rest):
        kept["figure"] = figure
        return save(figure, folder, **rest)

    monkeypatch.setattr(heat_map, "save_figure", caught)
    return kept


def test_every_cell_stands_where_its_arm_and_detector_are_and_bold_means_above_chance(
    tmp_path, drawn
):
    one = table({"train.lr": "0.001"}, {"loss": (0.62, 0.51, 0.7), "zlib": (0.55, 0.4, 0.7)})
    two = table({"train.lr": "0.01"}, {"loss": (0.81, 0.7, 0.9), "zlib": (0.41, 0.3, 0.49)})
    figure = draw_heat_map(tmp_path, [one, two], two)
    axis = drawn["figure"].axes[0]
    rows = [label.get_text() for label in axis.get_yticklabels()]
    columns = [label.get_text() for label in axis.get_xticklabels()]
    assert rows == ["loss", "zlib"]
    assert columns == ["0.001", "0.01"]
    found = {
        (rows[round(text.get_position()[1])], columns[round(text.get_position()[0])]):
            (text.get_text(), text.get_fontweight())
        for text in axis.texts
    }  # fmt: skip
    assert found == {
        ("loss", "0.001"): (".62", "bold"), ("zlib", "0.001"): (".55", "normal"),
        ("loss", "0.01"): (".81", "bold"), ("zlib", "0.01"): (".41", "bold"),
    }  # fmt: skip
    # Those two turn with the page's colours; the ground of a cell does not.
    assert {text.get_color() for text in axis.texts}.isdisjoint({INK, PAPER})
    with figure.csv.open(encoding="utf-8", newline="") as file:
        written = {(row["train.lr"], row["detector"]): row["value"] for row in csv.DictReader(file)}
    assert written[("0.01", "zlib")] == "0.41"
    assert "loss 0.81" in figure.alternative


def test_many_arms_stand_in_panels_of_the_first_factor(tmp_path, drawn):
    tables = [
        table({"size": str(size), "lr": str(lr)}, {"loss": (0.6, 0.5, 0.7)})
        for size in (1, 2)
        for lr in range(MAX_COLUMNS)
    ]
    draw_heat_map(tmp_path, tables, tables[0])
    panels = drawn["figure"].axes[:2]
    assert [axis.get_title(loc="left") for axis in panels] == ["size 1", "size 2"]
    assert [label.get_text() for label in panels[0].get_xticklabels()] == [
        str(lr) for lr in range(MAX_COLUMNS)
    ]


def test_one_arm_and_values_that_are_missing(tmp_path, drawn):
    nan = float("nan")
    one = table({"lr": "1"}, {"loss": (0.6, 0.5, 0.7)})
    two = table({"lr": "2"}, {"loss": (nan, nan, nan), "late": (0.7, nan, nan)})
    assert draw_heat_map(tmp_path, [one], one) is None
    draw_heat_map(tmp_path, [one, two], one)
    shown = sorted(text.get_text() for text in drawn["figure"].axes[0].texts)
    assert shown == [".60", ".70"]
