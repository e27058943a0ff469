"""What figures draw, looked at on their axes: scales, looks of lines, and how far they reach."""

import numpy as np
import pytest

from analysis.arm import axis_names
from analysis.figures import copies, lines, roc
from analysis.figures.figures_step import build_figures
from analysis.metrics_table import TUNE_AUC, Cell, contaminated_cohorts, split_by_cohort
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from tests.analysis.synthetic import make_arm

FAST = AnalysisSettings(replicates=100, min_members=5)


@pytest.fixture
def figures(monkeypatch):
    """Return the axes of every figure that is finished, by its name."""
    found = {}

    def watch(module):
        save = module.save_figure

        def caught(figure, folder, **rest):
            found[rest["name"]] = figure
            return save(figure, folder, **rest)

        monkeypatch.setattr(module, "save_figure", caught)

    for module in (copies, lines, roc):
        watch(module)
    return found


def draw(folder, arms):
    analysis = analyse(arms, FAST)
    return build_figures(folder, arms, analysis, FAST), analysis


def test_doses_stand_as_far_apart_as_they_are(tmp_path, figures):
    arms = [
        make_arm(tmp_path / str(dose), axes={"copies": f"fixed={dose}"}, seed=0, effect=0.5,
                 fixed=dose, n=60)
        for dose in (1, 2, 16)
    ]  # fmt: skip
    draw(tmp_path, arms)
    (axis,) = [one for one in figures["copies"].axes if one.get_visible()]
    drawn = sorted({float(x) for line in axis.lines for x in line.get_xdata() if x in (1, 2, 16)})
    assert drawn == [1, 2, 16]
    places = axis.xaxis.get_transform().transform([1.0, 2.0, 16.0])
    near, far = np.diff(places)
    assert far / near == pytest.approx(3), "16 is three doublings from 2, which is one from 1"
    labels = {text.get_text() for text in axis.get_xticklabels()}
    assert {"1", "2", "16"} <= labels


def test_two_arms_of_one_panel_look_different(tmp_path, figures):
    arms = [
        make_arm(tmp_path / f"{rate}", axes={"copies": f"poisson={rate}"}, seed=0, effect=0.5,
                 copies_rate=rate, n=80)
        for rate in (1.0, 4.0)
    ]  # fmt: skip
    draw(tmp_path, arms)
    (axis,) = [one for one in figures["copies"].axes if one.get_visible()]
    looks = [
        (line.get_color(), line.get_linestyle(), line.get_marker())
        for line in axis.lines
        if len(line.get_xdata()) > 1 and line.get_marker() not in ("", "None", None)
    ]
    assert len(looks) == 6
    assert len(set(looks)) == len(looks), "two lines of one panel have one look"
    names = [text.get_text() for legend in figures["copies"].legends for text in legend.get_texts()]
    assert names == ["a: poisson=1.0", "b: poisson=4.0"]
    ends = {text.get_text() for text in axis.texts}
    detectors = {name.removesuffix(" a") for name in ends if name.endswith(" a")}
    assert len(detectors) == 3
    assert ends == {f"{name} {letter}" for name in detectors for letter in "ab"}


@pytest.mark.parametrize(("n", "floor"), [(40, None), (160, 10 / 120)])
def test_a_roc_curve_goes_no_lower_than_its_nonmembers_support(tmp_path, figures, n, floor):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, datasets=("news",), n=n)
    drawn, analysis = draw(tmp_path, [arm])
    tested = [row for row in analysis.metrics.to_pylist() if row["metric"] != TUNE_AUC]
    assert {row["n_nonmembers"] for row in tested} - {0} == {n * 3 // 4}
    log = [one for one in figures["roc"].axes if one.get_xscale() == "log" and one.get_visible()]
    caption = next(one.caption for one in drawn if one.name == "roc")
    if floor is None:
        assert log == []
        assert "no logarithmic axes" in caption
    else:
        assert log[0].get_xlim()[0] == pytest.approx(floor)
        assert min(x for line in log[0].lines for x in line.get_xdata()) >= floor - 1e-9
        assert "down to 0.083" in caption


def test_a_swept_number_has_an_axis_of_numbers(tmp_path, figures):
    """20,000, 40,000 and 640,000 tokens: by logarithms, as they span a decade."""
    sizes = (20_000, 40_000, 640_000)
    arms = [
        make_arm(tmp_path / str(size), axes={"corpus.tokens": str(size)}, seed=0, effect=0.5, n=40)
        for size in sizes
    ]
    _, analysis = draw(tmp_path, arms)
    axis = figures["sweep-corpus-tokens"].axes[0]
    tables = contaminated_cohorts(split_by_cohort(analysis.metrics, axis_names(arms)))
    wanted = {
        float(dict(table.cohort.axes)["corpus.tokens"]): table.get("min_k", selection="tuned").value
        for table in tables
    }
    drawn = [
        dict(zip(map(float, line.get_xdata()), map(float, line.get_ydata()), strict=True))
        for line in axis.lines
        if len(line.get_xdata()) == 3
    ]
    assert any(one == pytest.approx(wanted) for one in drawn)
    near, far = np.diff(axis.xaxis.get_transform().transform(np.array(sizes, float)))
    assert far / near > 2, "40,000 to 640,000 is a long way"
    assert {text.get_text() for text in axis.get_xticklabels()} >= {"20k", "40k", "640k"}


def test_no_rate_above_one_is_told(tmp_path):
    cell = Cell(setting="-", value=0.5, low=0.3, high=0.7, n_members=9, n_nonmembers=7, n_seeds=1)
    assert roc.lowest_rate({"loss": cell}) == 1.0
