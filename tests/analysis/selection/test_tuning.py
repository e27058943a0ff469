import dataclasses

import numpy as np
import pytest

from analysis.arm import DetectorColumn, load_arm
from analysis.selection.tuning import choose_settings
from analysis.settings import AnalysisSettings
from tests.analysis.synthetic import make_arm

SETTINGS = AnalysisSettings()


@pytest.fixture
def loaded(tmp_path):
    return load_arm(make_arm(tmp_path, axes={}, seed=0, effect=0.5, n=80))


def with_scores(loaded, **columns):
    """Replace the scores of min_k's settings."""
    scores = loaded.scores.copy()
    for setting, values in columns.items():
        scores[:, loaded.index[DetectorColumn("min_k", f"k={setting[1:].replace('_', '.')}")]] = (
            values
        )
    return dataclasses.replace(loaded, scores=scores)


def tuned(arms, detector="min_k"):
    return next(c for c in choose_settings(arms, SETTINGS) if c.detector == detector)


def test_best_on_tune_wins_regardless_of_test_rows(loaded):
    truth = loaded.member.astype(float)
    on_tune = np.where(loaded.test, -truth, truth)
    on_test = np.where(loaded.test, truth, -truth)
    choice = tuned([with_scores(loaded, k0_1=on_tune, k0_2=on_test, k0_5=on_test)])
    assert (choice.default, choice.tuned, choice.tune_auc) == ("k=0.2", "k=0.1", 1.0)


def test_ties_go_to_the_default_then_to_the_grid_order(loaded):
    truth = loaded.member.astype(float)
    assert tuned([with_scores(loaded, k0_1=truth, k0_2=truth, k0_5=truth)]).tuned == "k=0.2"
    assert tuned([with_scores(loaded, k0_1=truth, k0_2=-truth, k0_5=truth)]).tuned == "k=0.1"


def test_a_setting_that_cannot_score_cannot_be_chosen(loaded):
    truth = loaded.member.astype(float)
    holes = truth.copy()
    holes[np.flatnonzero(~loaded.test)[:2]] = np.nan
    choice = tuned([with_scores(loaded, k0_1=holes, k0_2=-truth, k0_5=-truth)])
    assert choice.tuned == "k=0.2"


def test_seeds_are_averaged(loaded):
    truth = loaded.member.astype(float)
    strong = with_scores(loaded, k0_1=truth, k0_2=0 * truth, k0_5=0.0 * truth)
    against = with_scores(loaded, k0_1=-truth, k0_2=0 * truth, k0_5=truth)
    assert tuned([strong, against]).tuned == "k=0.5"


def test_without_tune_rows_nothing_is_tuned(loaded):
    no_tune = dataclasses.replace(loaded, test=np.ones_like(loaded.test))
    choice = tuned([no_tune])
    assert choice.tuned is None
    assert choice.default == "k=0.2"
