"""The palimpsest test: brute-force formula, level and power on known truth, a finished run."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import spearmanr, t

from analysis.findings import read_table
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from analysis.trajectory.palimpsest import (
    NO_LOSS,
    OrderedMembers,
    correlation_and_weight,
    correlation_rows,
    correlation_sample,
    last_steps,
    permuted_correlations,
)
from detect.scores.table import SCHEMA, read_scores, write_scores
from inject.examples.example import read_examples
from inject.stream.exposures import NEVER, read_exposures
from tests.analysis.synthetic import FAST, make_arm

SETTINGS = AnalysisSettings(replicates=199)


def simulated(random, *, effect=0.0, n=60, per_group=2, spread=1.0) -> OrderedMembers:
    """Half of the members have one copy and half have four: likelier, and seen later."""
    copies = np.where(np.arange(n) // per_group % 2, 4, 1)
    step = random.integers(1, 100, size=n) + 40 * (copies == 4)
    place = (step - 50 - 40 * (copies == 4)) / 30
    noise = np.repeat(random.normal(size=-(-n // per_group)), per_group)[:n]
    gain = effect * place + 3.0 * (copies == 4) + spread * (noise + random.normal(size=n))
    return OrderedMembers(step.astype(float), gain, copies, np.arange(n) // per_group)


def expected(members: OrderedMembers) -> float:
    """Spearman's correlation of each copy count, weighted by n - 1."""
    pairs = []
    for count in set(members.copies.tolist()):
        own = members.among(members.copies == count)
        if len(set(own.step.tolist())) > 1 and len(set(own.gain.tolist())) > 1:
            pairs.append((spearmanr(own.step, own.gain).statistic, len(own.step) - 1))
    values, weights = zip(*pairs, strict=True)
    return float(np.average(values, weights=weights))


def row_of(members: OrderedMembers, settings=SETTINGS):
    n_groups = int(members.group.max()) + 1
    (row,) = correlation_rows({0: {"news": members}}, {"news": n_groups}, settings)
    return row


def test_correlation_is_spearmans_within_each_copy_count_and_its_interval_the_jackknifes():
    random = np.random.default_rng(1)
    members = simulated(random, effect=0.5)
    members = members._replace(gain=np.round(members.gain, 0), step=members.step // 10)
    row = row_of(members)
    assert row["value"] == pytest.approx(expected(members))
    assert (row["n_members"], row["strata"]) == (60, 2)
    left = np.array([expected(members.among(members.group != group)) for group in range(30)])
    error = np.sqrt(29 / 30 * np.square(left - left.mean()).sum()) / (1 - row["value"] ** 2)
    middle, half = np.arctanh(row["value"]), t.ppf(0.975, 29) * error
    assert (row["low"], row["high"]) == pytest.approx(
        (np.tanh(middle - half), np.tanh(middle + half))
    )


def test_one_copy_count_gives_the_statistic_of_the_paper():
    members = simulated(np.random.default_rng(2))._replace(copies=np.ones(60, dtype=np.int64))
    assert correlation_and_weight(members) == pytest.approx(
        (spearmanr(members.step, members.gain).statistic, 59)
    )


def test_p_value_is_the_share_of_all_orders_within_copy_counts():
    step, gain = np.array([3.0, 1, 4, 1, 5, 2, 6]), np.array([0.3, 0.1, 0.2, 0.5, 0.9, 0.4, 0.5])
    members = OrderedMembers(step, gain, np.array([1, 1, 1, 1, 2, 2, 2]), np.arange(7))
    values = [
        expected(members._replace(step=np.array([*first, *second])))
        for first in permutations(step[:4])
        for second in permutations(step[4:])
    ]
    exact = float(np.mean(np.array(values) >= expected(members) - 1e-12))
    count = 9_999
    row = row_of(members, AnalysisSettings(replicates=count))
    assert row["p_value"] == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / count))
    as_high = row["p_value"] * (1 + count) - 1
    assert as_high == pytest.approx(round(as_high))
    permuted = permuted_correlations(members, 500, np.random.default_rng(0))
    assert {round(value, 9) for value in permuted} <= {round(value, 9) for value in values}


def test_copy_counts_do_not_confound_the_null_hypothesis():
    random = np.random.default_rng(3)
    studies = [simulated(random) for _ in range(400)]
    p_values = np.array([row_of(members)["p_value"] for members in studies])
    assert 0.025 <= (p_values <= 0.05).mean() <= 0.08
    assert 0.42 <= np.median(p_values) <= 0.58
    together = [
        spearmanr(members.step, members.gain, alternative="greater").pvalue for members in studies
    ]
    assert (np.array(together) <= 0.05).mean() > 0.9


def test_a_planted_effect_is_found_in_its_direction():
    random = np.random.default_rng(4)
    rows = [row_of(simulated(random, effect=1.0)) for _ in range(60)]
    assert np.mean([row["p_value"] <= 0.05 for row in rows]) > 0.9
    assert all(row["value"] > 0 for row in rows)
    turned = [row_of(simulated(random, effect=-1.0)) for _ in range(20)]
    assert min(row["p_value"] for row in turned) > 0.5


def test_interval_covers_the_true_correlation_of_grouped_rows():
    random, true = np.random.default_rng(5), 6 / np.pi * np.arcsin(0.5 / 2)
    covered = []
    for _ in range(300):
        shared = np.repeat(random.normal(size=(2, 40)), 2, axis=1)
        first, noise = (shared + random.normal(size=(2, 80))) / np.sqrt(2)
        gain = 0.5 * first + np.sqrt(0.75) * noise
        members = OrderedMembers(first, gain, np.ones(80, dtype=np.int64), np.arange(80) // 2)
        row = row_of(members, AnalysisSettings(replicates=100))
        covered.append(row["low"] <= true <= row["high"])
    assert 0.915 <= np.mean(covered) <= 0.985


def test_seeds_and_datasets_are_averaged_and_their_permutations_too():
    random = np.random.default_rng(6)
    seeds = {
        seed: {name: simulated(random, effect=0.4, n=n) for name, n in (("news", 40), ("own", 80))}
        for seed in (0, 1)
    }
    rows = {
        row["dataset"]: row for row in correlation_rows(seeds, {"news": 20, "own": 40}, SETTINGS)
    }
    own = {name: [correlation_and_weight(seeds[s][name]) for s in (0, 1)] for name in seeds[0]}
    totals = [np.sum([own[name][s] for name in own], axis=0)[1] for s in (0, 1)]
    pooled = [sum(v * w for v, w in (own[name][s] for name in own)) / totals[s] for s in (0, 1)]
    assert rows["own"]["value"] == pytest.approx(np.mean([value for value, _ in own["own"]]))
    assert rows["all"]["value"] == pytest.approx(np.mean(pooled))
    assert (rows["all"]["n_members"], rows["all"]["strata"], rows["all"]["n_seeds"]) == (240, 8, 2)
    assert rows["all"]["p_value"] <= 0.05


def test_steps_that_do_not_differ_have_no_correlation():
    members = simulated(np.random.default_rng(7))._replace(step=np.ones(60))
    row = row_of(members)
    assert np.isnan(row["value"])
    assert row["interval"] == "none: steps or gains do not differ"
    mixed = members._replace(step=np.where(members.copies == 4, np.arange(60), 1.0))
    assert correlation_sample(mixed, 30).value[0] == pytest.approx(expected(mixed))
    assert row_of(mixed)["n_members"] == 30


def test_reference_is_the_twin_else_the_base_model_else_none(tmp_path):
    arm = make_arm(tmp_path / "arm", axes={}, seed=0, effect=0.8, n=40)
    others = [
        make_arm(tmp_path / model, axes={}, seed=0, effect=0.0, model=model, n=40)
        for model in ("base", "twin")
    ]
    for arms, reference in (([arm, *others], "twin"), ([arm, others[0]], "base"), ([arm], "none")):
        rows = analyse(arms, FAST).tables["palimpsest"].to_pylist()
        assert {row["versus"] for row in rows} == {reference}
        assert [row["dataset"] for row in rows] == ["all", "fictional", "news"]
        assert {row["permutations"] for row in rows} == {FAST.replicates}


def test_a_missing_loss_is_reported(tmp_path):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=0.8, n=40)
    scores = read_scores(tmp_path).cast(SCHEMA)
    rows = [row for row in scores.to_pylist() if row["detector"] != "loss"]
    write_scores(tmp_path, type(scores).from_pylist(rows, schema=SCHEMA), record={})
    (row,) = analyse([replace(arm)], FAST).tables["palimpsest"].to_pylist()
    assert row["interval"] == f"none: {NO_LOSS}"


@pytest.mark.slow
def test_finding_of_a_finished_run_is_that_of_its_files(shared_run):
    node = shared_run.node
    exposures = read_exposures(shared_run.stored(node.trained)).to_pylist()
    steps: dict[str, int] = {}
    copies: dict[str, set[int]] = {}
    for row in exposures:
        if row["status"] != NEVER:
            steps[row["example_id"]] = max(steps.get(row["example_id"], 0), row["step"])
            copies.setdefault(row["example_id"], set()).add(row["copy"])
    assert last_steps(shared_run.stored(node.trained)) == steps
    target, twin = (
        {
            row["example_id"]: row["score"]
            for row in read_scores(shared_run.stored(scores)).to_pylist()
            if row["detector"] == "loss"
        }
        for scores in (node.contaminated.own_scores, node.twins.clean.own_scores)
    )
    findings = {
        row["dataset"]: row for row in read_table(shared_run.folder, "palimpsest").to_pylist()
    }
    assert list(findings) == ["all", "fictional", "own"]
    pool = [
        example
        for example in read_examples(shared_run.stored(node.examples))
        if example.side == "member"
    ]
    for dataset in ("fictional", "own"):
        names = [example.example_id for example in pool if example.dataset == dataset]
        names = [name for name in names if name in steps]
        members = OrderedMembers(
            np.array([float(steps[name]) for name in names]),
            np.array([target[name] - twin[name] for name in names]),
            np.array([len(copies[name]) for name in names]),
            np.arange(len(names)),
        )
        row = findings[dataset]
        assert row["value"] == pytest.approx(expected(members))
        replicates = shared_run.graph.experiment.analysis.replicates
        assert (row["versus"], row["permutations"]) == ("twin", replicates)
        as_high = row["p_value"] * (1 + replicates) - 1
        assert as_high == pytest.approx(round(as_high), abs=1e-6)
