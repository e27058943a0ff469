"""The decision rule of the checks against simulations with a known bias, zero or larger."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm

from analysis.any_scores import auc_estimate
from analysis.checks.chance import (
    CHECKS,
    dealing_error,
    joint_room,
    off_chance,
    possible_auc,
    within_margin,
)
from analysis.findings import Row
from analysis.intervals.rows import Rows
from inject.keyed import Stream, generator, item_key
from scripts.calibration.cells.accuracy_and_checks import CheckDesign, check_cell, unbiased
from tests.analysis.made_findings import number
from tests.analysis.oracles import auc

SETTINGS = 8
"""Settings of one check, as correlated as detectors of one model are."""


def check_of(
    seed: int,
    members: int,
    nonmembers: int,
    shift: float | np.ndarray = 0.0,
    *,
    interval: bool = True,
) -> list[Row]:
    """Return one check's rows: scores that share most of their noise, members shifted.

    Args:
        shift: of all settings, or one per setting.
    """
    random = generator(seed, Stream.BOOTSTRAP, item_key(f"check {members} {nonmembers}"))
    n = members + nonmembers
    shared = random.normal(size=(n, 1))
    scores = 0.8 * shared + 0.6 * random.normal(size=(n, SETTINGS))
    scores[:members] += shift
    member = np.arange(n) < members
    groups = [str(row) for row in range(n)]
    cells = []
    for column in scores.T:
        if interval:
            value, low, high = auc_estimate(column, member, groups)[:3]
        else:
            value, low, high = auc(column[member], column[~member]), np.nan, np.nan
        error = dealing_error(Rows.of(np.arange(n), member=member), column)
        counts = {"n_members": members, "n_nonmembers": nonmembers}
        cells.append(number(value, low, high, chance_error=error, **counts))
    return cells


def test_error_equals_that_of_all_group_assignments():
    """Eight groups of two, four per side: all 70 assignments and their AUCs."""
    random = np.random.default_rng(0)
    group = np.repeat(np.arange(8), 2)
    scores = random.normal(size=16) + random.normal(size=8)[group]
    aucs, errors = [], []
    for inside in combinations(range(8), 4):
        member = np.isin(group, inside)
        above = scores[member][:, None] > scores[~member][None]
        aucs.append(above.mean())
        errors.append(dealing_error(Rows.of(group, member=member), scores))
    assert errors == pytest.approx([np.std(aucs)] * 70, rel=0.01)


@pytest.mark.parametrize(
    "design", [CheckDesign(8, (1, 1, 1, 20)), CheckDesign(20, (1, 1, 2, 20)), CheckDesign(5, (6,))]
)
def test_unequal_groups_fail_no_more_checks_than_intended(design):
    """An interval around the observed AUC failed in 18 and 2.5 % of these checks, not 1.25."""
    random = np.random.default_rng(0)
    count, rate = 1000, 0.05 / CHECKS
    failed = sum(bool(off_chance([check_cell(*unbiased(random, design))])) for _ in range(count))
    assert failed <= count * rate + 3 * np.sqrt(count * rate * (1 - rate))


def failures(members: int, nonmembers: int, count: int, shift: float = 0.0) -> int:
    return sum(
        bool(off_chance(check_of(seed, members, nonmembers, shift, interval=False)))
        for seed in range(count)
    )


@pytest.mark.parametrize(("members", "nonmembers"), [(9, 9), (112, 210)])
def test_unbiased_checks_fail_on_at_most_one_page_in_twenty(members, nonmembers):
    count = 400
    rate = 0.05 / CHECKS
    allowed = count * rate + 3 * np.sqrt(count * rate * (1 - rate))
    assert failures(members, nonmembers, count) <= allowed


def test_unbiased_checks_pass_only_with_many_rows():
    def passes(members: int, nonmembers: int) -> float:
        studies = [check_of(seed, members, nonmembers) for seed in range(20)]
        return np.mean(
            [all(within_margin(possible_auc(cell)) for cell in cells) for cells in studies]
        )

    assert passes(9, 9) == 0
    assert passes(1_500, 1_500) == 1


def test_a_bias_larger_than_the_margin_does_not_pass():
    """Members are shifted by 0.45 standard deviations: an AUC of 0.62 must not count as chance."""
    cells = [check_of(seed, 300, 300, shift=0.45) for seed in range(20)]
    passed = [all(within_margin(possible_auc(cell)) for cell in same) for same in cells]
    assert not any(passed)


def test_independent_seeds_and_datasets_reduce_the_error():
    random = np.random.default_rng(1)
    scores, member = random.normal(size=(4, 400)), np.arange(400) % 2 == 0

    def error(places: list[int], seeds: list[str], names: list[str], *, reassign=False) -> float:
        members = [random.permutation(member) if reassign else member for _ in places]
        rows = Rows.of(
            np.tile(np.arange(400), len(places)),
            seed=np.repeat(seeds, 400),
            member=np.concatenate(members),
        )
        dataset = np.repeat(np.array(names, dtype=object), 400)
        return dealing_error(replace(rows, dataset=dataset), scores[places].ravel())

    single = error([0], ["0"], ["a"])
    assert error([0, 1], ["0", "0"], ["a", "b"]) == pytest.approx(single / np.sqrt(2), rel=0.05)
    assert error([0, 0], ["0", "1"], ["a", "a"]) == pytest.approx(single, rel=0.01)
    reassigned = error([0] * 4, list("0123"), ["a"] * 4, reassign=True)
    assert reassigned == pytest.approx(single / 2, rel=0.15)


def test_a_bias_as_large_as_a_leak_is_detected():
    """Scores differ by one standard deviation: an AUC of 0.76."""
    assert failures(60, 120, 60, shift=1.0) >= 57


@pytest.mark.parametrize("shifts", [(-0.2, -0.2), (-0.3, 0.3), (0.0, 0.5)])
def test_joint_room_covers_all_aucs_at_once(shifts):
    """Bounds of 97.5 % each, uncorrected for their number; jointly they miss at most 5 %."""
    shift, count = np.linspace(*shifts, SETTINGS), 100
    truth = norm.cdf(shift / np.sqrt(2))
    covered = 0
    for seed in range(count):
        cells = check_of(seed, 40, 80, shift)
        failed = bool(off_chance(cells))
        room = joint_room([possible_auc(cell) for cell in cells], failed=failed)
        assert failed or room.low <= 0.5 <= room.high
        covered += room.low <= truth.min() and truth.max() <= room.high
    assert covered >= count * 0.95 - 3 * np.sqrt(count * 0.95 * 0.05)
