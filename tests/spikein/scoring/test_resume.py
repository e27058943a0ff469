"""A killed `spikein detect` resumes, like all graphs of users' models."""

import json
import signal
from pathlib import Path

import pytest

from tests.command_line import invoke
from tests.conftest import make_texts
from tests.processes import spikein_process

KILLS_ITSELF_ONCE = """
import os, signal
from pathlib import Path

def score(example):
    mark = Path(__file__).with_suffix(".mark")
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return float(len(example.text))
"""


@pytest.mark.slow
def test_a_killed_run_resumes_from_stored_steps(tmp_path, tiny_model_path, monkeypatch):
    rows = [{"text": text, "label": at % 2} for at, text in enumerate(make_texts(12))]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "mine.py").write_text(KILLS_ITSELF_ONCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = ["detect", "--model", str(tiny_model_path), "--examples", "rows.jsonl"]
    words += ["--detectors", "loss,mine.py:score", "--out", "scores.csv"]
    killed = spikein_process(*words, folder=tmp_path)
    assert killed.returncode == -signal.SIGKILL
    again = invoke(*words, code=0)
    assert [line.split()[:3] for line in again.stderr.splitlines()] == [["scores", "1", "step"]]
    scores = (tmp_path / "scores.csv").read_text()
    assert scores.count("mine.score") == 12
    # Another store, filled by workers, gives the same.
    invoke(*words, "--executor", "local", "--store", "other", code=0)
    assert (tmp_path / "scores.csv").read_text() == scores
    assert {path.name for path in Path(tmp_path).iterdir()} >= {"cache", "other"}
    assert not (tmp_path / "store").exists()
