"""Secondary readings of `size-steps`, on probits made of known effects."""

from math import log2

import pytest

from scripts.studies.size_steps import readings
from spikein.config.design_rows import design_rows
from spikein.config.load import read_experiment

EFFECTS = {"unique": -0.02, "steps": 0.05, "batch": -0.11, "tail": -0.07}
"""Per doubling."""
DENSITY = 0.3
"""Of copies anywhere in the stream, beyond what the effects add up to."""


@pytest.fixture(scope="module")
def rows():
    return design_rows(read_experiment("size-steps").arms)


def compare(weights, by_arm):
    return sum(weight * by_arm[arm] for arm, weight in weights.items())


def test_readings_recover_known_effects(rows):
    probits = {
        arm: 0.5 + sum(effect * log2(row[column]) for column, effect in EFFECTS.items())
        if row["tail"]
        else 0.0
        for arm, row in rows.items()
    }
    probits["large-members"] += 0.4
    fourfold = 2 * (EFFECTS["unique"] + EFFECTS["steps"] + EFFECTS["tail"])
    probits["large-spread"] = probits["small-spread"] + fourfold + DENSITY
    values = {name: compare(weights, probits) for name, weights in readings(rows).items()}
    assert values["fitted: unique, steps and tail × 4"] == pytest.approx(fourfold, abs=0.01)
    assert values["spread copies, not fitted"] == pytest.approx(DENSITY, abs=0.01)
    assert values["large-members − large"] == pytest.approx(0.4)
    # A tail of as many steps is longer in tokens if the batch is larger.
    in_steps = 2 * (EFFECTS["batch"] + EFFECTS["tail"])
    assert values["batch × 4, tail in steps"] == pytest.approx(in_steps, abs=0.01)
    assert values["tail × 4, tail in steps"] == pytest.approx(2 * EFFECTS["tail"], abs=0.01)


def test_weights_of_a_reading_sum_to_zero(rows):
    assert all(abs(sum(weights.values())) < 1e-9 for weights in readings(rows).values())
