"""The heat map of SURP: every cell an AUC of the test rows, and what is framed chosen on tune."""

import re
from dataclasses import replace

import numpy as np
import pytest

from analysis.arm import Cohort, load_arm
from analysis.figures.cohort import CohortData
from analysis.figures.figures_step import results_figures
from analysis.figures.surp_grid import surp_grid_figure
from analysis.results import analyse
from analysis.selection.tuning import setting_aucs
from analysis.settings import AnalysisSettings
from tests.analysis import synthetic
from tests.analysis.synthetic import make_arm

FAST = AnalysisSettings(replicates=100)
ENTROPIES, PERCENTS = (1.0, 2.0, 4.0), (20, 40)


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """SURP with a whole grid: what it sees grows with ε and k."""
    whole = {
        f"entropy={entropy}:k={percent}": 0.2 * entropy + percent / 50
        for percent in PERCENTS
        for entropy in ENTROPIES
    }
    default = "entropy=2.0:k=40"
    blank = {"entropy=9.0:k=40:empty=min_k": 0}
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(synthetic.GRID, "surp", {default: whole.pop(default), **whole, **blank})
        yield make_arm(tmp_path_factory.mktemp("surp") / "arm", axes={}, seed=0, effect=1.0)


@pytest.fixture(scope="module")
def analysis(arm):
    return analyse([arm], FAST)


def grid_of(loaded, analysis):
    data = CohortData(Cohort((), "contaminated"), [loaded], {})
    return surp_grid_figure(data, analysis.choices[0].choices, FAST)


def naive_auc(members, others):
    wins = [(a > b) + 0.5 * (a == b) for a in members for b in others]
    return sum(wins) / len(wins)


@pytest.mark.parametrize("split", ["tune", "test"])
def test_every_auc_is_of_the_rows_of_its_split(arm, split):
    loaded = load_arm(arm)
    grid = loaded.grid("surp")
    found = setting_aucs([loaded], grid, split=split, max_unscored=0.5)
    rows = loaded.test if split == "test" else ~loaded.test
    for column, value in zip(grid, found, strict=True):
        scores, total, weight = loaded.scores[:, loaded.index[column]], 0.0, 0
        for dataset in set(loaded.dataset):
            here = rows & (loaded.dataset == dataset)
            members = scores[here & loaded.member & (loaded.copies > 0)]
            total += len(members) * naive_auc(members, scores[here & ~loaded.member])
            weight += len(members)
        assert value == pytest.approx(total / weight)


def test_the_caption_says_what_was_chosen_where_and_what_it_is_worth(arm, analysis):
    figures = {figure.name: figure for figure in results_figures([arm], analysis, FAST)}
    figure = figures["surp-grid"]
    (choice,) = (one for one in analysis.choices[0].choices if one.detector == "surp")
    entropy, percent = re.match(r"entropy=([\d.]+):k=(\d+)", choice.tuned).groups()
    framed = f"Framed: chosen on the tune split, ε = {float(entropy):g}, k = {percent} (AUC 0."
    assert framed in figure.caption
    assert "Dashed: the paper's default, ε = 2, k = 40 (AUC 0." in figure.caption
    assert "on the test split" in figure.caption
    assert "not chosen by anything and is optimistic" in figure.caption
    assert "3 entropy thresholds by 2 percentiles" in figure.alternative


def test_a_setting_without_scores_is_blank_and_one_setting_is_no_grid(arm, analysis):
    loaded = load_arm(arm)
    column = next(one for one in loaded.columns if one.setting == "entropy=4.0:k=20")
    loaded.scores[:, loaded.index[column]] = np.nan
    figure = grid_of(loaded, analysis)
    assert f"Blank: no score for more than {FAST.max_unscored:.0%}" in figure.caption
    (panel,) = figure.panels
    assert (panel.y.names, panel.x.names) == (["40", "20"], ["1", "2", "4"])
    assert np.isnan(panel.cells.values).tolist() == [[False] * 3, [False, False, True]]
    default = [one for one in loaded.columns if one == loaded.default(one.detector)]
    assert grid_of(replace(loaded, columns=default), analysis) is None
