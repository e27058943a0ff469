"""Agreement of seeds on single texts: by hand, in simulation, and where there is none."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from analysis.arm import Cohort
from analysis.factors.stability import Pair, arm_stability, kappa_interval
from analysis.factors.study import SeedRows, Study, StudyArm
from scripts.calibration.factor_studies import count_kappa


def _pair(one, other, group=None):
    number = np.arange(len(one)) if group is None else np.asarray(group)
    return Pair(np.array(one, dtype=bool), np.array(other, dtype=bool), number)


def test_kappa_is_that_of_the_textbook():
    random = np.random.default_rng(0)
    one = random.random(80) < 0.4
    other = np.where(random.random(80) < 0.7, one, ~one)
    found = kappa_interval([_pair(one, other)], confidence=0.95)
    assert found[2] == pytest.approx(cohen_kappa_score(one, other))
    assert found[0] == pytest.approx((one == other).mean())
    assert found[3] < found[2] < found[4]


@pytest.mark.parametrize(("rows", "group", "seeds"), [(200, 1, 2), (400, 4, 3)])
def test_the_interval_holds_the_truth(rows, group, seeds):
    assert count_kappa(rows, group, seeds, 0.5, 150) > 0.88


def test_few_groups_and_equal_decisions_have_no_kappa():
    assert kappa_interval([_pair([1] * 5, [1] * 5)], confidence=0.95)[6].startswith("5 groups")
    same = kappa_interval([_pair([1] * 30, [1] * 30)], confidence=0.95)
    assert same[6] == "all decisions are alike"


def _seed(seed, scores, member):
    n = len(scores)
    return SeedRows(
        seed=seed,
        member=member,
        dataset=np.zeros(n, dtype=np.int64),
        group=np.arange(n),
        example=np.arange(n),
        copies=np.where(member, 1, 0),
        length=np.ones(n),
        since=np.full(n, np.nan),
        scores={"loss": scores},
    )


def test_decisions_are_made_at_a_tenth_of_the_non_members():
    n = 99 + 40
    member = np.arange(n) >= 99
    # Nine of 99 non-members may lie above: (9 + 1) / (99 + 1) is a tenth.
    scores = np.concatenate([np.arange(99.0), np.full(20, 89.5), np.full(20, 88.5)])
    other = np.concatenate([np.arange(99.0), np.full(30, 89.5), np.full(10, 88.5)])
    cohort = Cohort((), "contaminated")
    arm = StudyArm(
        cohort=cohort,
        settings={"loss": "default"},
        seeds=(_seed(0, scores, member), _seed(1, other, member)),
        constant_rate=True,
    )
    study = Study(arms=(arm,), datasets=("rows",), n_groups=n, detectors=("loss",))
    (found,) = arm_stability(arm, study, confidence=0.95)
    assert found.agreement == pytest.approx(0.75)
    assert found.chance == pytest.approx(0.5 * 0.75 + 0.5 * 0.25)
    assert found.texts == 40


def test_one_seed_agrees_with_nobody():
    member = np.arange(60) % 2 == 0
    arm = StudyArm(
        cohort=Cohort((), "contaminated"),
        settings={"loss": "default"},
        seeds=(_seed(0, np.arange(60.0), member),),
        constant_rate=True,
    )
    study = Study(arms=(arm,), datasets=("rows",), n_groups=60, detectors=("loss",))
    assert not list(arm_stability(arm, study, confidence=0.95))
