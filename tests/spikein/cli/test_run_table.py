"""`spikein status` of a running or failed run: state, place and problem of each step."""

import io
import signal
import time

import pytest
from rich.console import Console
from typer.testing import CliRunner

from spikein.cli.commands.status import _fit_rows
from spikein.cli.main import app
from spikein.config.executor_settings import LocalSettings
from spikein.executors import StepsFailed, run_graph
from spikein.executors.live_status import RunStatus, StepStatus, read_statuses
from spikein.executors.pools.local import Local
from spikein.progress import Progress
from spikein.store.store import Store
from tests.command_line import invoke
from tests.processes import started
from tests.spikein.executors.conftest import start as start
from tests.spikein.executors.graphs import events, one_fails, wait_for


def status_output(*arguments: object) -> str:
    result = CliRunner().invoke(
        app, ["status", *map(str, arguments)], env={"COLUMNS": "160", "TERM": "dumb"}
    )
    assert result.exit_code == 0, result.output
    return result.output


def row(text: str, step: str) -> str:
    [line] = [line for line in text.splitlines() if line.strip().startswith(step)]
    return line


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_status_shows_each_step_of_a_running_run_and_watches_it_to_its_end(tmp_path, start):
    store = tmp_path / "store"
    run = start("local", "slow")
    running = {"cell1", "cell2"}
    wait_for(lambda: {event["step"] for event in events(tmp_path / "trace")} >= running)
    watcher = started(
        *("-m", "spikein.cli.main", "status", "slow", "--watch", "--store", store),
        folder=tmp_path,
        COLUMNS="160",
    )
    try:
        wait_for(
            lambda: any(
                status.name == "thing cell2"
                and status.state == "running"
                and "worker" in status.where
                for status in read_statuses(store)[0].steps
            )
        )
        text = status_output("slow", "--store", store)
        assert "done" in row(text, "thing shared")
        for cell in running:
            assert "running" in row(text, f"thing {cell}")
            assert "worker" in row(text, f"thing {cell}")
        assert "waiting" in row(text, "thing cell3")
        assert "waits for thing cell1, thing cell2, thing cell3" in row(text, "thing end")
        assert "slow, by local (process" in text
        assert "running, 2 of 6 steps done, 2 running, 2 waiting" in text
        assert watcher.stdout is not None
        # Its first line may be of a moment before both ran.
        assert any("2 of 6 steps done, 2 running" in line for line in watcher.stdout)
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=90)
        output = watcher.communicate(timeout=90)[0]
        assert watcher.returncode == 0
        assert "interrupted; run it again to resume, 2 of 6 steps done, 4 waiting" in output
    finally:
        if watcher.poll() is None:
            watcher.kill()
            watcher.communicate()


@pytest.mark.slow
def test_status_of_a_failed_run_shows_last_lines_and_skipped_steps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "store"
    with pytest.raises(StepsFailed):
        run_graph(Local(LocalSettings(workers=2)), one_fails(), Store(store), Progress())
    text = status_output("one-fails", "--store", store)
    assert "failed" in row(text, "thing bad")
    assert "ValueError: this step never works" in row(text, "thing bad")
    assert "not started" in row(text, "thing after")
    assert "thing bad failed" in row(text, "thing after")
    assert "done" in row(text, "thing good1")
    assert "Last lines of thing bad:" in text
    assert "a line of the log before it fails" in text
    assert "ended with failed steps, 3 of 5 steps done, 1 failed, 1 not started" in text


def test_watch_refuses_a_store_without_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("status", "--watch", "--store", tmp_path, code=2)
    assert "has no run" in result.output


def step(number: int, **values) -> StepStatus:
    defaults = {"digest": f"d{number}", "name": f"thing {number}", "kind": "thing", "state": "done"}
    return StepStatus(**{**defaults, **values})


def test_a_small_terminal_lists_failed_and_running_steps_first():
    running = {"state": "running", "began": time.time() - 75, "attempt": 2, "where": "[bold]h"}
    steps = (
        *(step(number) for number in range(40)),
        step(40, **running, done=1500, total=3000, unit="tokens"),
        step(41, state="failed", problem="it broke\nmore", lines=("the last words",)),
    )
    run = RunStatus(
        name="tiny", key="k", executor="local", host="here", process=7, began=0.0,
        updated=0.0, state="running", steps=steps,
    )  # fmt: skip
    stream = io.StringIO()
    Console(file=stream, width=120, color_system=None).print(_fit_rows(run, 20))
    text = stream.getvalue()
    assert len(text.splitlines()) <= 20
    assert text.index("thing 41") < text.index("thing 40") < text.index("thing 0")
    assert "[bold]h" in text
    assert "running, attempt 2" in text
    assert "1,500 of 3,000 tokens" in text
    assert "1 min 15 s" in text or "1 min 16 s" in text
    assert "the last words" in text
    assert "more steps" in text
    assert "40 of 42 steps done, 1 running, 1 failed" in text
