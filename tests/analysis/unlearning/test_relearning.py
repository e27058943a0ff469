"""Relearning: what is known of the half that was not learned again, and when it is back."""

import numpy as np
import pytest

from analysis.unlearning.evidence import ModelEvidence
from analysis.unlearning.settings import MeasureSettings
from analysis.unlearning.unlearning_step import measure_unlearning
from tests.analysis.unlearning.slow import Disk, changed, one, slow_mean
from tests.analysis.unlearning.studies import Study, write_study

QUICK = MeasureSettings(permutations=199)


@pytest.fixture(scope="module")
def arms(tmp_path_factory):
    study = Study(groups=12, methods={"npo": 0.3}, unscored=1)
    return write_study(tmp_path_factory.mktemp("study") / "arms", study)


def test_relearning_is_read_of_the_half_that_was_not_learned_again(arms):
    arm = arms[0]
    half = frozenset(sorted(arm.forget)[::2])
    models = {(model.model, model.method): model for model in arm.models}
    steps = {5: models["retrained", "-"].statistics, 20: models["original", "-"].statistics}
    learning = tuple(
        ModelEvidence(**{**vars(model), "relearning": steps if model.method == "npo" else {}})
        for model in arm.models
    )
    rows = measure_unlearning([changed(arm, models=learning, relearnt=half)], QUICK)
    found = one(
        rows["unlearning"].to_pylist(), measure="relearn_steps", model="unlearned", method="npo"
    )
    # After 20 steps it is the original itself, so nothing differs and no interval is needed.
    assert found["value"] == 20
    # One of few steps has no honest interval, and the row says so.
    assert np.isnan([found["low"], found["high"]]).all()
    assert found["note"].startswith("no interval")
    scored = [
        i
        for i, row in Disk(arm, "original").tokens.items()
        if i in arm.forget - half and len(row["rank"])
    ]
    assert found["forget"] == len(scored)


def test_what_is_known_after_some_steps_is_the_mean_of_the_half_that_was_not_learned(arms):
    arm = arms[0]
    half = frozenset(sorted(arm.forget)[::2])
    folders = {(model.model, model.method): model.statistics for model in arm.models}
    after = {"unlearned": folders["original", "-"], "retrained": folders["base", "-"]}
    learning = tuple(
        ModelEvidence(**{**vars(model), "relearning": {5: after[model.model]}})
        if model.model in after
        else model
        for model in arm.models
    )
    found = measure_unlearning([changed(arm, models=learning, relearnt=half)], QUICK)
    rows = found["unlearning"].to_pylist()
    name = "relearned_log_probability"
    before = {
        key: slow_mean([arm], *key, "log_probability", lambda arm: sorted(arm.forget - half))
        for key in folders
    }
    asked = {"measure": name, "dataset": "all", "model": "unlearned", "method": "npo"}
    assert one(rows, setting="steps=0", **asked)["value"] == pytest.approx(
        before["unlearned", "npo"]
    )
    assert one(rows, setting="steps=5", **asked)["value"] == pytest.approx(before["original", "-"])
    known = {"measure": name, "dataset": "all", "model": "retrained", "setting": "steps=5"}
    assert one(rows, **known)["value"] == pytest.approx(before["base", "-"])
    gap = one(
        rows,
        **{**asked, "measure": f"{name}_difference", "setting": "steps=5:versus=retrained"},
    )
    assert gap["value"] == pytest.approx(before["original", "-"] - before["base", "-"])
    assert gap["low"] < gap["value"] < gap["high"]
