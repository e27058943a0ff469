"""Run folders: whole or absent, links, and what garbage collection must keep."""

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import spikein.runs.replacement as module
from inject.errors import InputError
from inject.step import Recipe
from spikein.runs.folder import find_run, link_artifact, linked_artifacts
from spikein.runs.register import find_roots
from spikein.runs.replacement import publish_run as publish
from spikein.runs.status import artifact_rows, run_rows
from spikein.store.artifact import Artifact
from spikein.store.garbage import collect
from spikein.store.store import Store


def artifact(store: Store, number: int, **inputs: str) -> Artifact:
    recipe = Recipe(kind="thing", function="made:build", settings={"n": number}, inputs=inputs)
    return store.obtain(
        recipe, lambda out: (out / "a").write_text(str(number)) and None, label=f"n{number}"
    ).artifact


def fill_with(text: str, *artifacts: Artifact):
    def fill(folder: Path) -> None:
        (folder / "report.html").write_text(text)
        for one in artifacts:
            link_artifact(folder, one)

    return fill


def publish_run(root: Path, name: str, fill) -> Path:
    return publish(root, name, fill).folder


def visible(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if not path.name.startswith("."))


def hidden(root: Path) -> list[Path]:
    return list(root.glob(".*.tmp"))


def test_publish_and_replace(tmp_path):
    folder = publish_run(tmp_path / "runs", "r", fill_with("old"))
    again = publish_run(tmp_path / "runs", "r", fill_with("new"))
    assert again == folder
    assert (folder / "report.html").read_text() == "new"
    assert not hidden(tmp_path / "runs")


def test_without_exchange_two_renames_do(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_exchange", lambda one, other: False)
    for text in ("old", "new"):
        folder = publish_run(tmp_path, "r", fill_with(text))
    assert (folder / "report.html").read_text() == "new"
    assert visible(tmp_path) == ["r"]
    assert not hidden(tmp_path)


@pytest.mark.parametrize("exists", [False, True])
def test_a_failed_fill_leaves_the_old_folder(tmp_path, exists):
    def fail(folder: Path) -> None:
        (folder / "report.html").write_text("half")
        raise RuntimeError("no")

    if exists:
        publish_run(tmp_path, "r", fill_with("old"))
    with pytest.raises(RuntimeError):
        publish_run(tmp_path, "r", fail)
    assert visible(tmp_path) == (["r"] if exists else [])
    assert not hidden(tmp_path)
    if exists:
        assert (tmp_path / "r" / "report.html").read_text() == "old"


def test_a_folder_of_somebody_else_is_never_replaced(tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "thesis.tex").write_text("years")
    with pytest.raises(InputError, match="was not made by spikein"):
        publish_run(tmp_path, "r", fill_with("new"))
    assert (tmp_path / "r" / "thesis.tex").read_text() == "years"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="renameat2 is Linux's")
def test_a_reader_never_misses_the_folder(tmp_path):
    publish_run(tmp_path, "r", fill_with("0"))
    stop = threading.Event()
    missed: list[OSError] = []

    def read() -> None:
        while not stop.is_set():
            try:
                os.stat(tmp_path / "r")
            except OSError as error:
                missed.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(30):
        publish_run(tmp_path, "r", fill_with(str(number)))
    stop.set()
    reader.join()
    assert not missed


def test_a_killed_publication_leaves_the_old_folder_and_is_cleaned_up(tmp_path):
    publish_run(tmp_path, "r", fill_with("old"))
    code = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from spikein.runs.replacement import publish_run
        def fill(folder):
            (folder / "report.html").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
        publish_run(Path(sys.argv[1]), "r", fill)
        """
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=Path(__file__).parents[3])
    assert (tmp_path / "r" / "report.html").read_text() == "old"
    assert visible(tmp_path) == ["r"]
    assert len(hidden(tmp_path)) == 1
    publish_run(tmp_path, "r", fill_with("new"))
    assert not hidden(tmp_path)


def test_links_are_relative_and_survive_a_move(tmp_path):
    here = tmp_path / "here"
    one = artifact(Store(here / "store"), 1)
    folder = publish_run(here / "runs", "r", fill_with("x", one))
    (link,) = (folder / "artifacts" / "thing").iterdir()
    assert not os.path.isabs(os.readlink(link))
    assert (link / "a").read_text() == "1"
    here.rename(tmp_path / "there")
    moved = tmp_path / "there" / "runs" / "r" / "artifacts" / "thing" / link.name
    assert (moved / "a").read_text() == "1"


def test_collection_keeps_what_runs_link_to_and_its_inputs(tmp_path):
    store, runs = Store(tmp_path / "store"), tmp_path / "runs"
    one = artifact(store, 1)
    two = artifact(store, 2, x=one.digest)
    three = artifact(store, 3)
    publish_run(runs, "r", fill_with("x", two))
    needed = find_roots(store.root, runs).needed()
    assert needed == {two.digest[:12]}
    removed = collect(store, keep=needed).removed
    assert [item.path for item in removed] == [three.path]
    assert (one / "a").read_text() == "1"


def test_status_names_what_is_gone_or_damaged(tmp_path):
    store, runs = Store(tmp_path / "store"), tmp_path / "runs"
    good, gone, broken = (artifact(store, number) for number in (1, 2, 3))
    folder = publish_run(runs, "r", fill_with("x", good, gone, broken))
    (row,) = run_rows(runs)
    assert (row.name, row.linked, row.whole, row.problem) == ("r", 3, 3, None)
    store.remove(gone.path, digest12=gone.digest[:12])
    (broken / "a").chmod(0o644)
    (broken / "a").write_text("longer")
    problems = {row.name.split("/")[1][:2]: row.problem for row in artifact_rows(folder)}
    assert problems["n1"] is None
    assert "missing" in str(problems["n2"])
    assert "has 6 bytes instead of 1" in str(problems["n3"])
    assert run_rows(runs)[0].whole == 1
    assert len(linked_artifacts(folder)) == 3


def test_find_run_by_name_and_by_path(tmp_path):
    folder = publish_run(tmp_path, "quickstart", fill_with("x"))
    assert find_run(tmp_path, "quickstart") == folder
    assert find_run(tmp_path / "other", str(folder)) == folder
    with pytest.raises(InputError, match="Did you mean 'quickstart'"):
        find_run(tmp_path, "quikstart")
    with pytest.raises(InputError, match="no runs yet"):
        find_run(tmp_path / "other", "x")
