"""The AUC of two arrays with its interval: equal to the report, with clear errors."""

import math

import numpy as np
import pyarrow as pa
import pytest

from analysis.any_scores import auc_interval, auc_table
from analysis.arm import DetectorColumn, load_arm
from analysis.results import analyse
from analysis.settings import AnalysisSettings
from inject.errors import InputError
from tests.analysis.oracles import auc
from tests.analysis.synthetic import make_arm

FAST = AnalysisSettings(dataset_detectors=())


def sample(n: int = 200, effect: float = 0.6, seed: int = 0):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, n)
    return random.normal(size=n) + effect * labels, labels


def test_interval_equals_the_detect_table_without_groups_and_seeds():
    scores, labels = sample()
    n = len(scores)
    table = pa.table(
        {"row": range(n), "detector": ["d"] * n, "setting": ["-"] * n, "score": scores}
    )
    groups = [f"g{row // 3}" for row in range(n)]
    assert auc_interval(scores, labels) == auc_table(table, labels.tolist())[0].auc
    interval = auc_interval(scores, labels, groups)
    assert interval == auc_table(table, labels.tolist(), groups)[0].auc
    assert interval.reason is None
    assert interval.low < interval.value < interval.high


@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2)])
def test_interval_matches_the_cell_of_the_report(tmp_path, seeds):
    """The value and both bounds are equal."""
    arms = [
        make_arm(
            tmp_path / str(seed),
            axes={},
            seed=seed,
            effect=0.5,
            fixed=1,
            datasets=("fictional",),
            n=60,
        )
        for seed in seeds
    ]
    metrics = analyse(arms, FAST).metrics.to_pylist()
    [cell] = [
        row
        for row in metrics
        if (row["detector"], row["selection"], row["dataset"]) == ("loss", "default", "all")
        and (row["metric"], row["copies"]) == ("auc", "all")
    ]
    scores, labels, groups, seed_of_row = [], [], [], []
    for arm in arms:
        loaded = load_arm(arm)
        rows = loaded.test
        scores += loaded.scores[rows, loaded.index[DetectorColumn("loss", "default")]].tolist()
        labels += loaded.member[rows].tolist()
        groups += loaded.group[rows].tolist()
        seed_of_row += [arm.seed] * int(rows.sum())
    interval = auc_interval(scores, labels, groups, seed_of_row, settings=FAST)
    assert interval.value == pytest.approx(cell["value"], abs=1e-12)
    assert interval.low == pytest.approx(cell["low"], abs=1e-9)
    assert interval.high == pytest.approx(cell["high"], abs=1e-9)


def test_seeds_are_clusters():
    """The value is the mean of the seeds' AUCs and not the AUC of the pooled rows."""
    scores, labels = sample(120)
    seeds = np.arange(120) % 2
    moved = scores + 100.0 * seeds
    interval = auc_interval(moved, labels, seeds=seeds, settings=FAST)
    apart = [
        auc(moved[(seeds == seed) & (labels == 1)], moved[(seeds == seed) & (labels == 0)])
        for seed in (0, 1)
    ]
    assert interval.value == pytest.approx(np.mean(apart), abs=1e-15)


@pytest.mark.parametrize(
    ("scores", "labels", "groups", "reason"),
    [
        ([1, 1, 1, 1], [0, 1, 0, 1], None, "all scores are equal"),
        ([1, 2, 3], [0, 1, 1], None, "one row only among the non-members"),
        ([1, 2, 3, 4], [0, 0, 1, 1], ["a", "a", "b", "c"], "one group only among the non-members"),
    ],
)
def test_missing_intervals_have_a_reason(scores, labels, groups, reason):
    interval = auc_interval(scores, labels, groups, settings=FAST)
    assert interval.reason == reason
    assert all(math.isnan(number) for number in interval[:3])


def test_a_perfect_ranking_has_a_valid_lower_bound():
    interval = auc_interval([1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 1, 1], settings=FAST)
    assert (interval.value, interval.high) == (1.0, 1.0)
    # Clopper and Pearson 1934: three of three successes.
    assert interval.low == pytest.approx(0.025 ** (1 / 3))
    assert interval.caution == "not to be trusted: 3 groups of members"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [1]), "1 labels for 2 scores"),
        (([1.0, 2.0], [1, 0], ["a"]), "1 groups for 2 scores"),
        (([1.0, 2.0], [1, 0], None, [0, 0, 0]), "3 seeds for 2 scores"),
        (
            ([1.0, math.nan, math.inf], [1, 0, 1]),
            "2 of 3 scores are not finite, the first in row 1",
        ),
        (([1.0, 2.0], [1, 1]), "all 2 rows are members.*add rows of non-members"),
        (([1.0, 2.0], [0, 0]), "all 2 rows are non-members.*add rows of members"),
        (([1.0, 2.0], [1, 2]), "row 1 has the label 2"),
        (([1.0, 2.0], [1, "0"]), "row 1 has the label '0'"),
        (([1.0, 2.0], [1, None]), "row 1 has the label None"),
        (([], []), "there are no scores"),
        (([[1.0], [2.0]], [1, 0]), r"shape \(2, 1\)"),
        ((["a", "b"], [1, 0]), "scores are not numbers"),
        (([1.0, 2.0], [1, 0], "ab"), "groups: is one text"),
    ],
)
def test_bad_input_is_reported(arguments, message):
    with pytest.raises(InputError, match=message):
        auc_interval(*arguments)


def test_rows_at_the_same_position_in_each_seed_are_one_text():
    """Known mistake: rows under three models counted as three times as many rows."""
    scores, labels = sample(200)
    random = np.random.default_rng(1)
    both = np.concatenate([scores + 0.1 * random.normal(size=200) for _ in range(3)])
    seeds, texts = np.repeat([0, 1, 2], 200), np.tile(np.arange(200), 3)
    placed = auc_interval(both, np.tile(labels, 3), seeds=seeds)
    assert placed == auc_interval(both, np.tile(labels, 3), texts, seeds)
    single = auc_interval(scores, labels)
    assert placed.high - placed.low > 0.9 * (single.high - single.low)


def test_seeds_with_different_row_counts_need_groups():
    scores, labels = sample(200)
    seeds = np.arange(200) >= 90
    interval = auc_interval(scores, labels, seeds=seeds)
    assert interval.value == auc_interval(scores, labels, np.arange(200), seeds).value
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert "different numbers of rows" in interval.reason
    assert auc_interval(scores, labels, np.arange(200), seeds).reason is None


def test_unscored_rows_are_dropped_or_separate_the_detector():
    random = np.random.default_rng(0)
    whole, few, many = random.normal(size=(3, 60))
    few[0], many[:20] = np.nan, np.nan
    labels = [1, 0] * 30
    loss, surp, zlib = auc_table(
        pa.Table.from_pylist(
            [
                {"row": row, "detector": name, "setting": "default", "score": float(value)}
                for name, values in {"loss": whole, "surp": few, "zlib": many}.items()
                for row, value in enumerate(values)
            ]
        ),
        labels,
        settings=FAST,
    )
    assert (loss.n_members, surp.n_members, zlib.n_members) == (29, 29, 20)
    assert (loss.own_rows, surp.own_rows, zlib.own_rows) == (False, False, True)
    assert (loss.unscored, surp.unscored, zlib.unscored) == (0, 1, 20)
    member = np.array(labels, dtype=bool) & np.isfinite(few)
    nonmember = ~np.array(labels, dtype=bool) & np.isfinite(few)
    assert loss.auc.value == pytest.approx(auc(whole[member], whole[nonmember]))
