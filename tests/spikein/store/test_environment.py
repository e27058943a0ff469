"""What a manifest says of where it was made: the code's commit, the machine's kind, no names."""

import getpass
import platform
import subprocess

import pytest

from spikein import __version__
from spikein.store import environment


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A repository in a folder of its own, taken for this code's."""

    def git(*arguments: str) -> str:
        name = ["-c", "user.name=n", "-c", "user.email=e@x"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *name, *arguments],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    git("init", "-q")
    (tmp_path / "code.py").write_text("1\n")
    git("add", ".")
    git("commit", "-qm", "first")
    monkeypatch.setattr(environment, "_ROOT", tmp_path.resolve())
    environment.code_version.cache_clear()
    yield tmp_path.resolve(), git("rev-parse", "--short=12", "HEAD")
    environment.code_version.cache_clear()


def test_a_clone_is_named_by_its_commit(clone):
    _, commit = clone
    assert environment.code_version() == f"{__version__}, commit {commit}"


def test_changed_files_are_told_and_new_ones_beside_the_code_are_not(clone):
    folder, commit = clone
    (folder / "runs").mkdir()
    (folder / "runs" / "note").write_text("x")
    assert environment.code_version() == f"{__version__}, commit {commit}"
    environment.code_version.cache_clear()
    (folder / "code.py").write_text("2\n")
    assert environment.code_version() == f"{__version__}, commit {commit} with changes"


def test_the_clone_of_something_else_around_the_code_says_nothing(clone, monkeypatch):
    folder, _ = clone
    (folder / "site-packages").mkdir()
    monkeypatch.setattr(environment, "_ROOT", folder / "site-packages")
    assert environment.code_version() == __version__


def test_the_machine_is_told_by_kind_without_names():
    told = environment.machine_kind()
    assert f"{environment._cores()} core" in told
    assert platform.system() in told
    for name in (platform.node(), getpass.getuser()):
        assert name not in told.replace(",", " ").split()
