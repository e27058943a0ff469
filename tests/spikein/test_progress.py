"""Progress: one line per stage in logs, a live line on terminals, and the time left."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from spikein.progress import Lines, LiveLine, duration, show_progress
from spikein.run_tally import RunTally


def _step(kind, label, *needs, flops=None):
    return SimpleNamespace(
        name=f"{kind} {label}",
        digest=f"{kind}-{label}",
        kind=kind,
        inputs={need.kind: need for need in needs},
        cost=flops and SimpleNamespace(flops=flops),
    )


CORPUS = _step("corpus", "x")
PLAN = _step("plan", "x", CORPUS)
BASE = _step("model", "base", CORPUS, flops=1000)
ARMS = [_step("model", f"lr {rate}", PLAN, BASE, flops=500) for rate in (1, 2)]
GRAPH = [CORPUS, PLAN, BASE, *ARMS]


def _finish(progress, *steps, **how):
    for number, step in enumerate(steps, 1):
        progress.step_started(step.name, number=number, total=len(steps))
        progress.step_finished(step.name, **{"built": True, "seconds": 75, **how})


def _lines(stream):
    """Return the printed lines, without the columns."""
    return [" ".join(line.split()) for line in stream.getvalue().splitlines()]


def _terminal(width=100):
    stream = io.StringIO()
    return stream, Console(file=stream, force_terminal=True, width=width, color_system=None)


def test_one_line_per_stage_when_its_last_step_ends():
    stream = io.StringIO()
    with show_progress(stream=stream) as progress:
        progress.run_started(GRAPH)
        _finish(progress, CORPUS, BASE, ARMS[1])
        assert _lines(stream) == ["corpus 1 step 1 min 15 s", "base model 1 step 1 min 15 s"]
        progress.notice("another run is building it")
        _finish(progress, ARMS[0], built=False, seconds=5)
        _finish(progress, SimpleNamespace(name="opinion of a plug-in"))
    assert _lines(stream)[2:] == [
        "another run is building it",
        "models 2 steps 1 min 20 s, 1 not built again",
        "opinion 1 step 1 min 15 s",
    ]


def test_verbose_progress_logs_every_step():
    stream = io.StringIO()
    with show_progress(stream=stream, verbose=True) as progress:
        progress.step_started("corpus x", number=2, total=9)
        progress.notice("the network is slow")
        progress.step_finished("corpus x", built=True, seconds=75)
        progress.step_finished("plan x", built=False, seconds=1, same_as="plan/y")
    assert stream.getvalue().splitlines() == [
        "[2/9] corpus x …",
        "corpus x: the network is slow",
        "[2/9] corpus x: done in 1 min 15 s",
        "plan x: not built again: its inputs are the same as for plan/y",
    ]


def test_long_steps_report_progress_and_remaining_time(monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=0.0)
    monkeypatch.setattr("spikein.progress.time", clock)
    monkeypatch.setattr("spikein.run_tally.time", clock)
    stream = io.StringIO()
    progress = Lines(stream)
    progress.run_started(GRAPH)
    progress.step_started(BASE.name, number=3, total=5)
    for now in range(0, 150, 10):
        clock.now = now
        progress.step_advanced(BASE.name, 20 * now, 4000, "tokens", "loss 3.2")
    # 2,800 tokens are to come, then two models of half the operations each, one after the other.
    left = (4000 - 1200) / 20 + 200 + 3 + 3
    assert stream.getvalue().splitlines() == [
        f"[3/5] model base: 1,200 of 4,000 tokens, loss 3.2, about {duration(left)} left",
        f"[3/5] model base: 2,400 of 4,000 tokens, loss 3.2, about {duration(left - 60)} left",
    ]


def test_time_left_is_the_longest_chain_or_the_total_divided_by_parallel_steps(monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=0.0)
    monkeypatch.setattr("spikein.run_tally.time", clock)
    tally = RunTally()
    tally.plan(GRAPH)
    assert tally.left() is None
    for step in (CORPUS, PLAN):
        tally.start(step.name)
        assert tally.finish(step.name, seconds=4, reused=False) is not None
    tally.start(BASE.name)
    tally.finish(BASE.name, seconds=100, reused=False)
    assert tally.left() == 100
    for arm in ARMS:
        tally.start(arm.name)
    clock.now = 10
    # Side by side: each has 50 s, of which 10 are over.
    assert tally.left() == 40
    tally.advance(ARMS[0].name, 400, 1000)
    clock.now = 15
    tally.advance(ARMS[0].name, 700, 1000)
    tally.finish(ARMS[1].name, seconds=15, reused=False)
    assert tally.left() == 5


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_times_are_never_cut_on_a_terminal(width):
    stream, console = _terminal(width)
    with LiveLine(console) as live:
        live.step_started("model " + "x" * 80, number=1, total=2)
        live.step_advanced("model " + "x" * 80, 1, 2, "tokens", "")
        live._rich.refresh()
        output = stream.getvalue()
    assert "0:00:00" in output
    assert all(len(line.split("\r")[-1]) <= width + 20 for line in output.splitlines())


def test_a_terminal_keeps_one_line_per_stage_and_ignores_markup():
    stream, console = _terminal()
    with LiveLine(console) as live:
        live.run_started([CORPUS, PLAN])
        live.step_started(CORPUS.name, number=1, total=2)
        live.step_advanced(CORPUS.name, 1, 2, "tokens", "loss [3]")
        live._rich.refresh()
        assert "[1/2] corpus x  1 of 2 tokens loss [3]" in stream.getvalue()
        live.step_finished(CORPUS.name, built=True, seconds=1)
        live.notice("wait [a]")
    assert any("✓ corpus 1 step 1.0 s" in line for line in _lines(stream))
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
def test_durations_are_readable(seconds, words):
    assert duration(seconds) == words
