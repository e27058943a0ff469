"""The tables of an analysis against plain computations, and which rows have an interval."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from analysis.arm import Arm, Column, load_arm
from analysis.metrics import TREND, TUNE_AUC
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from detect.scores.table import read_scores, write_scores
from inject.errors import InputError
from tests.analysis.oracles import auc
from tests.analysis.synthetic import FAST, make_arm, make_experiment


def metrics_of(arms: list[Arm], settings: AnalysisSettings) -> pa.Table:
    return analyse(arms, settings).metrics


def rows_of(table: pa.Table, **wanted: str) -> list[dict]:
    return [row for row in table.to_pylist() if all(row[k] == v for k, v in wanted.items())]


def one(table: pa.Table, **wanted: str) -> dict:
    (row,) = rows_of(table, **wanted)
    return row


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    arms = make_experiment(tmp_path_factory.mktemp("experiment"), seeds=(0, 1), n=40)
    return arms, analyse(arms, FAST)


@pytest.fixture(scope="module")
def arm_and_metrics(tmp_path_factory):
    """One arm, many of whose members have no copy."""
    arm = make_arm(
        tmp_path_factory.mktemp("arm"), axes={}, seed=3, effect=0.8, copies_rate=1.0, n=80
    )
    return arm, metrics_of([arm], FAST)


def test_values_agree_with_a_plain_computation(arm_and_metrics):
    arm, table = arm_and_metrics
    loaded = load_arm(arm)
    scores = loaded.scores[:, loaded.index[Column("zlib", "default")]]
    weighted, members = 0.0, 0
    for dataset in ("fictional", "news"):
        here = loaded.test & (loaded.dataset == dataset)
        exposed = here & loaded.member & (loaded.copies > 0)
        expected = auc(scores[exposed], scores[here & ~loaded.member])
        cell = one(
            table, dataset=dataset, detector="zlib", selection="default", copies="all", metric="auc"
        )
        assert cell["value"] == pytest.approx(expected)
        assert cell["n_members"] == exposed.sum()
        assert cell["n_nonmembers"] == (here & ~loaded.member).sum()
        weighted += expected * exposed.sum()
        members += exposed.sum()
        dose = here & loaded.member & (loaded.copies == 2)
        found = rows_of(
            table, dataset=dataset, detector="zlib", selection="default", copies="2", metric="auc"
        )
        if dose.sum() >= 10:
            assert found[0]["value"] == pytest.approx(
                auc(scores[dose], scores[here & ~loaded.member])
            )
        else:
            assert not found
    pooled = one(
        table, dataset="all", detector="zlib", selection="default", copies="all", metric="auc"
    )
    assert pooled["value"] == pytest.approx(weighted / members)
    assert pooled["low"] < pooled["value"] < pooled["high"]


def test_one_dataset_equals_the_pooled_row(tmp_path):
    table = metrics_of(
        [make_arm(tmp_path, axes={}, seed=0, effect=1.0, datasets=("news",), n=40)], FAST
    )
    every, alone = rows_of(table, dataset="all"), rows_of(table, dataset="news")
    # What the best is chosen by is told of all datasets together alone.
    pooled = [row for row in every if row["metric"] != TUNE_AUC]
    assert len(every) > len(pooled)
    assert len(pooled) == len(alone) > 0
    for left, right in zip(pooled, alone, strict=True):
        assert str(left | {"dataset": ""}) == str(right | {"dataset": ""})


def test_pooling_is_not_fooled_by_datasets_of_different_scale(arm_and_metrics, tmp_path):
    """Every score of one dataset is 100 higher."""
    arm, before = arm_and_metrics
    scores = read_scores(arm.scores).to_pylist()
    loaded = load_arm(arm)
    news = {e.example_id for e in loaded.examples if e.dataset == "news"}
    for row in scores:
        row["score"] += 100.0 * (row["example_id"] in news)
    write_scores(tmp_path, pa.Table.from_pylist(scores), record={})
    after = metrics_of([dataclasses.replace(arm, scores=tmp_path)], FAST)
    where = {"dataset": "all", "detector": "loss", "selection": "default", "copies": "all"}
    assert one(before, metric="auc", **where)["value"] == pytest.approx(
        one(after, metric="auc", **where)["value"]
    )


def test_zero_copies_stand_apart_or_join_the_nonmembers(arm_and_metrics):
    arm, apart = arm_and_metrics
    where = {"dataset": "all", "detector": "loss", "selection": "default", "metric": "auc"}
    joined = metrics_of([arm], FAST.model_copy(update={"zero_copies": "nonmember"}))
    zero = one(apart, copies="0", **where)
    assert zero["low"] < 0.5 < zero["high"]
    assert not rows_of(joined, copies="0", **where)
    whole = one(apart, copies="all", **where)
    assert (
        one(joined, copies="all", **where)["n_nonmembers"]
        == whole["n_nonmembers"] + zero["n_members"]
    )


def test_rows_no_detector_may_miss_leave_every_comparison(tmp_path):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, unscored={"surp": 5})
    analysis = analyse([arm], FAST)
    counts = {
        row["n_members"] + row["n_nonmembers"]
        for row in rows_of(analysis.metrics, dataset="fictional", copies="all", metric="auc")
    }
    loaded = load_arm(arm)
    zero = (loaded.test & loaded.member & (loaded.copies == 0))[:240].sum()
    assert len(counts) == 1
    (report,) = [u for u in analysis.unscored if u.left_out]
    assert (report.dataset, report.rows, report.left_out, report.apart) == ("fictional", 180, 5, ())
    assert report.reasons == (("surp", "empty selection", 5),)
    assert counts == {180 - 5 - zero}


def test_a_detector_that_fails_too_often_is_set_apart_on_its_own_rows(tmp_path):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, unscored={"surp": 60})
    analysis = analyse([arm], FAST)
    (report,) = [u for u in analysis.unscored if u.apart]
    assert {apart.column.detector for apart in report.apart} == {"surp"}
    assert report.left_out == 0
    where = {"dataset": "fictional", "copies": "all", "metric": "auc", "selection": "default"}
    surp = one(analysis.metrics, detector="surp", **where)
    loss = one(analysis.metrics, detector="loss", **where)
    assert surp["n_members"] < loss["n_members"]
    assert not rows_of(analysis.differences, detector="surp", dataset="fictional")
    assert rows_of(analysis.differences, detector="surp", dataset="news")


def test_a_rate_counts_the_rows_of_the_seeds_that_support_it(tmp_path):
    """At 10 % FPR one seed has the hundred non-members it takes, the other sixty."""
    arms = [
        make_arm(tmp_path / str(n), axes={}, seed=seed, effect=1.0, datasets=("news",), n=n)
        for seed, n in ((0, 160), (1, 80))
    ]
    table = metrics_of(arms, FAST)
    alone = metrics_of(arms[:1], FAST)
    where = {"dataset": "all", "detector": "loss", "selection": "default", "copies": "all"}
    names = ("value", "n_members", "n_nonmembers", "n_seeds")
    both = one(table, metric="auc", **where)
    assert (both["n_nonmembers"], both["n_seeds"]) == (180, 2)
    rate, first = one(table, metric="tpr@0.1", **where), one(alone, metric="tpr@0.1", **where)
    assert {name: rate[name] for name in names} == {name: first[name] for name in names}
    assert (rate["n_nonmembers"], rate["n_seeds"]) == (120, 1)


def test_a_pooled_dose_counts_the_nonmembers_of_the_datasets_that_have_it(tmp_path):
    """Members of one dataset have eight copies: the other's non-members say nothing of them."""
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, fixed=8, n=40)
    loaded = load_arm(arm)
    fewer = {
        example.example_id: 8 if example.dataset == "news" else 1
        for example in loaded.examples
        if example.side == "member"
    }
    table = metrics_of([dataclasses.replace(arm, copies=fewer)], FAST)
    where = {"detector": "loss", "selection": "default", "copies": "8", "metric": "auc"}
    pooled, news = one(table, dataset="all", **where), one(table, dataset="news", **where)
    assert pooled["value"] == pytest.approx(news["value"])
    assert (pooled["n_members"], pooled["n_nonmembers"]) == (30, 30)


def test_results_do_not_depend_on_the_order_or_company_of_arms(experiment):
    arms, analysis = experiment
    # The base model adjusts the arm's numbers, so it comes along.
    few = [arm for arm in reversed(arms) if arm.axes == arms[0].axes or arm.model == "base"]
    alone, together = (
        [
            row
            for row in table.to_pylist()
            if row["train.lr"] == "0.0003" and row["sweep.copies"] == "poisson=4"
        ]
        for table in (metrics_of(few, FAST), analysis.metrics)
    )
    assert str(alone) == str(together)


def test_paired_differences_are_narrower_than_unpaired_ones(experiment):
    _, analysis = experiment
    where = {"train.lr": "0.001", "sweep.copies": "poisson=4", "dataset": "all", "copies": "all"}
    where |= {"selection": "default", "metric": "auc"}
    gap = one(analysis.differences, detector="zlib", reference="loss", **where)
    cells = {name: one(analysis.metrics, detector=name, **where) for name in ("zlib", "loss")}
    assert gap["value"] == pytest.approx(cells["zlib"]["value"] - cells["loss"]["value"])
    width = {name: cell["high"] - cell["low"] for name, cell in cells.items()}
    assert gap["high"] - gap["low"] < np.hypot(width["zlib"], width["loss"])
    best = rows_of(analysis.differences, reference="best", **where)
    assert best
    assert all(row["value"] <= 0 for row in best)
    assert not any("blind" in (row["detector"], row["versus"]) for row in best)


def test_the_best_is_chosen_on_tune_and_its_band_holds_more_than_its_interval(experiment):
    arms, analysis = experiment
    where = {"train.lr": "0.001", "sweep.copies": "poisson=4", "dataset": "all", "copies": "all"}
    rows = rows_of(analysis.metrics, metric="tune_auc", selection="tuned", **where)
    (choices,) = [
        found
        for cohort, found in analysis.choices.items()
        if dict(cohort.axes) == {"train.lr": "0.001", "copies": "poisson=4"}
    ]
    assert {row["detector"]: row["value"] for row in rows} == pytest.approx(
        {one.detector: one.tune_auc for one in choices}
    )
    tune = {row["detector"]: row["value"] for row in rows if row["detector"] != "blind"}
    best = max(tune, key=lambda name: tune[name])
    (versus,) = {
        row["versus"]
        for row in rows_of(analysis.differences, reference="best", selection="tuned", **where)
    }
    assert versus == best


def test_two_arms_with_the_same_seed_are_refused(tmp_path):
    arm = make_arm(tmp_path, axes={"train.lr": "1"}, seed=0, effect=0.0, n=16)
    with pytest.raises(InputError, match="share their axes and their seed"):
        metrics_of([arm, arm], FAST)


def test_too_few_members_have_a_value_and_no_interval(tmp_path):
    """Eight members of which six are tested, and as many non-members as one likes."""
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, datasets=("news",), n=8, fixed=2)
    where = {"dataset": "all", "detector": "loss", "selection": "default", "copies": "all"}
    few = one(metrics_of([arm], FAST), metric="auc", **where)
    assert few["n_members"] == 6
    assert np.isfinite(few["value"])
    assert np.isnan([few["low"], few["high"]]).all()
    assert few["interval"] == "none: 6 members, fewer than min_members"
    allowed = FAST.model_copy(update={"min_members": 6})
    assert one(metrics_of([arm], allowed), metric="auc", **where)["interval"] != few["interval"]


def test_levels_that_are_laid_out_make_narrower_intervals_and_no_other_value(tmp_path):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=2.0, datasets=("news",), n=80)
    members = [one for one in load_arm(arm).examples if one.side == "member"]
    # By group, as the plan deals them.
    copies = {one.example_id: (1, 16)[int(one.group[1:]) % 2] for one in members}
    random = np.random.default_rng(0)
    rows = read_scores(arm.scores).to_pylist()
    for row in rows:
        row["score"] = 2.0 * np.log2(1 + copies.get(row["example_id"], 0)) + random.normal(scale=3)
    write_scores(arm.scores, pa.Table.from_pylist(rows), record={})
    laid_out = dataclasses.replace(arm, copies=copies)
    where = {"dataset": "all", "detector": "loss", "selection": "default", "copies": "all"}
    drawn, fixed = (
        metrics_of([dataclasses.replace(laid_out, fixed_levels=levels)], FAST)
        for levels in (False, True)
    )
    # With two levels no more can be known of a trend: each level's mean is in it as it is.
    for metric, narrower in (("auc", 0.95), (TREND, 1.1)):
        one_stratum, strata = (one(table, metric=metric, **where) for table in (drawn, fixed))
        assert strata["value"] == one_stratum["value"]
        width = strata["high"] - strata["low"]
        assert width < narrower * (one_stratum["high"] - one_stratum["low"])
        assert strata["low"] != one_stratum["low"]
    dose = {**where, "copies": "16", "metric": "auc"}
    assert str(one(drawn, **dose)) == str(one(fixed, **dose))
