"""Variances over datasets and seeds, and the ends: what they hold in simulated studies."""

import numpy as np
import pytest

from analysis.intervals.bounds import Scale, find_interval
from analysis.intervals.clustered import Weighted, cluster
from analysis.intervals.influence import Sample, Side, auc_sample
from scripts.calibration.others import coverage, intervals, pooled_rate_cases, realised_rates
from scripts.calibration.simulation import Design, influence, simulate

STUDIES = 300


def held(design: Design, studies: int = STUDIES) -> float:
    made = simulate(design, studies)
    found = find_interval(made.found, Scale.AUC, confidence=0.95, grouped=design.group > 1)
    return coverage(found, made.truth)[0]


def sample(value: float, parts: list[float], groups: int = 20) -> Sample:
    """Return one number whose members' influence is given."""
    influence = np.zeros((2, 1, len(parts)))
    influence[0, 0] = parts
    return Sample(
        np.array([value]), influence, np.full((2, 1), 9.0), np.full((2, 1), groups, dtype=np.int64)
    )


def alone(*samples: Sample):
    return cluster([[Weighted("", one, np.ones(1))] for one in samples])


def test_the_studies_of_the_calibration_are_made_by_the_functions_of_the_report():
    made = simulate(Design(20, 4, 0.8), 3)
    members, nonmembers = made.raw
    for study in range(3):
        plain = auc_sample(
            Side(members[study], np.arange(20) // 4),
            Side(nonmembers[study], 5 + np.arange(20) // 4),
            np.ones((1, 20), dtype=bool),
            10,
        )
        own = influence(members[study : study + 1], nonmembers[study : study + 1], 4, ORDER)
        assert own.value[0] == pytest.approx(plain.value[0], abs=1e-12)
        assert own.influence[:, 0] == pytest.approx(plain.influence[:, 0], abs=1e-12)


ORDER = np.arange(10)[None]


@pytest.mark.parametrize(
    "design",
    [
        Design(20, 1, 0.5),
        Design(20, 1, 0.98),
        Design(100, 4, 0.9),
        Design(40, 1, 0.8, 3, 0.03),
        Design(100, 4, 0.65, 5, 0.07),
        Design(400, 1, 0.5, 3, 0.07),
    ],
)
def test_intervals_hold_the_truth(design):
    """Within three standard errors of 92 to 97.5 %."""
    error = 3 * np.sqrt(0.95 * 0.05 / STUDIES)
    assert 0.92 - error <= held(design) <= min(1.0, 0.975 + error)


def test_seeds_that_differ_are_seen_and_those_that_do_not_cost_nothing():
    spread = [0.3 / 20] * 10 + [-0.3 / 20] * 10
    apart = alone(*(sample(value, spread) for value in (0.6, 0.7, 0.8)))
    alike = alone(*(sample(value, spread) for value in (0.7, 0.7, 0.7)))
    assert apart.variance[0] == pytest.approx(alike.variance[0] + 0.1**2 / 3, rel=0.05)
    assert apart.freedom[0] < alike.freedom[0]
    assert (apart.lowest[0], apart.highest[0]) == (0.6, 0.8)


def test_rows_dealt_to_the_other_side_cancel_across_seeds():
    """The same group for a member in one seed and for a non-member in the next."""
    spread = np.array([0.02, -0.02] * 10)
    again = alone(sample(0.7, spread.tolist()), sample(0.7, spread.tolist()))
    other = alone(sample(0.7, spread.tolist()), sample(0.7, (-spread).tolist()))
    assert again.variance[0] == pytest.approx(np.square(spread).sum())
    assert other.variance[0] == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize(("seeds", "about"), [(1, "this model"), (2, "these 2 models")])
def test_one_seed_or_two_speak_of_these_models(seeds, about):
    found = alone(*(sample(0.6 + 0.1 * seed, [0.02, -0.02] * 10) for seed in range(seeds)))
    assert find_interval(found, Scale.AUC, confidence=0.95).about == [about]


def test_groups_are_counted_not_rows():
    """Forty rows of two passages a side are two rows."""
    random = np.random.default_rng(0)
    scores = np.repeat(random.normal(size=4), 20)
    members = Side(scores[:40], np.repeat([0, 1], 20))
    others = Side(scores[40:], np.repeat([2, 3], 20))
    one = auc_sample(members, others, np.ones((1, 40), dtype=bool), 4)
    found = find_interval(alone(one), Scale.AUC, confidence=0.95, grouped=True)
    assert found.about == ["none: 2 groups on one side"]
    assert np.isnan(found.low[0])


def test_few_groups_are_not_to_be_trusted_and_a_steep_auc_of_them_has_no_interval():
    few = sample(0.8, [0.02, -0.02] * 10, groups=9)
    assert find_interval(alone(few), Scale.AUC, confidence=0.95).about == [
        "this model; not to be trusted: 9 groups of members"
    ]
    steep = alone(sample(0.97, [0.02, -0.02] * 10, groups=9))
    assert find_interval(steep, Scale.AUC, confidence=0.95, grouped=True).about == [
        "none: an AUC beyond 0.95 of 9 groups"
    ]
    assert find_interval(steep, Scale.AUC, confidence=0.95).about[0].startswith("this model")


def test_a_pooled_threshold_keeps_its_rate_where_k_of_m_doubles_it():
    plain, careful = realised_rates(0.05, 20, 3000)
    assert plain > 0.085
    assert careful <= 0.05
    (case,) = [one for one in pooled_rate_cases() if "0.1, 4 × 50" in one.name and "25" in one.name
               and "0.7" in one.name]  # fmt: skip
    assert coverage(intervals(case, 150), case.truth)[0] > 0.9
