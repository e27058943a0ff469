"""How long a run still takes, from what its finished steps took."""

import io

import pytest
from rich.console import Console

from inject.step import Cost, Step
from spikein.estimates.remaining_time import Forecast, StepPace
from spikein.progress import Bars, Lines, RunProgress
from tests.spikein import step_functions


def step(kind: str, label: str, **cost) -> Step:
    return step_functions.step(label, "nothing", kind=kind, cost=Cost(**cost) if cost else None)


def test_steps_of_one_kind_take_time_in_proportion_to_their_work():
    forecast = Forecast(
        [step("model", "a", flops=100), step("model", "b", flops=300), step("model", "c", flops=50)]
    )
    assert forecast.seconds_left() is None
    forecast.finished("model a", 10.0, built=True)
    assert forecast.seconds_left() == pytest.approx(30 + 5)
    # Of the running step what it has taken is off, and never more than that.
    assert forecast.seconds_left({"model b": 12}) == pytest.approx(18 + 5)
    assert forecast.seconds_left({"model b": 500}) == pytest.approx(5)
    forecast.finished("model b", 60.0, built=True)
    assert forecast.seconds_left() == pytest.approx(50 * 70 / 400)
    forecast.finished("model c", 1.0, built=True)
    assert forecast.seconds_left() == 0


def test_an_estimate_stands_in_until_something_was_measured():
    forecast = Forecast([step("model", "a", seconds=40.0), step("model", "b", seconds=40.0)])
    assert forecast.seconds_left() == 80
    forecast.finished("model a", 10.0, built=True)
    assert forecast.seconds_left() == 10


def test_what_others_built_teaches_nothing_and_unknown_kinds_are_few():
    steps = [step("a", "1"), step("a", "2"), step("b", "1"), step("c", "1")]
    forecast = Forecast(steps)
    forecast.finished("a 1", 0.0, built=False)
    assert forecast.seconds_left() is None
    forecast.finished("a 2", 6.0, built=True)
    assert forecast.seconds_left() is None, "two kinds of two are unknown"
    known = Forecast([*steps, step("a", "3"), step("a", "4")])
    known.finished("a 1", 6.0, built=True)
    assert known.seconds_left() == pytest.approx(3 * 6 + 2 * 6)


def test_the_time_left_of_a_step_follows_its_pace_since_its_first_report():
    times = iter([100.0, 100.5, 110.0, 120.0, 121.0, 200.0])
    pace = StepPace(clock=lambda: next(times))
    # A resumed step begins in the middle.
    assert pace.seconds_left(400, 1000) is None
    assert pace.seconds_left(410, 1000) is None, "half a second is too short to measure"
    assert pace.seconds_left(500, 1000) == pytest.approx(50)
    assert pace.seconds_left(500, None) is None
    # Another count begins.
    assert pace.seconds_left(3, 10) is None
    assert pace.seconds_left(3, 10) is None


def test_lines_show_the_whole_run():
    stream = io.StringIO()
    lines = Lines(stream)
    steps = [step("model", name, flops=1) for name in "abc"]
    lines.run_started(steps)
    lines.step_started("model a", number=1, total=3)
    lines.step_finished("model a", built=True, seconds=75)
    lines.step_started("model b", number=2, total=3)
    lines.step_finished("model b", built=False, seconds=0, same_as="model/b-0123456789ab")
    lines_shown = stream.getvalue().splitlines()
    assert "done in 1 min 15 s; 1 of 3 steps in" in lines_shown[1]
    assert lines_shown[1].endswith("about 2 min 30 s left")
    assert (
        "not built again, all that it reads is as it was for model/b-0123456789ab" in lines_shown[3]
    )
    assert "2 of 3 steps" in lines_shown[3]


def test_the_whole_run_counts_its_own_time():
    times = iter([100.0, 110.0, 130.0, 130.0, 130.0, 190.0])
    run = RunProgress(
        [step("model", "a", flops=1), step("model", "b", flops=1)], clock=times.__next__
    )
    run.started("model a")
    assert run.elapsed() == 30
    run.finished("model a", 30.0, built=True)
    assert run.summary() == "1 of 2 steps in 30 s, about 30 s left"
    assert run.elapsed() == 90


@pytest.mark.parametrize("width", [50, 80, 140])
def test_times_are_whole_on_every_terminal(width, monkeypatch):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=width, color_system=None)
    steps = [step("model", f"an-arm-with-a-long-name,seed={n}", flops=1e9) for n in range(4)]
    with Bars(console) as bars:
        bars.run_started(steps)
        bars.step_started(steps[0].name, number=1, total=4)
        bars.step_finished(steps[0].name, built=True, seconds=75)
        bars.step_started(steps[1].name, number=2, total=4)
        bars.step_advanced(steps[1].name, 10, 20, "tokens", "loss 7.1, 3,000 tokens/s")
    shown = stream.getvalue()
    assert "0:00:00" in shown
    assert "about 3 min 45 s left" in shown
