"""Unusable folders: reported before any work, with a message and exit code 2."""

import pytest

from inject.errors import InputError
from spikein.store.filesystem import check_folder, check_writable
from tests.command_line import invoke
from tests.spikein.mounts import mounted, read_only
from tests.spikein.tiny import run, write_tiny


@pytest.fixture
def no_build(monkeypatch):
    """Fail when the steps are named, which is the first work of a run."""

    def build_graph(experiment):
        raise AssertionError("work began")

    for module in ("run", "plan", "report"):
        monkeypatch.setattr(f"spikein.api.{module}.build_graph", build_graph)


def test_paths_that_are_not_folders_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    for name, message in {
        "file": "is a file",
        "file/below": "leads through a file",
        "dangling": "is a link to nowhere, which does not exist",
        "dangling/below": "is a link to nowhere",
        "circle": "is a link to circle",
    }.items():
        with pytest.raises(InputError, match=message) as caught:
            check_folder(tmp_path / name, "--store")
        assert "by --store" in str(caught.value), name


@pytest.mark.parametrize(
    ("command", "option"),
    [("run", "--store"), ("run", "--runs"), ("plan", "--store"), ("gc", "--store")],
)
def test_commands_check_their_folders_before_any_work(
    tmp_path, no_build, monkeypatch, command, option
):
    monkeypatch.chdir(tmp_path)
    file = [] if command == "gc" else [str(write_tiny(tmp_path))]
    (tmp_path / "texts.jsonl").touch()
    names = {path.name for path in tmp_path.iterdir()} | {"store"}
    for value, message in {str(tmp_path / "texts.jsonl"): "is a file", " ": "is empty"}.items():
        result = invoke(command, *file, option, value, code=2)
        assert message in result.output
        assert option in result.output
    assert {path.name for path in tmp_path.iterdir()} <= names


@pytest.mark.parametrize("which", ["store", "runs"])
def test_run_finds_a_read_only_folder_before_any_work(tmp_path, no_build, which):
    (tmp_path / which).mkdir()
    write_tiny(tmp_path)
    with read_only(tmp_path / which), pytest.raises(InputError) as caught:
        run(tmp_path)
    assert "Read-only file system" in str(caught.value)
    assert f"Give another folder by --{which}" in str(caught.value)


@pytest.mark.parametrize("which", ["store", "runs"])
def test_run_finds_a_full_disk_before_any_work(tmp_path, no_build, which):
    write_tiny(tmp_path)
    with mounted(tmp_path / which, kilobytes=16), pytest.raises(InputError, match="disk is full"):
        run(tmp_path)
    assert not list((tmp_path / which).iterdir())


def test_run_refuses_a_run_folder_that_is_not_ours_before_any_work(tmp_path, no_build):
    write_tiny(tmp_path)
    (tmp_path / "runs" / "tiny").mkdir(parents=True)
    (tmp_path / "runs" / "tiny" / "thesis.tex").write_text("years")
    with pytest.raises(InputError, match="was not written by spikein"):
        run(tmp_path)
    assert (tmp_path / "runs" / "tiny" / "thesis.tex").read_text() == "years"


def test_checking_a_folder_that_can_be_made_leaves_nothing_behind(tmp_path):
    check_folder(tmp_path / "a" / "b", "--store")
    check_writable(tmp_path / "a" / "b", "--store")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_disk_that_fills_during_a_run_gives_no_traceback(tmp_path):
    """The store, then the folder of runs, on file systems that are too small for it."""
    file = str(write_tiny(tmp_path))
    small = tmp_path / "small"
    for which, kilobytes in (("store", 400), ("runs", 700)):
        if which == "runs":
            run(tmp_path)
        folders = {"store": tmp_path / "store", "runs": tmp_path / "others", which: small / which}
        options = [word for name, path in folders.items() for word in (f"--{name}", str(path))]
        with mounted(small, kilobytes=kilobytes):
            done = invoke("run", file, *options)
            assert isinstance(done.exception, SystemExit), done.exception
            assert done.exit_code == 2
            assert "the disk is full" in done.stderr
            assert str(small) in done.stderr
            assert not list(small.rglob(".*.tmp"))
