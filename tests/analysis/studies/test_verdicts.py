"""The rows of claims, from the files of simulated arms."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from analysis.arm import load_arm
from analysis.studies.claims import Claim
from analysis.studies.verdicts import StudyClaims, claim_rows
from tests.analysis.oracles import auc
from tests.analysis.synthetic import FAST, make_arm, make_examples

SEEDS = (0, 1, 2, 3)
EFFECTS = {"weak": 0.2, "strong": 1.0}


@pytest.fixture(scope="module")
def arms(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims")
    return [
        make_arm(
            folder / f"{name}-{seed}",
            axes={"train.lr": name},
            seed=seed,
            effect=effect,
            copies_rate=2.0,
            examples=make_examples(seed, n=40),
        )
        for name, effect in EFFECTS.items()
        for seed in SEEDS
    ]


def rows_of(arms, claims, design=None):
    study = StudyClaims(
        claims={name: Claim(hypothesis="h", **values) for name, values in claims.items()},
        arms={name: {"train.lr": name} for name in EFFECTS},
        design=design or {},
    )
    read = StudyClaims.model_validate(study.model_dump(mode="json"))
    assert read == study
    return list(claim_rows(arms, read, FAST))


def seed_aucs(arms, name, column, *, dataset=None, copies=(1, 99)):
    """Return the AUCs of an arm's seeds, within dataset, weighted by members."""
    values = []
    for arm in (load_arm(arm) for arm in arms if arm.axes["train.lr"] == name):
        scores = arm.scores[:, arm.index[column]]
        parts = []
        for own in ("fictional", "news") if dataset is None else (dataset,):
            rows = arm.test & (arm.dataset == own)
            inside = rows & arm.member & (copies[0] <= arm.copies) & (arm.copies <= copies[1])
            parts.append((auc(scores[inside], scores[rows & ~arm.member]), inside.sum()))
        values.append(np.average([part[0] for part in parts], weights=[part[1] for part in parts]))
    return np.array(values)


MIN_K = ("min_k", "k=0.2")


def test_contrast_is_a_paired_t_test_over_seeds(arms):
    rows = rows_of(
        arms,
        {
            "lr": {"contrast": {"strong": 1, "weak": -1}, "detectors": ["min_k", "loss"]},
            "dose": {
                "contrast": {"strong": 1, "weak": -1},
                "detectors": ["zlib"],
                "copies": [1, 2],
            },
        },
    )
    first, _, third = rows
    pairs = [seed_aucs(arms, name, MIN_K) for name in ("strong", "weak")]
    ends = ttest_rel(*pairs).confidence_interval(1 - 0.05 / 3)
    assert first["value"] == pytest.approx((pairs[0] - pairs[1]).mean())
    assert (first["low"], first["high"]) == pytest.approx((ends.low, ends.high))
    assert (first["verdict"], first["n_seeds"]) == ("moves AUC", 4)
    assert first["comparison"] == "strong − weak"
    pairs = [
        seed_aucs(arms, name, ("zlib", "default"), copies=(1, 2)) for name in ("strong", "weak")
    ]
    assert third["value"] == pytest.approx((pairs[0] - pairs[1]).mean())
    assert third["copies"] == "1-2"


def test_rows_are_counted_per_seed(arms):
    (row,) = rows_of(arms, {"lr": {"contrast": {"strong": 1, "weak": -1}, "detectors": ["min_k"]}})
    loaded = [load_arm(arm) for arm in arms]
    members = min(int((arm.member & arm.test & (arm.copies > 0)).sum()) for arm in loaded)
    assert row["members_per_seed"] == members
    assert row["nonmembers_per_seed"] == int((~loaded[0].member & loaded[0].test).sum())


def test_contrast_of_datasets_is_a_difference_of_differences(arms):
    weights = {
        "strong/fictional": 1, "strong/news": -1, "weak/fictional": -1, "weak/news": 1,
    }  # fmt: skip
    (row,) = rows_of(arms, {"match": {"contrast": weights, "detectors": ["min_k"]}})
    expected = sum(
        weight * seed_aucs(arms, term.split("/")[0], MIN_K, dataset=term.split("/")[1])
        for term, weight in weights.items()
    )
    assert row["value"] == pytest.approx(expected.mean())


def test_effect_of_one_column_equals_the_contrast_of_its_two_arms(arms):
    design = {"weak": {"lr": 0.0}, "strong": {"lr": 2.0}}
    effect, contrast = rows_of(
        arms,
        {
            "effect": {"effect": {"of": "lr", "columns": ["lr"]}, "detectors": ["min_k"]},
            "pair": {"contrast": {"strong": 1, "weak": -1}, "detectors": ["min_k"]},
        },
        design,
    )
    assert effect["value"] == pytest.approx(contrast["value"])
    assert effect["high"] == pytest.approx(contrast["high"])


def test_spread_is_outside_the_family(arms):
    spread, _ = rows_of(
        arms,
        {
            "seeds": {"spread": "strong", "detectors": ["min_k"]},
            "lr": {"contrast": {"strong": 1, "weak": -1}, "detectors": ["min_k"]},
        },
    )
    assert spread["measure"] == "deviation"
    assert spread["value"] <= seed_aucs(arms, "strong", MIN_K).std(ddof=1)
    assert spread["low"] <= spread["value"] <= spread["high"]
    assert spread["margin"] == 0.05


def test_dose75_of_an_arm_that_never_reaches_it_is_not_answered(arms):
    (row,) = rows_of(
        arms,
        {
            "dose": {
                "contrast": {"strong": 1, "weak": -1},
                "measure": "dose75",
                "detectors": ["zlib"],
            }
        },
    )
    assert row["verdict"] == "not answered"
    assert row["note"] == "weak: more than 32 copies"


def test_detector_without_scores_is_not_answered(arms):
    (row,) = rows_of(
        arms, {"lr": {"contrast": {"strong": 1, "weak": -1}, "detectors": ["reference"]}}
    )
    assert (row["verdict"], row["n_seeds"], row["members_per_seed"]) == ("not answered", 0, 0)
    assert row["note"] == "reference did not score strong"
