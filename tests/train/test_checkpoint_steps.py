"""Which steps leave a model behind: a rule that is known before anything runs."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from inject.errors import InputError
from inject.model_folder import checkpoint_folder
from train.schedule import checkpoint_steps
from train.settings import CheckpointSettings

TOTALS = st.integers(1, 400)


@st.composite
def rules(draw):
    total = draw(TOTALS)
    return total, CheckpointSettings(
        steps=draw(st.lists(st.integers(1, total), max_size=5)),
        every=draw(st.none() | st.integers(1, 500)),
        fractions=draw(st.lists(st.floats(0.01, 0.99), max_size=4)),
        powers_of_two=draw(st.none() | st.integers(1, 1000)),
        max_kept=draw(st.none() | st.integers(1, 6)),
    )


def asked(settings: CheckpointSettings, total: int) -> set[int]:
    """Step by step, whether each was asked for."""
    found = set()
    for step in range(1, total):
        if (
            step in settings.steps
            or (settings.every and step % settings.every == 0)
            or any(max(1, round(share * total)) == step for share in settings.fractions)
            or (step <= (settings.powers_of_two or 0) and step & (step - 1) == 0)
        ):
            found.add(step)
    return found


@given(rules())
def test_every_step_asked_for_and_no_other(case):
    total, settings = case
    steps = checkpoint_steps(settings, total)
    expected = asked(settings, total)
    if settings.max_kept is None:
        assert set(steps) == expected
    assert set(steps) <= expected
    assert len(steps) == min(len(expected), settings.max_kept or len(expected))
    assert list(steps) == sorted(set(steps))
    assert total not in steps
    if expected:
        assert steps[-1] == max(expected)
        assert len(steps) < 2 or steps[0] == min(expected)


@given(rules())
def test_more_room_keeps_what_less_room_kept(case):
    total, settings = case
    most = settings.max_kept or 3
    few, many = (
        checkpoint_steps(settings.model_copy(update={"max_kept": room}), total)
        for room in (most, most + 1)
    )
    assert set(few) <= set(many)


def test_the_kept_ones_lie_evenly_over_the_logarithm():
    settings = CheckpointSettings(every=1, max_kept=8)
    steps = checkpoint_steps(settings, 1025)
    gaps = [math.log2(later / earlier) for earlier, later in itertools.pairwise(steps)]
    assert (steps[0], steps[-1]) == (1, 1024)
    assert max(gaps) <= 2.6
    assert min(gaps) >= 1


def test_known_answers():
    assert checkpoint_steps(CheckpointSettings(powers_of_two=16), 12) == (1, 2, 4, 8)
    assert checkpoint_steps(CheckpointSettings(fractions=(0.25, 0.5)), 100) == (25, 50)
    assert checkpoint_steps(CheckpointSettings(every=5, steps=(3,)), 15) == (3, 5, 10)
    assert checkpoint_steps(CheckpointSettings(steps=(7,)), 7) == ()
    assert checkpoint_folder(12) == "step-12"


def test_a_step_that_the_run_does_not_have():
    with pytest.raises(InputError, match="step 20 was asked for, and the run has 12") as found:
        checkpoint_steps(CheckpointSettings(steps=(4, 20)), 12)
    assert found.value.where == "train.checkpoints.steps"


@pytest.mark.parametrize("fraction", [0, 1, 1.5, -0.1])
def test_a_fraction_is_between_0_and_1(fraction):
    with pytest.raises(ValidationError):
        CheckpointSettings(fractions=(fraction,))
