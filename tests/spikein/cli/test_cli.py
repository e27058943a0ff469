"""The command line: light to start, clear when it fails, and its exit codes."""

import errno
import types
from pathlib import Path

import pytest

from inject.errors import InputError
from inject.step import Recipe
from spikein.api.plan import PlanResult, PlanRow
from spikein.api.run import RunResult
from spikein.estimates.training import Hardware
from spikein.runs.folder import link_artifact
from spikein.runs.publication import publish_run
from spikein.store.store import Store
from tests.command_line import invoke
from tests.processes import python


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Stand-ins for `run`, `plan` and `render_report`, which separate tests cover."""
    calls: list[tuple[object, ...]] = []

    def run_experiment(path, *, overrides, store, runs, executor, progress):
        progress.step_started("corpus x", number=1, total=1)
        calls.append((path, overrides, store, runs, executor))
        return RunResult(
            folder=runs / "x",
            report=runs / "x" / "report.html",
            summary=("All [checks] pass.", "Best: min_k"),
            built=3,
            stored=4,
            seconds=61,
        )

    def plan_experiment(path, *, overrides=(), store, hardware=None, measure=False, draw=False):
        calls.append((path, overrides, store, hardware, measure))
        rows = (
            PlanRow(kind="corpus", label="[c]", stored=True, state="in the store"),
            PlanRow(
                kind="model",
                label="m",
                stored=False,
                state="damaged, will be rebuilt",
                problem="store/model/m/weights [1] changed since it was built",
                tokens=2_500_000,
                seconds=90,
            ),
        )
        return PlanResult(name="x", arms=2, rows=rows)

    def render_report(folder, *, store_root, show_protected, out):
        calls.append((folder, store_root, show_protected, out))
        return folder / "report.html"

    monkeypatch.setattr("spikein.api.run.run", run_experiment)
    monkeypatch.setattr("spikein.api.plan.plan", plan_experiment)
    monkeypatch.setattr("spikein.api.report.render_report", render_report)
    monkeypatch.chdir(tmp_path)
    return types.SimpleNamespace(calls=calls, root=tmp_path)


def test_run_passes_its_options_on_and_prints_the_report_path(lab):
    result = invoke("run", "f.yaml", "train.lr=1", "data=x", "--store", "S", "--runs", "R", code=0)
    assert lab.calls == [(Path("f.yaml"), ["train.lr=1", "data=x"], Path("S"), Path("R"), None)]
    assert result.stdout.splitlines() == [
        "3 steps built, 4 from the store, 1 min 1 s.",
        "All [checks] pass.",
        "Best: min_k",
        "Report: R/x/report.html",
    ]
    assert result.stderr == ""
    assert invoke("run", "f.yaml", "-v").stderr == "[1/1] corpus x …\n"


def test_a_dry_run_is_the_plan(lab):
    planned = invoke("plan", "f.yaml", "a=1")
    dry = invoke("run", "f.yaml", "a=1", "--dry-run", code=0)
    assert dry.stdout == planned.stdout
    assert lab.calls[0] == lab.calls[1]
    assert "no executor is called" in invoke("run", "f.yaml", "--dry-run", "--executor", "x").stderr


def test_plan_prints_the_steps_to_do(lab):
    result = invoke("plan", "f.yaml", "a=1", "--gpu", "A100", "--gpus", "4", code=0)
    hardware = Hardware(gpu="a100", gpus=4)
    assert lab.calls == [(Path("f.yaml"), ["a=1"], Path("store"), hardware, True)]
    assert "[c]" in result.stdout
    assert "in the store" in result.stdout
    assert "2.5 M" in result.stdout
    assert (
        "Damaged: store/model/m/weights [1] changed since it was built; a run builds it again."
        in result.stdout
    )
    assert "2 arms, 2 steps, 1 to do; about 1 min 30 s" in result.stdout


def test_bad_input_is_reported_without_a_traceback(lab, monkeypatch):
    def fail(*_, **__):
        error = InputError("is [bad]", where="f.yaml:3", allowed="good", hint="Do better.")
        error.add_note("This happened in the step corpus x.")
        raise error

    monkeypatch.setattr("spikein.api.run.run", fail)
    result = invoke("run", "f.yaml", code=2)
    assert result.stderr.splitlines() == [
        "Error: f.yaml:3: is [bad]. Allowed: good. Do better.",
        "This happened in the step corpus x.",
    ]
    assert not result.stdout


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/d/f"), "/d/f: the disk is full", 2),
        (RuntimeError("write failed: No space left on device"), "the disk is full", 2),
        (OSError(errno.EROFS, "Read-only file system", "/d/f"), "/d/f: Read-only file system.", 2),
        (KeyboardInterrupt(), "Finished steps are kept", 130),
    ],
)
def test_machine_errors_are_reported_without_a_traceback(lab, monkeypatch, error, message, code):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("spikein.api.run.run", fail)
    result = invoke("run", "f.yaml")
    assert result.exit_code == code
    assert message in result.stderr


def test_a_defect_shows_its_traceback():
    code = (
        "import sys, spikein.api.report\n"
        "def render_report(*a, **k): raise RuntimeError('boom')\n"
        "spikein.api.report.render_report = render_report\n"
        "import spikein.runs.folder; spikein.runs.folder.find_run = lambda *a: None\n"
        "sys.argv = ['spikein', 'report', 'x']\n"
        "from spikein.cli.main import main; main()"
    )
    done = python("-c", code)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "RuntimeError: boom" in done.stderr


def publish_first_run(root: Path) -> None:
    made = Store(root / "store").obtain(
        Recipe(kind="corpus", function="made:build", settings={}),
        lambda out: (out / "a").write_text("x") and None,
        label="n1",
    )
    publish_run(root / "runs", "first", lambda run: link_artifact(run, made.artifact) and None)


def test_status_of_no_runs_all_runs_and_one_run(lab, monkeypatch):
    assert "No runs" in invoke("status").stdout
    publish_first_run(lab.root)
    listed = invoke("status").stdout
    assert "first" in listed
    assert "1/1" in listed
    output = invoke("status", "first").stdout
    assert "corpus/n1-" in output
    assert "runs/first/1/report.html" in output
    experiment = types.SimpleNamespace(experiment=types.SimpleNamespace(name="x"))
    monkeypatch.setattr("spikein.api.experiment.read", lambda *_: experiment)
    assert "model" in invoke("status", "f.yaml").stdout
    wrong = invoke("status", "frist", code=2)
    assert "Did you mean 'first'" in wrong.stderr


def test_report_opens_only_if_requested(lab, monkeypatch):
    import typer

    opened: list[str] = []
    monkeypatch.setattr(typer, "launch", opened.append)
    publish_first_run(lab.root)
    result = invoke("report", "first")
    assert result.stdout.strip() == "Report: runs/first/1/report.html"
    assert lab.calls == [(Path("runs/first/1"), None, False, None)]
    assert not opened
    invoke("report", "runs/first", "--open")
    assert opened == [(lab.root / "runs/first/1/report.html").as_uri()]
