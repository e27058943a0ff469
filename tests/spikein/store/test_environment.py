"""What a manifest says of where it was made: the code's commit, the machine's kind, no names."""

import getpass
import platform
import subprocess

from spikein import __version__
from spikein.store import environment


def test_a_clone_is_named_by_its_commit_and_what_was_changed(tmp_path, monkeypatch):
    def git(*arguments: str) -> str:
        name = ["-c", "user.name=n", "-c", "user.email=e@x"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *name, *arguments],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    def told() -> str:
        environment.code_version.cache_clear()
        return environment.code_version()

    git("init", "-q")
    (tmp_path / "code.py").write_text("1\n")
    git("add", ".")
    git("commit", "-qm", "first")
    version = f"{__version__}, commit {git('rev-parse', '--short=12', 'HEAD')}"
    with monkeypatch.context() as patch:
        patch.setattr(environment, "_ROOT", tmp_path.resolve())
        (tmp_path / "note").write_text("new beside the code")
        assert told() == version
        (tmp_path / "code.py").write_text("2\n")
        assert told() == f"{version} with changes"
        # The clone of something else around the code says nothing of it.
        (tmp_path / "site-packages").mkdir()
        patch.setattr(environment, "_ROOT", tmp_path.resolve() / "site-packages")
        assert told() == __version__
    environment.code_version.cache_clear()


def test_the_machine_is_told_by_kind_without_names():
    told = environment.machine_kind()
    assert " core" in told
    assert platform.system() in told
    for name in (platform.node(), getpass.getuser()):
        assert name not in told.replace(",", " ").split()
