"""The tables of an analysis against plain computations, and the rows with an interval."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from analysis.arm import Arm, DetectorColumn, load_arm
from analysis.metrics import TREND, TUNE_AUC
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from detect.scores.table import read_scores, write_scores
from inject.errors import InputError
from tests.analysis.oracles import auc
from tests.analysis.synthetic import FAST, make_arm, make_experiment


def metrics_of(arms: list[Arm], settings: AnalysisSettings) -> pa.Table:
    return analyse(arms, settings).metrics


def rows_of(table: pa.Table, **conditions: str) -> list[dict]:
    return [row for row in table.to_pylist() if all(row[k] == v for k, v in conditions.items())]


def row_of(table: pa.Table, **conditions: str) -> dict:
    (row,) = rows_of(table, **conditions)
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
    scores = loaded.scores[:, loaded.index[DetectorColumn("zlib", "default")]]
    weighted, members = 0.0, 0
    for dataset in ("fictional", "news"):
        in_dataset = loaded.test & (loaded.dataset == dataset)
        exposed = in_dataset & loaded.member & (loaded.copies > 0)
        expected = auc(scores[exposed], scores[in_dataset & ~loaded.member])
        cell = row_of(
            table, dataset=dataset, detector="zlib", selection="default", copies="all", metric="auc"
        )
        assert cell["value"] == pytest.approx(expected)
        assert cell["n_members"] == exposed.sum()
        assert cell["n_nonmembers"] == (in_dataset & ~loaded.member).sum()
        weighted += expected * exposed.sum()
        members += exposed.sum()
        dose = in_dataset & loaded.member & (loaded.copies == 2)
        rows = rows_of(
            table, dataset=dataset, detector="zlib", selection="default", copies="2", metric="auc"
        )
        if dose.sum() >= 10:
            assert rows[0]["value"] == pytest.approx(
                auc(scores[dose], scores[in_dataset & ~loaded.member])
            )
        else:
            assert not rows
    pooled = row_of(
        table, dataset="all", detector="zlib", selection="default", copies="all", metric="auc"
    )
    assert pooled["value"] == pytest.approx(weighted / members)
    assert pooled["low"] < pooled["value"] < pooled["high"]


def test_one_dataset_equals_the_pooled_row(tmp_path):
    table = metrics_of(
        [make_arm(tmp_path, axes={}, seed=0, effect=1.0, datasets=("news",), n=40)], FAST
    )
    all_datasets, single_dataset = rows_of(table, dataset="all"), rows_of(table, dataset="news")
    # The AUC for choosing the best exists only for all datasets together.
    pooled = [row for row in all_datasets if row["metric"] != TUNE_AUC]
    assert len(all_datasets) > len(pooled)
    assert len(pooled) == len(single_dataset) > 0
    for left, right in zip(pooled, single_dataset, strict=True):
        assert str(left | {"dataset": ""}) == str(right | {"dataset": ""})


def test_pooling_is_robust_to_datasets_of_different_scale(arm_and_metrics, tmp_path):
    """Every score of one dataset is 100 higher."""
    arm, before = arm_and_metrics
    scores = read_scores(arm.scores).to_pylist()
    loaded = load_arm(arm)
    news = {e.example_id for e in loaded.examples if e.dataset == "news"}
    for row in scores:
        row["score"] += 100.0 * (row["example_id"] in news)
    write_scores(tmp_path, pa.Table.from_pylist(scores), record={})
    after = metrics_of([dataclasses.replace(arm, scores=tmp_path)], FAST)
    place = {"dataset": "all", "detector": "loss", "selection": "default", "copies": "all"}
    assert row_of(before, metric="auc", **place)["value"] == pytest.approx(
        row_of(after, metric="auc", **place)["value"]
    )


def test_zero_copies_are_separate_or_join_the_nonmembers(arm_and_metrics):
    arm, apart = arm_and_metrics
    place = {"dataset": "all", "detector": "loss", "selection": "default", "metric": "auc"}
    joined = metrics_of([arm], FAST.model_copy(update={"zero_copies": "nonmember"}))
    zero = row_of(apart, copies="0", **place)
    assert zero["low"] < 0.5 < zero["high"]
    assert not rows_of(joined, copies="0", **place)
    whole = row_of(apart, copies="all", **place)
    assert (
        row_of(joined, copies="all", **place)["n_nonmembers"]
        == whole["n_nonmembers"] + zero["n_members"]
    )


def test_rows_unscored_by_a_detector_are_dropped_from_all_comparisons(tmp_path):
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


def test_a_detector_with_many_failures_is_measured_on_its_own_rows(tmp_path):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, unscored={"surp": 60})
    analysis = analyse([arm], FAST)
    (report,) = [u for u in analysis.unscored if u.apart]
    assert {column.detector for column, _ in report.apart} == {"surp"}
    assert report.left_out == 0
    place = {"dataset": "fictional", "copies": "all", "metric": "auc", "selection": "default"}
    surp = row_of(analysis.metrics, detector="surp", **place)
    loss = row_of(analysis.metrics, detector="loss", **place)
    assert surp["n_members"] < loss["n_members"]
    assert not rows_of(analysis.differences, detector="surp", dataset="fictional")
    assert rows_of(analysis.differences, detector="surp", dataset="news")


def test_rate_counts_only_rows_of_supporting_seeds(tmp_path):
    """At 10 % FPR one seed has the required hundred non-members, the other only sixty."""
    arms = [
        make_arm(tmp_path / str(n), axes={}, seed=seed, effect=1.0, datasets=("news",), n=n)
        for seed, n in ((0, 160), (1, 80))
    ]
    table = metrics_of(arms, FAST)
    seed_0 = metrics_of(arms[:1], FAST)
    place = {"dataset": "all", "detector": "loss", "selection": "default", "copies": "all"}
    names = ("value", "n_members", "n_nonmembers", "n_seeds")
    both = row_of(table, metric="auc", **place)
    assert (both["n_nonmembers"], both["n_seeds"]) == (180, 2)
    rate, first = (
        row_of(table, metric="tpr@0.1", **place),
        row_of(seed_0, metric="tpr@0.1", **place),
    )
    assert {name: rate[name] for name in names} == {name: first[name] for name in names}
    assert (rate["n_nonmembers"], rate["n_seeds"]) == (120, 1)


def test_pooled_dose_counts_nonmembers_of_its_datasets(tmp_path):
    """Only one dataset has members with eight copies, so only its non-members count."""
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, fixed=8, n=40)
    loaded = load_arm(arm)
    fewer = {
        example.example_id: 8 if example.dataset == "news" else 1
        for example in loaded.examples
        if example.side == "member"
    }
    table = metrics_of([dataclasses.replace(arm, copies=fewer)], FAST)
    place = {"detector": "loss", "selection": "default", "copies": "8", "metric": "auc"}
    pooled, news = row_of(table, dataset="all", **place), row_of(table, dataset="news", **place)
    assert pooled["value"] == pytest.approx(news["value"])
    assert (pooled["n_members"], pooled["n_nonmembers"]) == (30, 30)


def test_results_are_independent_of_other_arms_and_their_order(experiment):
    arms, analysis = experiment
    # The base model adjusts the arm's numbers, so it is included.
    few = [arm for arm in reversed(arms) if arm.axes == arms[0].axes or arm.model == "base"]
    few_arms, all_arms = (
        [
            row
            for row in table.to_pylist()
            if row["train.lr"] == "0.0003" and row["sweep.copies"] == "poisson=4"
        ]
        for table in (metrics_of(few, FAST), analysis.metrics)
    )
    assert str(few_arms) == str(all_arms)


def test_paired_differences_are_narrower_than_unpaired_ones(experiment):
    _, analysis = experiment
    place = {"train.lr": "0.001", "sweep.copies": "poisson=4", "dataset": "all", "copies": "all"}
    place |= {"selection": "default", "metric": "auc"}
    gap = row_of(analysis.differences, detector="zlib", reference="loss", **place)
    cells = {name: row_of(analysis.metrics, detector=name, **place) for name in ("zlib", "loss")}
    assert gap["value"] == pytest.approx(cells["zlib"]["value"] - cells["loss"]["value"])
    width = {name: cell["high"] - cell["low"] for name, cell in cells.items()}
    assert gap["high"] - gap["low"] < np.hypot(width["zlib"], width["loss"])
    best = rows_of(analysis.differences, reference="best", **place)
    assert best
    assert all(row["value"] <= 0 for row in best)
    assert not any("blind" in (row["detector"], row["versus"]) for row in best)


def test_best_detector_is_chosen_on_tune_rows(experiment):
    arms, analysis = experiment
    place = {"train.lr": "0.001", "sweep.copies": "poisson=4", "dataset": "all", "copies": "all"}
    rows = rows_of(analysis.metrics, metric="tune_auc", selection="tuned", **place)
    (choices,) = [
        chosen
        for cohort, chosen in analysis.choices.items()
        if dict(cohort.axes) == {"train.lr": "0.001", "copies": "poisson=4"}
    ]
    assert {row["detector"]: row["value"] for row in rows} == pytest.approx(
        {choice.detector: choice.tune_auc for choice in choices}
    )
    tune = {row["detector"]: row["value"] for row in rows if row["detector"] != "blind"}
    best = max(tune, key=lambda name: tune[name])
    (versus,) = {
        row["versus"]
        for row in rows_of(analysis.differences, reference="best", selection="tuned", **place)
    }
    assert versus == best


def test_two_arms_with_the_same_seed_are_rejected(tmp_path):
    arm = make_arm(tmp_path, axes={"train.lr": "1"}, seed=0, effect=0.0, n=16)
    with pytest.raises(InputError, match="share their axes and their seed"):
        metrics_of([arm, arm], FAST)


def test_too_few_members_have_a_value_and_no_interval(tmp_path):
    """Eight members of which six are in the test split, and more non-members."""
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, datasets=("news",), n=8, fixed=2)
    place = {"dataset": "all", "detector": "loss", "selection": "default", "copies": "all"}
    few = row_of(metrics_of([arm], FAST), metric="auc", **place)
    assert few["n_members"] == 6
    assert np.isfinite(few["value"])
    assert np.isnan([few["low"], few["high"]]).all()
    assert few["interval"] == "none: 6 members, fewer than min_members"
    allowed = FAST.model_copy(update={"min_members": 6})
    assert row_of(metrics_of([arm], allowed), metric="auc", **place)["interval"] != few["interval"]


def test_planned_levels_narrow_intervals_and_keep_values(tmp_path):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=2.0, datasets=("news",), n=80)
    members = [example for example in load_arm(arm).examples if example.side == "member"]
    # By group, as the plan deals them.
    copies = {example.example_id: (1, 16)[int(example.group[1:]) % 2] for example in members}
    random = np.random.default_rng(0)
    rows = read_scores(arm.scores).to_pylist()
    for row in rows:
        row["score"] = 2.0 * np.log2(1 + copies.get(row["example_id"], 0)) + random.normal(scale=3)
    write_scores(arm.scores, pa.Table.from_pylist(rows), record={})
    laid_out = dataclasses.replace(arm, copies=copies)
    place = {"dataset": "all", "detector": "loss", "selection": "default", "copies": "all"}
    without_strata, with_strata = (
        metrics_of([dataclasses.replace(laid_out, fixed_levels=levels)], FAST)
        for levels in (False, True)
    )
    # With two levels a trend gains no precision: it depends only on the mean of each level.
    for metric, narrower in (("auc", 0.95), (TREND, 1.1)):
        one_stratum, strata = (
            row_of(table, metric=metric, **place) for table in (without_strata, with_strata)
        )
        assert strata["value"] == one_stratum["value"]
        width = strata["high"] - strata["low"]
        assert width < narrower * (one_stratum["high"] - one_stratum["low"])
        assert strata["low"] != one_stratum["low"]
    dose = {**place, "copies": "16", "metric": "auc"}
    assert str(row_of(without_strata, **dose)) == str(row_of(with_strata, **dose))
