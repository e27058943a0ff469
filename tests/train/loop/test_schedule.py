import math

import pytest

from train.schedule import learning_rate, step_count, warmup_steps
from train.settings import TrainSettings


def rates(steps: int, **settings: object) -> list[float]:
    chosen = TrainSettings.model_validate({"lr": 2.0, **settings})
    return [learning_rate(chosen, step, steps=steps) for step in range(1, steps + 1)]


def test_constant_with_warmup() -> None:
    assert rates(8, schedule="constant", warmup=0.5) == [0.5, 1.0, 1.5, 2.0, 2.0, 2.0, 2.0, 2.0]
    assert rates(3, schedule="constant") == [2.0, 2.0, 2.0]


def test_linear_falls_by_equal_amounts_and_never_to_zero() -> None:
    assert rates(4, schedule="linear") == pytest.approx([2.0, 1.5, 1.0, 0.5])


def test_cosine_starts_at_the_peak_and_is_half_way_down_in_the_middle() -> None:
    values = rates(10, schedule="cosine", warmup=0.2)
    assert values[:3] == [1.0, 2.0, 2.0]
    assert values[6] == pytest.approx(1.0)
    assert values[3] == pytest.approx(1.0 + math.cos(math.pi / 8))
    assert values == [*values[:2], *sorted(values[2:], reverse=True)]
    assert values[-1] > 0


def test_a_run_of_one_step_has_no_warmup() -> None:
    assert warmup_steps(TrainSettings(warmup=0.9), 1) == 0


def test_steps_count_all_epochs_together() -> None:
    settings = TrainSettings(context=64, batch_tokens=256, epochs=3)
    assert step_count(settings, 10) == 8
    assert step_count(settings, 4) == 3
    assert step_count(settings, 1) == 1
