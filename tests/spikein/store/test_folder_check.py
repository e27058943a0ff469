"""Folders that cannot be used: reported before any work, in words, with exit code 2."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inject.errors import InputError
from spikein.cli.main import app
from spikein.store.folder_check import check_folder, check_writable
from tests.spikein.mounts import mounted, read_only
from tests.spikein.tiny import run, write_tiny

REPOSITORY = Path(__file__).parents[3]


def a_file(folder: Path) -> tuple[Path, str]:
    (folder / "it").write_text("")
    return folder / "it", "is a file"


def through_a_file(folder: Path) -> tuple[Path, str]:
    (folder / "it").write_text("")
    return folder / "it" / "below", "leads through a file"


def a_dangling_link(folder: Path) -> tuple[Path, str]:
    (folder / "it").symlink_to("nowhere")
    return folder / "it", "is a link to nowhere, which does not exist"


def below_a_dangling_link(folder: Path) -> tuple[Path, str]:
    (folder / "it").symlink_to("nowhere")
    return folder / "it" / "below", "is a link to nowhere"


def a_circle(folder: Path) -> tuple[Path, str]:
    (folder / "it").symlink_to("it")
    return folder / "it", "is a link to it"


BAD = [a_file, through_a_file, a_dangling_link, below_a_dangling_link, a_circle]


@pytest.fixture
def nothing_is_built(monkeypatch):
    """Naming the steps is the first work; a run that gets there has been let through."""

    def build_graph(experiment):
        raise AssertionError("work began")

    for module in ("run", "plan", "report"):
        monkeypatch.setattr(f"spikein.api.{module}.build_graph", build_graph)


@pytest.mark.parametrize("option", ["--store", "--runs"])
@pytest.mark.parametrize("make", BAD)
def test_run_refuses_a_store_or_runs_that_is_no_folder_before_any_work(
    tmp_path, nothing_is_built, monkeypatch, make, option
):
    monkeypatch.chdir(tmp_path)
    path, said = make(tmp_path)
    result = CliRunner().invoke(app, ["run", str(write_tiny(tmp_path)), option, str(path)])
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert f"by {option}" in result.stderr


@pytest.mark.parametrize("command", ["plan", "gc"])
@pytest.mark.parametrize("make", BAD)
def test_plan_and_gc_refuse_a_store_that_is_no_folder(tmp_path, command, make):
    path, said = make(tmp_path)
    file = [str(write_tiny(tmp_path))] if command == "plan" else []
    result = CliRunner().invoke(app, [command, *file, "--store", str(path)])
    assert result.exit_code == 2, result.output
    assert said in result.stderr


@pytest.mark.parametrize("option", ["--store", "--runs"])
@pytest.mark.parametrize("given", ["", " "])
def test_an_empty_folder_is_not_the_working_directory(tmp_path, monkeypatch, option, given):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["run", str(write_tiny(tmp_path)), option, given])
    assert result.exit_code == 2
    assert "is empty" in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "shape.yaml", "texts.jsonl", "tiny.yaml",
    ]  # fmt: skip


@pytest.mark.parametrize("which", ["store", "runs"])
def test_run_finds_a_read_only_folder_before_any_work(tmp_path, nothing_is_built, which):
    (tmp_path / which).mkdir()
    write_tiny(tmp_path)
    with read_only(tmp_path / which), pytest.raises(InputError) as caught:
        run(tmp_path)
    assert "Read-only file system" in str(caught.value)
    assert f"Give another folder by --{which}" in str(caught.value)


@pytest.mark.parametrize("which", ["store", "runs"])
def test_run_finds_a_full_disk_before_any_work(tmp_path, nothing_is_built, which):
    write_tiny(tmp_path)
    with mounted(tmp_path / which, kilobytes=16), pytest.raises(InputError, match="disk is full"):
        run(tmp_path)
    assert not list((tmp_path / which).iterdir())


def test_run_refuses_a_run_folder_that_is_not_ours_before_any_work(tmp_path, nothing_is_built):
    write_tiny(tmp_path)
    (tmp_path / "runs" / "tiny").mkdir(parents=True)
    (tmp_path / "runs" / "tiny" / "thesis.tex").write_text("years")
    with pytest.raises(InputError, match="was not made by spikein"):
        run(tmp_path)
    assert (tmp_path / "runs" / "tiny" / "thesis.tex").read_text() == "years"


def test_a_folder_that_can_be_made_is_made_and_left_empty(tmp_path):
    check_folder(tmp_path / "a" / "b", "--store")
    assert not (tmp_path / "a").exists()
    check_writable(tmp_path / "a" / "b", "--store")
    assert not list((tmp_path / "a" / "b").iterdir())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_size_of_a_full_disk_gives_a_traceback(tmp_path):
    """The store, then the folder of runs, on file systems from too small to nearly enough."""
    write_tiny(tmp_path)
    run(tmp_path)
    for which, sizes in (("runs", (80, 700)), ("store", (400,))):
        for kilobytes in sizes:
            with mounted(tmp_path / "small", kilobytes=kilobytes) as small:
                folders = {"store": tmp_path / "store", "runs": tmp_path / "others"}
                folders[which] = small / which
                command = [
                    sys.executable, "-m", "spikein.cli.main", "run", str(tmp_path / "tiny.yaml"),
                    "--store", str(folders["store"]), "--runs", str(folders["runs"]),
                ]  # fmt: skip
                done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
                assert "Traceback" not in done.stderr, f"{which} {kilobytes}: {done.stderr}"
                assert done.returncode == 2
                assert "the disk is full" in done.stderr
                assert str(small) in done.stderr
                assert not list(small.rglob(".*.tmp"))
