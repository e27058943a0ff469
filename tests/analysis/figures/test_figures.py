"""Every figure: whole files, words with numbers, a CSV of what is drawn, no letters on others."""

import csv
import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np

from analysis.figures.figures_step import results_figures
from analysis.figures.panel import Figure
from analysis.figures.render import draw, house_style, write_figures
from analysis.figures.unlearning.figures import target_figure
from analysis.unlearning.measured import measured_models
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from tests.analysis.synthetic import make_arm
from tests.analysis.unlearned import measured_rows

FAST = AnalysisSettings(replicates=100)


def drawn_numbers(figure: Figure) -> set[tuple[float, ...]]:
    """Return what is drawn: a number with its interval; of cells and lines without one, alone."""
    numbers: list[tuple[float, ...]] = []
    for panel in figure.panels:
        if panel.cells:
            numbers += [(value,) for value in np.ravel(panel.cells.values).tolist()]
        for series in panel.series:
            if len(series.low) and series.interval != "area":
                along = series.x if series.interval == "x" else series.y
                numbers += zip(along, series.low, series.high, strict=True)
            elif series.line and len(series.x) > 2 and figure.name != "scores":
                numbers += [(y,) for y in series.y]
    return {one for one in numbers if np.isfinite(one).all()}


def written_numbers(figure: Figure) -> set[tuple[float, ...]]:
    """Return the numbers of a CSV file, and those that stand before the ends of an interval."""
    numbers: set[tuple[float, ...]] = set()
    for row in figure.rows:
        values = [one for one in row.values() if isinstance(one, int | float)]
        numbers |= {(one,) for one in values} | set(
            zip(values, values[1:], values[2:], strict=False)
        )
    return numbers


def test_all_figures_are_whole_and_say_what_stands_behind(drawn):
    sweeps = ["sweep-train-lr", "sweep-train-lr-arms", "sweep-train-lr-datasets"]
    assert [figure.name for figure in drawn.figures] == [
        "detectors", *sweeps, "copies", "roc", "scores", "training",
    ]  # fmt: skip
    for figure in drawn.figures:
        svg, png, numbers = figure.files
        assert {path.parent.name for path in figure.files} == {"figures"}
        assert ET.parse(svg).getroot().tag.endswith("svg")
        assert png.read_bytes().startswith(b"\x89PNG")
        assert numbers.suffix == ".csv"
        assert "seed" in figure.caption
        assert "members" in figure.caption or figure.name == "training"
        assert re.search(r"\d", figure.alternative), "words for those who do not see the numbers"


def test_what_is_drawn_stands_in_the_csv(drawn):
    figures = [*drawn.data, target_figure(measured_models(measured_rows()))]
    assert len(figures) == 9
    for figure in figures:
        shown, held = drawn_numbers(figure), written_numbers(figure)
        assert shown or figure.name == "scores"
        # What a model lost is drawn downwards.
        assert {one for one in shown if (-one[0], *(-end for end in one[:0:-1])) not in held} <= (
            held
        ), figure.name
    for data, figure in zip(drawn.data, drawn.figures, strict=True):
        with figure.files[2].open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == len(data.rows) > 3
        for key, value in data.rows[-1].items():
            assert rows[-1][key] == ("" if value != value else str(value))


def test_the_same_data_give_the_same_bytes_and_names_are_no_markup(drawn, tmp_path):
    (at,) = (at for at, figure in enumerate(drawn.data) if figure.name == "scores")
    scores, files = drawn.data[at], drawn.figures[at].files
    (again,) = write_figures(tmp_path / "again", [scores])
    assert [one.read_bytes() for one in again.files] == [one.read_bytes() for one in files]
    assert b"dc:date" not in again.svg.read_bytes()
    evil = "$\\frac{1}{$ --><script>"
    panels = [replace(panel, title=evil) for panel in scores.panels]
    key = [replace(series, label=evil) for series in scores.key]
    named = replace(scores, panels=panels, x=evil, key=key)
    (drawing,) = write_figures(tmp_path / "named", [named])
    assert b"<script" not in drawing.svg.read_bytes()


def test_no_letters_stand_on_others(drawn, monkeypatch):
    from matplotlib.text import Text

    boxes = []

    def measure(text, renderer):
        if text.get_text() and text.get_visible():
            boxes.append((text.get_text(), text.get_window_extent(renderer)))

    # Names that are slanted have boxes that overlap, and are no others'.
    for figure in drawn.data:
        with house_style():
            canvas = draw(figure)
            boxes.clear()
            with monkeypatch.context() as patched:
                patched.setattr(Text, "draw", measure)
                canvas.draw_without_rendering()
        assert len(boxes) > 5
        for (text, box), (other, beside) in itertools.combinations(boxes, 2):
            width = min(box.x1, beside.x1) - max(box.x0, beside.x0)
            height = min(box.y1, beside.y1) - max(box.y0, beside.y0)
            assert min(width, height) < 2, (figure.name, text, other)


def test_a_single_dose_and_no_log_leave_out_what_cannot_be_drawn(tmp_path):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=0.0, model="base", n=40)
    assert results_figures([arm], analyse([arm], FAST), FAST) == []
