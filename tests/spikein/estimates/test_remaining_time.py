"""How long a run still takes, from what its finished steps took."""

import io

import pytest
from rich.console import Console

from spikein.estimates.remaining_time import Forecast
from spikein.pipeline.graph import Cost, Step
from spikein.progress import Bars, Lines, WholeRun


def step(kind: str, label: str, **cost) -> Step:
    return Step(
        kind=kind,
        label=label,
        settings={},
        build=lambda context: None,
        cost=Cost(**cost) if cost else None,
    )


def test_steps_of_one_kind_take_time_in_proportion_to_their_work():
    forecast = Forecast(
        [step("model", "a", flops=100), step("model", "b", flops=300), step("model", "c", flops=50)]
    )
    assert forecast.seconds_left() is None
    forecast.finished("model a", 10.0, built=True)
    assert forecast.seconds_left() == pytest.approx(30 + 5)
    # Of the running step what it has taken is off, and never more than that.
    assert forecast.seconds_left(running="model b", spent=12) == pytest.approx(18 + 5)
    assert forecast.seconds_left(running="model b", spent=500) == pytest.approx(5)
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


def test_lines_tell_of_the_whole_run():
    stream = io.StringIO()
    lines = Lines(stream)
    steps = [step("model", name, flops=1) for name in "abc"]
    lines.begun(steps)
    lines.started("model a", number=1, total=3)
    lines.finished("model a", built=True, seconds=75)
    lines.started("model b", number=2, total=3)
    lines.finished("model b", built=False, seconds=0, same_as="model/b-0123456789ab")
    said = stream.getvalue().splitlines()
    assert "done in 1 min 15 s; 1 of 3 steps in" in said[1]
    assert said[1].endswith("about 2 min 30 s left")
    assert "not built again, all that it reads is as it was for model/b-0123456789ab" in said[3]
    assert "2 of 3 steps" in said[3]


def test_the_whole_run_counts_its_own_time():
    times = iter([100.0, 110.0, 130.0, 130.0, 190.0])
    run = WholeRun([step("model", "a", flops=1), step("model", "b", flops=1)], clock=times.__next__)
    run.started("model a")
    assert run.gone() == 30
    run.finished("model a", 30.0, built=True)
    assert run.told() == "1 of 2 steps in 30 s, about 30 s left"
    assert run.gone() == 90


@pytest.mark.parametrize("width", [50, 80, 140])
def test_times_are_whole_on_every_terminal(width, monkeypatch):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=width, color_system=None)
    steps = [step("model", f"an-arm-with-a-long-name,seed={n}", flops=1e9) for n in range(4)]
    with Bars(console) as bars:
        bars.begun(steps)
        bars.started(steps[0].name, number=1, total=4)
        bars.finished(steps[0].name, built=True, seconds=75)
        bars.started(steps[1].name, number=2, total=4)
        bars.advanced(steps[1].name, 10, 20, "tokens", "loss 7.1, 3,000 tokens/s")
    shown = stream.getvalue()
    assert "0:00:00" in shown
    assert "about 3 min 45 s left" in shown
