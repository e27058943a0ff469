"""`spikein gc` and the run folders: kept artifacts, questions, and races, which lose no run."""

import json
import re
import shutil
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spikein.cli import output
from spikein.cli.commands import gc as command
from spikein.cli.main import app
from spikein.runs.folder import link_artifact
from spikein.runs.publication import publish_run
from spikein.runs.register import register_run, registered_runs
from spikein.store.artifact import Artifact
from spikein.store.store import Store
from tests.processes import python
from tests.spikein.mounts import mounted, read_only
from tests.spikein.samples import recipe, visible, write

REPOSITORY = Path(__file__).parents[3]


def make_artifact(store: Store, number: int) -> Artifact:
    return store.obtain(recipe(n=number), write(str(number)), label=f"n{number}").artifact


def publish(store: Store, runs: Path, name: str, *numbers: int, registered: bool = True) -> Path:
    def fill(folder: Path) -> None:
        for number in numbers:
            link_artifact(folder, make_artifact(store, number))

    def announce(folder, record):
        if registered:
            register_run(store.root, folder, id=record.id, artifacts=record.artifacts)

    return publish_run(runs, name, fill, announce=announce).folder


def gc(root: Path, *options: object, answers: str | None = None, monkeypatch=None):
    """Run `spikein gc`; with `answers` as a person at a terminal."""
    if answers is not None:
        for module in (command, output):
            monkeypatch.setattr(module, "at_terminal", lambda: True)
    arguments = ["gc", "--store", str(root / "store"), *(str(option) for option in options)]
    return CliRunner().invoke(app, arguments, input=answers)


def labels(store: Store) -> set[str]:
    return {folder.name.partition("-")[0] for folder in store.artifacts()}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Store(tmp_path / "store")


def test_runs_in_another_folder_than_the_one_given_keep_their_artifacts(tmp_path, store):
    # A name that is not Unicode.
    publish(store, tmp_path / "far" / "r\udcff", "r", 1)
    make_artifact(store, 2)
    for runs in ("absent", tmp_path / "other"):
        result = gc(tmp_path, "--yes", "--runs", runs)
        assert result.exit_code == 0, result.output
        assert labels(store) == {"n1"}


def test_gc_refuses_a_store_without_known_runs(tmp_path, store):
    make_artifact(store, 1)
    publish(Store(tmp_path / "another"), tmp_path / "runs", "r", 5)
    for options in (["--yes"], ["--yes", "--forget-missing"], ["--dry-run"]):
        result = gc(tmp_path, *options)
        assert result.exit_code == 2
        assert "no run that was made from this store is known" in result.stderr
        assert "rm -r" in result.stderr
    assert labels(store) == {"n1"}


def test_without_a_terminal_gc_removes_nothing_without_yes(tmp_path, store):
    publish(store, tmp_path / "runs", "r", 1)
    make_artifact(store, 2)
    result = gc(tmp_path)
    assert result.exit_code == 2
    assert "nothing was removed" in result.stderr
    assert "--yes" in result.stderr
    assert "n2-" in result.stdout
    assert labels(store) == {"n1", "n2"}
    assert gc(tmp_path, "--yes").exit_code == 0
    assert labels(store) == {"n1"}
    assert gc(tmp_path).exit_code == 0


@pytest.mark.parametrize(("answer", "left"), [("n\n", {"n1", "n2"}), ("y\n", {"n1"})])
def test_at_a_terminal_gc_shows_sizes_and_requires_confirmation(
    tmp_path, store, monkeypatch, answer, left
):
    publish(store, tmp_path / "runs", "r", 1)
    make_artifact(store, 2)
    result = gc(tmp_path, answers=answer, monkeypatch=monkeypatch)
    assert result.exit_code == 0
    assert re.search(r"n2-\w+ +[\d.]+ k?B +no run needs it", result.output)
    assert re.search(r"Remove these 1 \([\d.]+ k?B\)\?", result.output)
    assert labels(store) == left


def test_a_missing_run_folder_keeps_its_artifacts_until_its_deletion_is_confirmed(tmp_path, store):
    folder = publish(store, tmp_path / "runs", "r", 1)
    publish(store, tmp_path / "runs", "s", 2)
    shutil.rmtree(folder)
    result = gc(tmp_path, "--yes")
    assert str(folder) in result.stderr
    assert "--forget-missing" in result.stderr
    assert labels(store) == {"n1", "n2"}
    assert gc(tmp_path, "--dry-run", "--forget-missing").exit_code == 0
    assert labels(store) == {"n1", "n2"}
    assert gc(tmp_path, "--yes", "--forget-missing").exit_code == 0
    assert labels(store) == {"n2"}
    assert [run.path.parent.name for run in registered_runs(store.root)] == ["s"]


@pytest.mark.parametrize(("answers", "left"), [("n\n", {"n1", "n2"}), ("y\ny\n", {"n2"})])
def test_at_a_terminal_gc_asks_about_missing_folders(tmp_path, store, monkeypatch, answers, left):
    shutil.rmtree(publish(store, tmp_path / "runs", "r", 1))
    publish(store, tmp_path / "runs", "s", 2)
    result = gc(tmp_path, answers=answers, monkeypatch=monkeypatch)
    assert "deleted on purpose" in result.output
    assert labels(store) == left


def test_a_moved_run_folder_is_found_again_and_remembered(tmp_path, store):
    folder = publish(store, tmp_path / "runs", "r", 1)
    (tmp_path / "elsewhere").mkdir()
    folder.rename(tmp_path / "elsewhere" / "renamed")
    assert "folders are missing" in gc(tmp_path, "--yes").stderr
    result = gc(tmp_path, "--yes", "--runs", tmp_path / "elsewhere")
    assert "folders are missing" not in result.stderr
    assert "folders are missing" not in gc(tmp_path, "--yes").stderr
    (run,) = registered_runs(store.root)
    assert run.path == (tmp_path / "elsewhere" / "renamed").resolve()
    # Its name may be used again.
    publish(store, tmp_path / "runs", "r", 2)
    assert gc(tmp_path, "--yes").exit_code == 0
    assert labels(store) == {"n1", "n2"}


def test_an_unmounted_folder_keeps_artifacts_when_a_run_sharing_them_is_deleted(tmp_path, store):
    away = publish(store, tmp_path / "disk", "r", 1)
    (tmp_path / "disk").rename(tmp_path / "unmounted")
    shared = publish(store, tmp_path / "runs", "s", 1)
    publish(store, tmp_path / "runs", "t", 2)
    gc(tmp_path, "--yes")
    # Nothing depends on it while another run needs the same artifact.
    assert "folders are missing" not in gc(tmp_path, "--yes").stderr
    shutil.rmtree(shared)
    result = gc(tmp_path, "--yes")
    assert str(away) in result.stderr
    assert labels(store) == {"n1", "n2"}


def test_a_damaged_record_or_register_removes_nothing(tmp_path, store):
    folder = publish(store, tmp_path / "runs", "r", 1)
    make_artifact(store, 2)
    (folder / "run.json").write_text("{")
    assert gc(tmp_path, "--yes").exit_code == 0
    assert labels(store) == {"n1"}
    (entry,) = (run.entry for run in registered_runs(store.root))
    make_artifact(store, 2)
    for damaged in ("{", "[" * 100_000):
        entry.write_text(damaged)
        result = gc(tmp_path, "--yes")
        assert result.exit_code == 2
        assert str(entry) in result.stderr
        assert labels(store) == {"n1", "n2"}


def test_a_full_disk_can_be_emptied(tmp_path, store):
    with mounted(tmp_path / "store", kilobytes=2048):
        publish(store, tmp_path / "runs", "old", 1, registered=False)
        large = recipe(n=2)
        store.obtain(
            large, lambda out: (out / "a").write_bytes(bytes(1 << 20)) and None, label="n2"
        )
        with suppress(OSError), (store.root / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        assert gc(tmp_path, "--dry-run").exit_code == 0
        result = gc(tmp_path, "--yes")
        assert result.exit_code == 0, result.output + result.stderr
        assert labels(store) == {"n1"}


def test_a_read_only_store_is_refused(tmp_path, store):
    publish(store, tmp_path / "runs", "r", 1)
    make_artifact(store, 2)
    with read_only(store.root):
        assert gc(tmp_path, "--dry-run").exit_code == 0
        result = gc(tmp_path, "--yes")
    assert result.exit_code == 2
    assert "Read-only file system" in result.stderr
    assert labels(store) == {"n1", "n2"}


PUBLISHER = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from spikein.store.store import Store
    sys.path.insert(0, sys.argv[3])
    from tests.spikein.runs.test_register import publish

    root, name = Path(sys.argv[1]), sys.argv[2]
    store = Store(root / "store")
    for number in range(4):
        with store.in_use():
            publish(store, root / "runs", f"{name}{number}", *range(number, number + 3))
        print(number, flush=True)
    """
)

COLLECTOR = textwrap.dedent(
    """
    import sys
    from spikein.cli.main import main
    sys.argv = ["spikein", "gc", "--yes", "--store", sys.argv[1], "--runs", sys.argv[2]]
    main()
    """
)


@pytest.mark.slow
def test_processes_that_publish_and_collect_at_once_lose_nothing(tmp_path, store):
    publish(store, tmp_path / "runs", "first", 100)
    publishers = [
        subprocess.Popen(
            [sys.executable, "-c", PUBLISHER, str(tmp_path), name, str(REPOSITORY)], cwd=REPOSITORY
        )
        for name in "ab"
    ]
    collected = 0
    while any(process.poll() is None for process in publishers) or collected == 0:
        done = python("-c", COLLECTOR, store.root, tmp_path / "absent")
        # "process 7 uses the store" of one publisher, "2 other processes use the store" of both.
        assert done.returncode == 0 or "the store: process" in done.stderr, done.stderr
        collected += done.returncode == 0
    assert [process.returncode for process in publishers] == [0, 0]
    for record in (tmp_path / "runs").glob("*/*/run.json"):
        for name in json.loads(record.read_text())["artifacts"]:
            assert (store.root / name / "manifest.json").is_file(), f"{record}: {name} is gone"


def test_runs_published_while_gc_waits_for_an_answer_stay(tmp_path, store, monkeypatch):
    """Roots are read again under the lock, after the answer."""
    publish(store, tmp_path / "runs", "r", 1)
    make_artifact(store, 2)
    original_confirm = command.typer.confirm

    def slowly(text: str, **_: object) -> bool:
        publish(store, tmp_path / "runs", "s", 2)
        make_artifact(store, 3)
        return original_confirm(text)

    monkeypatch.setattr(command.typer, "confirm", slowly)
    result = gc(tmp_path, answers="y\n", monkeypatch=monkeypatch)
    assert "0 removed" in result.output
    assert labels(store) == {"n1", "n2", "n3"}


def test_a_store_in_use_is_refused_with_its_users_before_any_question(tmp_path, store, monkeypatch):
    publish(store, tmp_path / "runs", "r", 1)
    make_artifact(store, 2)
    with store.in_use():
        result = gc(tmp_path, answers="", monkeypatch=monkeypatch)
    assert result.exit_code == 2
    assert "1 other process uses the store: process " in result.stderr
    assert labels(store) == {"n1", "n2"}
    assert visible(store.root)
