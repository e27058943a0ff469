"""Fading within examples: the slope against least squares, unbiased by the learning rate."""

import numpy as np
import pytest

from analysis.intervals.ends import IntervalMethod
from analysis.intervals.numbers import Numbers
from analysis.page.parts import pictures_in
from analysis.page.sections.trajectory import trajectory_section
from analysis.page.table import Table
from analysis.settings import AnalysisSettings
from analysis.trajectory.checkpoints import trajectory_tables
from analysis.trajectory.fading import FADING_SLOPE, NOT_CONSTANT, RATE_WARNING, Placed, slope_part
from tests.analysis.oracles import auc
from tests.analysis.synthetic import make_examples
from tests.analysis.trajectory.test_checkpoints import SETTINGS, make_checkpoints, scores_of


def row_of(rows, metric, **conditions):
    conditions = {"detector": "loss", "selection": "default", "copies": "all", **conditions}
    [row] = [
        row
        for row in rows
        if row["metric"] == metric and all(row[name] == value for name, value in conditions.items())
    ]
    return row


def test_slope_matches_least_squares_with_one_constant_per_stay(tmp_path):
    checkpoints = make_checkpoints(tmp_path, n=40)
    pool = [example for example in make_examples(0, n=40) if example.split == "test"]
    stays, times, places = [], [], []
    for checkpoint in checkpoints:
        scores = scores_of(checkpoint, "loss", "-")
        for example in pool:
            seen = checkpoint.seen.get(example.example_id)
            if example.side == "nonmember" or seen is None or not seen.copies:
                continue
            outside = [
                scores[other.example_id]
                for other in pool
                if other.side == "nonmember" and other.dataset == example.dataset
            ]
            stays.append((example.example_id, seen.copies, seen.last_step))
            times.append(np.log2(1 + checkpoint.step - seen.last_step))
            places.append(auc([scores[example.example_id]], outside))
    names = sorted(set(stays))
    design = np.zeros((len(stays), len(names) + 1))
    design[:, 0] = times
    design[np.arange(len(stays)), [1 + names.index(stay) for stay in stays]] = 1
    expected = np.linalg.lstsq(design, np.array(places), rcond=None)[0][0]
    row = row_of(trajectory_tables(checkpoints, SETTINGS)["fading"].to_pylist(), FADING_SLOPE)
    assert row["value"] == pytest.approx(expected)
    assert row["low"] < row["value"] < row["high"]
    twice = [stay for stay in names if stays.count(stay) > 1]
    assert row["pairs"] == sum(stay in twice for stay in stays)
    assert row["n_members"] == len({name for name, _, _ in twice})


def test_slope_variance_matches_the_jackknife():
    random = np.random.default_rng(0)
    members, others, groups = 24, 30, np.arange(54) // 2
    placed = [
        Placed(
            np.arange(members),
            np.zeros(members, dtype=np.int64),
            np.full(members, float(at)),
            random.normal(1.5 - 0.4 * at, 1, members),
            np.arange(members, 54),
            random.normal(size=others),
        )
        for at in range(3)
    ]
    whole, *_ = slope_part(placed, groups, 27)
    left_out = []
    for group in range(27):
        fewer = [
            Placed(
                *(column[groups[each.rows] != group] for column in each[:4]),
                *(column[groups[each.outside] != group] for column in each[4:]),
            )
            for each in placed
        ]
        left_out.append(slope_part(fewer, groups, 27)[0].sample.value[0])
    sides = (left_out[:12], left_out[12:])
    expected = sum(
        (len(side) - 1) / len(side) * np.square(side - np.mean(side)).sum() for side in sides
    )
    variance = np.square(whole.sample.influence.sum(axis=0)).sum()
    assert variance == pytest.approx(expected, rel=0.1)
    (estimate,) = Numbers([{"": whole}], IntervalMethod.SLOPE).estimates(confidence=0.95)
    assert estimate.about.startswith("this model; not")


def is_whole(row):
    """Return whether a row is an AUC of all members by the time since a copy."""
    conditions = {"metric": "auc", "copies": "all", "detector": "loss", "selection": "default"}
    return all(row[key] == value for key, value in conditions.items())


def test_rate_schedules_bias_bins_but_not_the_slope_within_examples(tmp_path):
    """Known mistake: late texts are learned at another rate, which looks like fading."""

    def falling(step):
        return 1.2 - step / 32

    def rising(step):
        return 0.2 + step / 32

    for name, rate, feigned in (("cosine", falling, 1), ("warm-up", rising, -1)):
        checkpoints = make_checkpoints(tmp_path / name, fading=0.0, rate=rate, n=120)
        alike = [each.__class__(**{**vars(each), "constant_rate": True}) for each in checkpoints]
        careless = trajectory_tables(alike, SETTINGS)
        bins = [row for row in careless["fading"].to_pylist() if is_whole(row)]
        # Bins by time since a copy contain different texts and seem to gain or fade.
        assert feigned * (bins[-1]["value"] - bins[0]["value"]) > 0.05
        tables = trajectory_tables(checkpoints, SETTINGS)
        bins = [row for row in tables["fading"].to_pylist() if is_whole(row)]
        assert all(row["interval"].endswith(NOT_CONSTANT) for row in bins)
        slope = row_of(tables["fading"].to_pylist(), FADING_SLOPE)
        assert slope["low"] < 0 < slope["high"]
        parts = trajectory_section(tables, lambda _: "").parts
        assert RATE_WARNING in parts
        assert any(RATE_WARNING in part.caption for part in parts if isinstance(part, Table))
        assert RATE_WARNING in [*pictures_in(parts)][-1].caption
        assert RATE_WARNING not in trajectory_section(careless, lambda _: "").parts


def test_only_seeds_with_a_trend_are_counted(tmp_path):
    """All members of the second seed are seen only in the step of the last checkpoint."""
    first = make_checkpoints(tmp_path / "0", n=40)
    second = []
    for each in make_checkpoints(tmp_path / "1", seed=1, n=40):
        seen = {}
        if each.step == 32:
            seen = {name: now._replace(copies=1, last_step=32) for name, now in each.seen.items()}
        second.append(each.__class__(**{**vars(each), "seen": seen}))
    settings = AnalysisSettings(replicates=100, min_members=5)
    rows = trajectory_tables([*first, *second], settings)["fading"].to_pylist()
    assert row_of(rows, FADING_SLOPE)["n_seeds"] == 1
    points = [row for row in rows if row["metric"] == "auc" and row["copies"] == "all"]
    assert max(row["n_seeds"] for row in points) == 2
