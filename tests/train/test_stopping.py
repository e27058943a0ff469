"""SIGTERM is heard, never swallowed, and told by the exit code of the command."""

import os
import signal

from typer.testing import CliRunner

from spikein.cli.main import app
from train.stopping import Preempted, hearing_sigterm


def test_the_command_line_ends_with_143(monkeypatch):
    def run_experiment(*_: object, **__: object) -> None:
        raise Preempted("ended by SIGTERM after step 3 of 5")

    monkeypatch.setattr("spikein.run.run_experiment", run_experiment)
    result = CliRunner().invoke(app, ["run", "configs/quickstart.yaml"])
    assert result.exit_code == 143
    assert "ended by SIGTERM after step 3 of 5" in result.output


def test_a_signal_that_nobody_acted_on_still_ends_the_process():
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with hearing_sigterm() as request:
            os.kill(os.getpid(), signal.SIGTERM)
            assert request.heard
            assert heard == []
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
