"""Claims in an experiment file: what is accepted, their digest, and designs as contrasts."""

import itertools

import numpy as np
import pytest
from pydantic import ValidationError

from analysis.studies.claims import Claim, Effect, claim_problems, claims_digest

CONTRAST = {"hypothesis": "h", "contrast": {"a": 1, "b": -1}}


def claim(**values) -> Claim:
    return Claim(**{"hypothesis": "h", **values})


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({}, "exactly one of contrast, effect, spread; got none"),
        ({"contrast": {"a": 1, "b": -1}, "spread": "a"}, "got contrast, spread"),
        ({"contrast": {"a": 1, "b": -0.5}}, "weights must sum to 0"),
        ({"contrast": {"a": 0, "b": 0}}, "not all of them 0"),
        ({"contrast": {}}, "not all of them 0"),
        ({"contrast": {"a": 1, "b": -1}, "copies": [4, 2]}, r"\[4, 2\] is empty"),
        ({"contrast": {"a": 1, "b": -1}, "copies": [4, 8], "measure": "dose75"}, "remove copies"),
        ({"spread": "a", "measure": "probit"}, "remove measure"),
        ({"effect": {"of": "tail", "columns": ["steps"]}}, "'tail' is not one of columns: steps"),
        ({"effect": {"of": "tail", "columns": ["tail"], "arms": ["a/x"]}}, "fitted to whole arms"),
        ({"effect": {"of": "a", "columns": ["a"], "arms": ["x", "x"]}}, "arms: 'x' is given twice"),
        ({"spread": "a", "detectors": ["loss", "min_k", "loss"]}, "'loss' is given twice"),
        ({"contrast": {"a": 1, "b": -1, "c": 0}}, "'c' has the weight 0; remove it"),
    ],
)
def test_contradictory_claims_are_refused(values, problem):
    with pytest.raises(ValidationError, match=problem):
        claim(**values)


def test_margin_has_a_default_for_each_measure():
    assert claim(spread="a").least_effect == 0.05
    assert Claim(**CONTRAST).least_effect == 0.03
    assert Claim(**CONTRAST, measure="dose75").least_effect == pytest.approx(0.485, abs=1e-3)
    assert Claim(**CONTRAST, margin=0.1).least_effect == 0.1


def test_comparison_is_written_as_a_sum():
    assert claim(contrast={"a": 1, "b": -1}).comparison == "a − b"
    assert claim(contrast={"a": -0.5, "b": 1, "c": -0.5}).comparison == "− 0.5 a + b − 0.5 c"
    assert claim(effect={"of": "tail", "columns": ["tail"], "factor": 10}).comparison == "tail × 10"
    assert claim(spread="a").comparison == "a"


def test_digest_depends_on_claims_and_their_design_and_not_on_their_order():
    first, second = claim(spread="a"), Claim(**CONTRAST)
    design = {"seeds": [0, 1], "analysis.confidence": 0.95}
    digest = claims_digest({"x": first, "y": second}, design)
    assert digest == claims_digest({"y": second, "x": first}, dict(reversed(design.items())))
    assert digest != claims_digest({"x": first, "y": Claim(**CONTRAST, margin=0.02)}, design)
    assert digest != claims_digest({"x": first, "y": second}, design | {"seeds": [0]})
    assert claims_digest({}, design) is None


DESIGN = {
    f"{unique}-{batch}-{tail}": {"unique": unique, "batch": batch, "tail": tail}
    for unique, batch, tail in itertools.product((17.6, 19.6), (11, 13), (15.3, 18.6))
}
"""Values of columns are logarithms."""


def test_effect_recovers_the_coefficient_of_its_column():
    slopes = {"unique": 0.1, "batch": -0.2, "tail": 0.05}
    probits = {
        arm: 3 + sum(slopes[name] * value for name, value in values.items())
        for arm, values in DESIGN.items()
    }
    for name, slope in slopes.items():
        weights = Effect(of=name, columns=tuple(slopes), factor=10).weights(DESIGN)
        assert sum(weights.values()) == pytest.approx(0)
        effect = sum(weights[arm] * probits[arm] for arm in DESIGN)
        assert effect == pytest.approx(np.log2(10) * slope)


def test_effect_is_least_squares_on_centred_columns():
    values = np.random.default_rng(0).normal(size=len(DESIGN))
    centred = np.array([[*row.values()] for row in DESIGN.values()])
    centred -= centred.mean(axis=0)
    fitted = np.linalg.lstsq(centred, values - values.mean(), rcond=None)[0]
    weights = Effect(of="batch", columns=("unique", "batch", "tail"), factor=2).weights(DESIGN)
    assert np.array([*weights.values()]) @ values == pytest.approx(fitted[1])


def test_effect_uses_only_its_arms():
    some = tuple(DESIGN)[:4]
    weights = Effect(of="tail", columns=("batch", "tail"), arms=some).weights(DESIGN)
    assert tuple(weights) == some


def test_unknown_names_are_reported_with_their_claim_and_key():
    claims = {
        "size": claim(contrast={"large": 1, "smal": -1}),
        "match": claim(contrast={"large/arxiv": 1, "small/news": -1}, detectors=["min_kk"]),
        "tail": claim(effect={"of": "tail", "columns": ["tail"], "arms": ["middle"]}),
    }
    problems = list(claim_problems(claims, ["large", "small"], ["arxiv"], ["min_k", "reference"]))
    places = [place for place, _ in problems]
    assert places == [
        ("size", "contrast"),
        ("match", "contrast"),
        ("match", "detectors"),
        ("tail", "effect"),
    ]
    messages = [str(error) for _, error in problems]
    assert "no arm 'smal'. Did you mean 'small'? Allowed: large, small." in messages[0]
    assert "no dataset 'news'" in messages[1]
    assert "no detector 'min_kk'. Did you mean 'min_k'" in messages[2]
    assert "no arm 'middle'" in messages[3]


def test_claims_require_named_arms():
    claims = {"tail": claim(effect={"of": "tail", "columns": ["tail"]})}
    ((place, error),) = claim_problems(claims, [], ["arxiv"], ["min_k", "reference"])
    assert place == ("tail", "effect")
    assert "Give `arms`, not `sweep`" in str(error)
