"""The learning rate of each step, and the steps after which a model is kept."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inject.errors import InputError
from train.schedule import checkpoint_steps, schedule_factor, step_count
from train.settings import CheckpointSettings, TrainSettings

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


def requested_steps(settings: CheckpointSettings, total: int) -> set[int]:
    """Return the requested steps by checking each one."""
    steps = set()
    for step in range(1, total):
        if (
            step in settings.steps
            or (settings.every and step % settings.every == 0)
            or any(max(1, round(share * total)) == step for share in settings.fractions)
            or (step <= (settings.powers_of_two or 0) and step & (step - 1) == 0)
        ):
            steps.add(step)
    return steps


@given(rules())
def test_checkpoints_are_exactly_the_requested_steps(case):
    total, settings = case
    steps = checkpoint_steps(settings, total)
    expected = requested_steps(settings, total)
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
def test_a_larger_limit_keeps_all_steps_of_a_smaller_one(case):
    total, settings = case
    most = settings.max_kept or 3
    few, many = (
        checkpoint_steps(settings.model_copy(update={"max_kept": room}), total)
        for room in (most, most + 1)
    )
    assert set(few) <= set(many)


def test_kept_steps_are_evenly_spaced_on_a_log_scale():
    settings = CheckpointSettings(every=1, max_kept=8)
    steps = checkpoint_steps(settings, 1025)
    gaps = [math.log2(later / earlier) for earlier, later in itertools.pairwise(steps)]
    assert (steps[0], steps[-1]) == (1, 1024)
    assert max(gaps) <= 2.6
    assert min(gaps) >= 1


def test_a_step_beyond_the_run_is_rejected():
    with pytest.raises(InputError, match="step 20 is listed, but the run has 12") as caught:
        checkpoint_steps(CheckpointSettings(steps=(4, 20)), 12)
    assert caught.value.where == "train.checkpoints.steps"


def rates(steps: int, **settings: object) -> list[float]:
    chosen = TrainSettings.model_validate({"lr": 2.0, **settings})
    return [chosen.lr * schedule_factor(chosen, step, steps=steps) for step in range(1, steps + 1)]


def test_learning_rate_follows_its_schedule() -> None:
    assert rates(8, schedule="constant", warmup=0.5) == [0.5, 1.0, 1.5, 2.0, 2.0, 2.0, 2.0, 2.0]
    assert rates(3, schedule="constant") == [2.0, 2.0, 2.0]
    assert rates(4, schedule="linear") == pytest.approx([2.0, 1.5, 1.0, 0.5]), (
        "the rate never reaches zero"
    )
    cosine = rates(10, schedule="cosine", warmup=0.2)
    # The rate peaks first and is halved in the middle.
    assert cosine[:3] == [1.0, 2.0, 2.0]
    assert cosine[3] == pytest.approx(1.0 + math.cos(math.pi / 8))
    assert cosine[6] == pytest.approx(1.0)
    assert cosine == [*cosine[:2], *sorted(cosine[2:], reverse=True)]
    assert cosine[-1] > 0
    # A run of one step has no warm-up.
    assert rates(1, warmup=0.9) == [2.0]


def test_steps_count_all_epochs_together() -> None:
    settings = TrainSettings(context=64, batch_tokens=256, epochs=3)
    assert step_count(settings, 10) == 8
    assert step_count(settings, 4) == 3
    assert step_count(settings, 1) == 1
