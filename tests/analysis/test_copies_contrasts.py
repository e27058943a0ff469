"""The effect of more copies on an AUC, against loops over the stored scores."""

from collections import defaultdict
from itertools import pairwise
from math import sqrt

import numpy as np
import pytest

from analysis.arm import cohorts, load_arm
from analysis.auc_cells import PreparedCohort, measure_columns
from analysis.results import analyse
from detect.scores.table import read_scores
from inject.examples.example import read_examples
from tests.analysis.oracles import auc
from tests.analysis.synthetic import FAST, make_arm

LOSS = ("loss", "default")


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """Groups of two rows with one Poisson draw each; some scores are equal."""
    return make_arm(tmp_path_factory.mktemp("arm"), axes={"a": "1"}, seed=0, effect=0.5, n=60)


@pytest.fixture(scope="module")
def rows(arm):
    return [row for row in analyse([arm], FAST).copies if row["detector"] == "loss"]


def scores_on_disk(arm, dataset):
    """Return (group, copies, score) of members and non-members of the test split."""
    table = read_scores(arm.scores).to_pylist()
    score = {
        row["example_id"]: row["score"]
        for row in table
        if (row["detector"], row["setting"]) == LOSS
    }
    sides = {"member": [], "nonmember": []}
    for example in read_examples(arm.examples):
        if example.split == "test" and example.dataset == dataset:
            name = example.example_id
            sides[example.side].append((example.group, arm.copies.get(name, 0), score[name]))
    return sides["member"], sides["nonmember"]


def counts_of(label):
    """Return the copy counts that a label stands for."""
    first, _, last = label.partition("-")
    return range(int(first), int(last or first) + 1)


def oracle(arm, datasets, level, versus):
    """Return the difference of two AUCs and its variance, summed by loops."""
    aucs, moved = defaultdict(float), defaultdict(float)
    of = {name: scores_on_disk(arm, name) for name in datasets}
    for sign, label in ((1, level), (-1, versus)):
        members = {n: [r for r in of[n][0] if r[1] in counts_of(label)] for n in datasets}
        total = sum(len(rows) for rows in members.values())
        for name, inside in members.items():
            outside, share = of[name][1], len(inside) / total
            value = auc([s for *_, s in inside], [s for *_, s in outside])
            aucs[label] += share * value
            groups = {group for group, *_ in inside}
            factor = sign * share * sqrt(len(groups) / (len(groups) - 1)) / len(inside)
            for group, _, score in inside:
                placed = auc([score], [s for *_, s in outside])
                moved[name, group] += factor * (placed - value)
            groups = {group for group, *_ in outside}
            factor = sign * share * sqrt(len(groups) / (len(groups) - 1)) / len(outside)
            for group, _, score in outside:
                above = auc([s for *_, s in inside], [score])
                moved[name, group] += factor * (above - value)
    return aucs[level] - aucs[versus], sum(shift**2 for shift in moved.values())


def test_contrasts_compare_extreme_and_neighbouring_copy_counts(rows):
    pooled = [(row["level"], row["versus"]) for row in rows if row["dataset"] == "all"]
    doses = [pooled[1][1], *(level for level, _ in pooled[1:])]
    assert len(doses) > 3
    assert pooled[0] == (doses[-1], doses[0])
    assert pooled[1:] == [(more, fewer) for fewer, more in pairwise(doses)]
    assert {row["kind"] for row in rows} == {"copies"}
    assert {row["a"] for row in rows} == {"1"}
    assert "0" not in {row["versus"] for row in rows}


def test_differences_and_variances_match_loops_over_stored_scores(arm, rows):
    (cohort, same), loaded = next(iter(cohorts([arm]).items())), [load_arm(arm)]
    assert same == [arm]
    (column,) = [column for column in loaded[0].columns if column == LOSS]
    work = PreparedCohort.prepare(cohort, loaded, [column], FAST)
    measured = measure_columns(work, [column])[column]
    labels = [cell.label for cell in work.cells]
    for row in rows:
        pooled = row["dataset"] == "all"
        datasets = ["fictional", "news"] if pooled else [row["dataset"]]
        value, variance = oracle(arm, datasets, row["level"], row["versus"])
        assert row["value"] == pytest.approx(value, abs=1e-12)
        pair = (labels.index(row["level"]), labels.index(row["versus"]))
        gap = measured.auc.of(None if pooled else row["dataset"]).between([pair]).clustered()
        assert gap.value == pytest.approx([value], abs=1e-12)
        assert gap.variance == pytest.approx([variance], rel=1e-9)
        width = row["pointwise_high"] - row["pointwise_low"]
        assert width / 2 / sqrt(variance) == pytest.approx(2.0, abs=0.3)


def test_family_intervals_are_wider_than_pointwise_ones(rows):
    for row in (row for row in rows if row["dataset"] == "all"):
        assert (
            row["low"] < row["pointwise_low"] < row["value"] < row["pointwise_high"] < row["high"]
        )
        assert row["shown"].startswith("this model")
        assert not row["reason"]


def test_incomplete_seeds_and_too_few_members_have_no_interval(tmp_path):
    seeds = [
        make_arm(tmp_path / str(seed), axes={}, seed=seed, effect=0.5, n=60, fixed=copies)
        for seed, copies in enumerate((1, 4))
    ]
    rows = [row for row in analyse(seeds, FAST).copies if row["detector"] == "loss"]
    assert {row["reason"] for row in rows} == {"not every seed has members of both"}
    assert all(np.isnan(row["pointwise_low"]) for row in rows)
    assert analyse(seeds, FAST.model_copy(update={"min_members": 1000})).copies == ()
