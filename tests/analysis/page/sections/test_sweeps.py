"""AUC by swept numbers, copies and false positives: positions and values of marks."""

import re

import numpy as np
import pytest

from analysis.findings import contaminated_cohorts
from analysis.page.crossed import doublings
from analysis.page.parts import pictures_in
from analysis.page.sections.copies import copies_picture
from analysis.page.sections.factor_tables import axis_values, sweep_pictures
from analysis.page.sections.rates import rates_section
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from tests.analysis.made_findings import number, one_arm
from tests.analysis.synthetic import make_arm
from tests.analysis.viewing import view_of

SETTINGS = AnalysisSettings(replicates=100, min_members=5)
SIZES = {20_000: 0.0, 40_000: 0.5, 640_000: 1.2}


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    axes = ["corpus.tokens", "train.mode"]
    arms = [
        make_arm(folder / f"{size}-{mode}", axes=dict(zip(axes, (str(size), mode), strict=True)),
                 seed=0, effect=effect, n=40)
        for size, effect in SIZES.items()
        for mode in ("continue", "lora")
    ]  # fmt: skip
    return view_of(arms, analyse(arms, SETTINGS), analysis_settings=SETTINGS)


def places(drawing) -> list[float]:
    """Return the x positions of the marks in the first panel, from left to right."""
    return sorted({float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawing)})[:3]


def test_a_swept_number_has_a_numeric_axis(view):
    """The axis is logarithmic because 20,000 to 640,000 tokens span a decade."""
    (figure,) = sweep_pictures(view)
    assert figure.name == "sweep-corpus-tokens"
    tables = contaminated_cohorts(view.tables)
    assert axis_values(tables, "train.mode") == []
    cells = {
        (dict(table.cohort.axes)["train.mode"], dict(table.cohort.axes)["corpus.tokens"]): cell
        for table in tables
        if (cell := table.get(detector="min_k", selection="tuned"))
    }
    rows = [row for row in figure.rows if row["line"].startswith("min_k, ")]
    assert len(rows) == len(cells) == 6
    for row in rows:
        mode = "lora" if "LoRA" in row["line"] or "lora" in row["line"] else "continue"
        cell = cells[mode, f"{float(row['corpus.tokens']):.0f}"]
        assert (row["value"], row["low"], row["high"]) == (cell.value, cell.low, cell.high)
        text = f"{cell.value:.2f} [{cell.low:.2f}, {cell.high:.2f}]"
        assert text in figure.drawing.wide
    first, second, third = places(figure.drawing.wide)
    assert (third - second) / (second - first) == pytest.approx(4, rel=0.02)
    assert all(f">{label}<" in figure.drawing.wide for label in ("20k", "40k", "640k"))


def test_decades_have_a_logarithmic_axis_and_words_have_none():
    """3e-4 / 3e-5 is slightly below ten in floats; Python parses `nan` and `inf` as numbers."""
    expected = {"3e-05 0.0003": 2, "0 0.0003": 2, "0.1 nan": 0, "0.1 inf": 0, "0.1 x": 0}
    for values, count in expected.items():
        cells = {("loss",): number(0.6, 0.5, 0.7)}
        arms = [one_arm(cells, ("train.lr", value)) for value in values.split()]
        assert len(axis_values(arms, "train.lr")) == count


def test_copy_counts_are_spaced_by_doublings(view):
    figure = copies_picture(view)
    labels = [row["copies"] for row in figure.rows if row["detector"] == view.best.detector]
    assert labels[:3] == ["1", "2", "3"]
    first, second, third = places(figure.drawing.wide)
    positions = [doublings(at) for at in (1, 2, 3)]
    assert (third - second) / (second - first) == pytest.approx(
        (positions[2] - positions[1]) / (positions[1] - positions[0]), rel=0.05
    )


@pytest.mark.parametrize(("n", "floor"), [(40, 0.0), (160, 0.1)])
def test_roc_curve_starts_at_the_lowest_supported_rate(tmp_path, n, floor):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, datasets=("news",), n=n)
    view = view_of([arm], analyse([arm], SETTINGS), analysis_settings=SETTINGS)
    (roc,) = pictures_in(rates_section(view).parts)
    assert f"from {100 * floor:g} % false positives on" in roc.drawing.wide
    assert ("the lowest rate that so many non-members support" in roc.caption) == bool(floor)
    loaded = view.loaded[0]
    for name in {row["detector"] for row in roc.rows}:
        curve = [(row["false_positive_rate"], row["true_positive_rate"])
                 for row in roc.rows if row["detector"] == name]  # fmt: skip
        scores = loaded.scores[:, loaded.index[view.column(name)]]
        others = scores[loaded.test & ~loaded.member]
        members = scores[loaded.test & loaded.member & (loaded.copies > 0)]
        for rate, share in curve[1:]:
            # A member is detected at a rate if at most this share of non-members scores as high.
            detected = [np.mean(others >= score) <= rate + 1e-12 for score in members]
            assert share == pytest.approx(np.mean(detected))
