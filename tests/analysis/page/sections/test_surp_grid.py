"""The heat map of SURP: AUCs of the test rows, with the setting chosen on tune framed."""

import re
from dataclasses import replace

import numpy as np
import pytest

from analysis.arm import load_arm
from analysis.page.sections.results import surp_picture
from analysis.results import analyse
from analysis.selection.tuning import setting_aucs
from analysis.settings import AnalysisSettings
from tests.analysis import synthetic
from tests.analysis.synthetic import make_arm
from tests.analysis.viewing import view_of

FAST = AnalysisSettings(replicates=100)
ENTROPIES, PERCENTS = (1.0, 2.0, 4.0), (20, 40)


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """SURP with a full grid, whose effect grows with ε and k."""
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


def naive_auc(members, others):
    wins = [(a > b) + 0.5 * (a == b) for a in members for b in others]
    return sum(wins) / len(wins)


@pytest.mark.parametrize("split", ["tune", "test"])
def test_aucs_use_only_the_rows_of_their_split(arm, split):
    loaded = load_arm(arm)
    grid = loaded.grid("surp")
    aucs = setting_aucs([loaded], grid, split=split, max_unscored=0.5)
    rows = loaded.test if split == "test" else ~loaded.test
    for column, value in zip(grid, aucs, strict=True):
        scores, total, weight = loaded.scores[:, loaded.index[column]], 0.0, 0
        for dataset in set(loaded.dataset):
            in_dataset = rows & (loaded.dataset == dataset)
            members = scores[in_dataset & loaded.member & (loaded.copies > 0)]
            total += len(members) * naive_auc(members, scores[in_dataset & ~loaded.member])
            weight += len(members)
        assert value == pytest.approx(total / weight)


@pytest.fixture
def view(arm, analysis):
    return view_of([arm], analysis, analysis_settings=FAST)


def test_caption_reports_the_chosen_setting_and_its_auc(view):
    figure = surp_picture(view)
    (choice,) = (choice for choice in view.choices if choice.detector == "surp")
    entropy, percent = re.match(r"entropy=([\d.]+):k=(\d+)", choice.tuned).groups()
    framed = f"Framed: chosen on the tuning split, ε = {float(entropy):g}, k = {percent} (AUC 0."
    assert framed in figure.caption
    assert "Dashed: the paper's default, ε = 2, k = 40 (AUC 0." in figure.caption
    assert "on the test split" in figure.caption
    assert "picked from test results and is therefore optimistic" in figure.caption
    assert "3 entropy thresholds by 2 percentiles" in figure.drawing.wide
    for classes in ("fr", "fr da"):
        assert figure.drawing.wide.count(f'class="{classes}"') == 1
    hovers = [f"percentile k {row['k']:g}, entropy threshold ε (nats) {row['entropy']:g}: "
              f"AUC {row['auc']:.2f}" for row in figure.rows]  # fmt: skip
    assert sorted(hovers) == sorted(re.findall("<title>(.*?)</title>", figure.drawing.wide))


def test_settings_without_scores_are_blank_and_one_setting_has_no_grid(view):
    (loaded,) = view.loaded
    column = next(column for column in loaded.columns if column.setting == "entropy=4.0:k=20")
    loaded.scores[:, loaded.index[column]] = np.nan
    figure = surp_picture(view)
    assert f"Blank: no score for more than {FAST.max_unscored:.0%}" in figure.caption
    blank = [(row["entropy"], row["k"]) for row in figure.rows if np.isnan(row["auc"])]
    assert blank == [(4.0, 20.0)]
    assert figure.drawing.wide.count("<title>") == 5
    default = [column for column in loaded.columns if column == loaded.default(column.detector)]
    view.loaded[:] = [replace(loaded, columns=default)]
    assert surp_picture(view) is None
