"""Lines for logs, bars for terminals."""

import io

import pytest
from rich.console import Console

from spikein.progress import Bars, Lines, duration, show_progress


def test_one_line_when_a_step_starts_and_one_when_it_ends():
    stream = io.StringIO()
    with show_progress(stream=stream) as progress:
        progress.step_started("corpus x", number=2, total=9)
        progress.step_advanced("corpus x", 5, 10, "tokens", "")
        progress.step_finished("corpus x", built=True, seconds=75)
        progress.notice("another run is building it")
    assert stream.getvalue().splitlines() == [
        "[2/9] corpus x …",
        "[2/9] corpus x: done in 1 min 15 s",
        "another run is building it",
    ]


def test_long_steps_say_how_far_they_are():
    stream = io.StringIO()
    progress = Lines(stream, every=0)
    progress.step_started("model a", number=1, total=1)
    progress.step_advanced("model a", 1500, 3000, "tokens", "loss 3.2")
    progress.step_advanced("model a", 7, None, "", "")
    assert stream.getvalue().splitlines()[1:] == [
        "[1/1] model a: 1,500 of 3,000 tokens, loss 3.2",
        "[1/1] model a: 7",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_times_are_whole_on_every_terminal(width):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=width, color_system=None)
    with Bars(console) as bars:
        bars.step_started("model " + "x" * 80, number=1, total=2)
        bars.step_advanced("model " + "x" * 80, 1, 2, "tokens", "")
        bars._rich.refresh()
    assert "0:00:00" in stream.getvalue()
    assert "-:--:--" in stream.getvalue()


def test_bars_leave_one_line_a_step_and_take_no_markup():
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, color_system=None)
    with Bars(console) as bars:
        bars.step_started("model [bold]x[/bold]", number=1, total=2)
        bars.step_advanced("model [bold]x[/bold]", 1, 2, "tokens", "loss [3]")
        bars.step_finished("model [bold]x[/bold]", built=True, seconds=1)
        bars.notice("wait [a]")
    assert "✓ model [bold]x[/bold]  1.0 s" in stream.getvalue()
    assert "wait [a]" in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (9.9, "9.9 s"),
        (12.2, "12 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations(seconds, words):
    assert duration(seconds) == words
