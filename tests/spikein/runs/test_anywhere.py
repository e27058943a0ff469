"""A finished run, read from another folder, after a move, and on read-only disks."""

import json
import shutil
from pathlib import Path

import pytest

import spikein
from inject.errors import InputError
from spikein.runs.record import read_record
from spikein.store.filesystem import delete_tree
from tests.command_line import invoke
from tests.spikein.mounts import read_only
from tests.spikein.records import change_record
from tests.spikein.tiny import LIGHT, write_tiny

pytestmark = pytest.mark.slow


def command(*arguments: object):
    return invoke(*arguments, code=0)


@pytest.fixture
def lab(tmp_path, tmp_path_factory, monkeypatch, finished):
    """The finished run in its own folder; the working directory is another."""
    root = tmp_path / "lab"
    shutil.copytree(finished, root, symlinks=True)
    text = (root / "runs/tiny/1/run.json").read_text()
    change_record(root / "runs/tiny/1", **json.loads(text.replace(str(finished), str(root))))
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    return root


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run whose experiment names its files by relative paths."""
    folder = tmp_path_factory.mktemp("finished")
    path = write_tiny(folder)
    path.write_text(path.read_text().replace(f"{folder}/", ""))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        spikein.run("tiny.yaml", overrides=LIGHT, progress=False)
    return folder


def check(run: Path) -> None:
    """Run every command that reads a finished run, with only its path."""
    before = read_record(run)
    page = (run / "report.html").read_text()
    assert str(run / "report.html") in command("report", run).stdout
    assert len((run / "report.html").read_text()) > len(page) / 2
    status, audit = command("status", run).stdout, command("audit", run).stdout
    assert "whole" in status
    assert "gone" not in status
    assert "All streams passed" in audit
    assert "in place" in audit
    out = Path("exported").absolute()
    command("export", run, "--format", "megatron", "--out", out)
    assert (out / "export.json").is_file()
    shutil.rmtree(out)
    after = read_record(run)
    assert after.finished == before.finished
    assert after.id == before.id
    listed = command("status", "--runs", run.parent).stdout
    assert before.finished[:10] in listed
    assert before.finished[11:19] in listed


@pytest.mark.parametrize("moved", ["together", "alone"])
def test_a_run_is_readable_from_anywhere_by_only_its_path(lab, tmp_path, moved):
    """Everything was moved together, or the run's folder without its store and data."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    if moved == "together":
        lab.rename(folder / "lab")
        check(folder / "lab" / "runs" / "tiny" / "1")
    else:
        (lab / "runs" / "tiny" / "1").rename(folder / "renamed")
        check(folder / "renamed")
        assert not (folder / "tiny").exists()


def test_a_store_moved_separately_must_be_given_once(lab):
    run = lab / "runs" / "tiny" / "1"
    (lab / "store").rename(lab / "other")
    result = invoke("report", run, code=2)
    assert "--store" in result.stderr
    command("report", run, "--store", lab / "other")
    assert "All streams passed" in command("audit", run.with_name("2")).stdout


def test_a_read_only_store_serves_cached_runs_and_refuses_new_steps(lab, monkeypatch):
    monkeypatch.chdir(lab)
    shutil.rmtree("runs")
    before = sorted(path.name for path in (lab / "store").rglob("*"))
    with read_only(lab / "store"):
        done = spikein.run("tiny.yaml", overrides=LIGHT, progress=False)
        assert done.built == 0
        assert spikein.load_run(done.folder).metrics.num_rows
        with pytest.raises(InputError, match=r"Read-only file system.*--store"):
            spikein.run("tiny.yaml", overrides=[*LIGHT, "train.lr=0.5"], progress=False)
    assert sorted(path.name for path in (lab / "store").rglob("*")) == before


def test_the_page_of_a_read_only_run_can_be_written_elsewhere(lab):
    run = lab / "runs" / "tiny" / "1"
    with read_only(lab):
        refused = invoke("report", run, code=2)
        assert "Read-only file system" in refused.stderr
        assert "--out" in refused.stderr
        command("report", run, "--out", "page.html")
        assert "<html" in Path("page.html").read_text()
        assert "whole" in command("status", run).stdout
        assert "All streams passed" in command("audit", run).stdout


def test_a_missing_starting_folder_is_named(lab, tmp_path):
    (lab / "runs" / "tiny" / "1").rename(tmp_path / "tiny")
    (lab / "store").rename(tmp_path / "store")
    shutil.rmtree(lab)
    run, store = tmp_path / "tiny", tmp_path / "store"
    result = invoke("report", run, "--store", store, code=2)
    assert str(lab) in result.stderr
    assert "All streams passed" in command("audit", run, "--store", store).stdout


def test_a_page_that_cannot_be_rendered_again_is_kept_and_named(lab):
    run = lab / "runs" / "tiny" / "1"
    page = (run / "report.html").read_text()
    (results,) = (lab / "store" / "results").iterdir()
    delete_tree(results)
    result = invoke("report", run, code=2)
    assert "results tiny" in result.stderr
    assert f"The original page is {run / 'report.html'}" in result.stderr
    assert (run / "report.html").read_text() == page


def test_a_mistyped_store_is_refused_and_not_created(lab, tmp_path):
    mistyped = tmp_path / "stoer"
    result = invoke("report", lab / "runs/tiny", "--store", mistyped)
    assert not mistyped.exists()
    assert result.exit_code == 2
    assert f"{mistyped}: there is no such folder" in result.stderr
