"""Completion: the names that the shell offers through typer, and their cost."""

from pathlib import Path

import pytest

from detect.registry import detector_names
from inject.builtin_files import EXPERIMENTS
from spikein.cli import completion
from tests.processes import printed


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPIKEIN_RUNS", raising=False)


def test_experiments_and_runs_are_offered_by_name_and_files_by_path(monkeypatch):
    for name in ("mine.yaml", "notes.txt", ".hidden.yaml", "deep/more.yml", "runs/note.txt"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("")
    for name in ("deep/er", "runs/first", "runs/.half", "other/second"):
        Path(name).mkdir(parents=True)
    shipped = [*EXPERIMENTS.files()]
    assert completion.experiments("") == [*shipped, "deep/", "mine.yaml", "other/", "runs/"]
    assert completion.experiments("qui") == ["quickstart", "quickstart-full"]
    assert completion.experiments("deep/") == ["deep/er/", "deep/more.yml"]
    assert completion.experiments("absent/") == []
    assert completion.runs("f") == ["first"]
    assert completion.runs("runs/f") == ["runs/first/"]
    monkeypatch.setenv("SPIKEIN_RUNS", "other")
    assert completion.runs("s") == ["second"]


def test_detectors_and_datasets_are_offered_in_their_options():
    assert completion.detectors("") == ["all", *detector_names()]
    assert completion.detectors("loss,zl") == ["loss,zlib"]
    assert completion.detectors("loss,al") == []
    assert completion.overrides("contaminants.0.dataset=bool") == ["contaminants.0.dataset=boolq"]
    assert completion.overrides("train.lr=") == []


def completions(line: str) -> list[str]:
    """Return the completions in bash of a line with an unfinished last word."""
    words = line.split(" ")
    completing = {
        "_SPIKEIN_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    code = "import sys; sys.argv = ['spikein']; from spikein.cli.main import main; main()"
    return printed(code, folder=Path(), **completing).split()


def test_bash_offers_completions():
    Path("runs/first").mkdir(parents=True)
    assert completions("spikein report fir") == ["first"]


def test_names_of_experiments_cost_no_heavy_import():
    code = (
        "import sys\nfrom spikein.cli.completion import experiments\nexperiments('q')\n"
        "print([m for m in ('numpy', 'pydantic', 'torch', 'ruamel') if m in sys.modules])"
    )
    assert printed(code) == "[]"
