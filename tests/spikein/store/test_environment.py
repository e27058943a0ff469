"""The origin in a manifest: the code's commit, the machine's kind, no names."""

import getpass
import platform
import subprocess

from spikein import __version__
from spikein.store import environment


def test_a_clone_is_named_by_its_commit_and_its_changes(tmp_path, monkeypatch):
    def git(*arguments: str) -> str:
        name = ["-c", "user.name=n", "-c", "user.email=e@x"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *name, *arguments],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    def current_version() -> str:
        environment.code_version.cache_clear()
        return environment.code_version()

    git("init", "-q")
    (tmp_path / "code.py").write_text("1\n")
    git("add", ".")
    git("commit", "-qm", "first")
    version = f"{__version__}, commit {git('rev-parse', '--short=12', 'HEAD')}"
    with monkeypatch.context() as patch:
        patch.setattr(environment, "_ROOT", tmp_path.resolve())
        (tmp_path / "note").write_text("new next to the code")
        assert current_version() == version
        (tmp_path / "code.py").write_text("2\n")
        assert current_version() == f"{version} with changes"
        # The commit of an enclosing clone of another project is not the code's.
        (tmp_path / "site-packages").mkdir()
        patch.setattr(environment, "_ROOT", tmp_path.resolve() / "site-packages")
        assert current_version() == __version__
    environment.code_version.cache_clear()


def test_the_machine_is_described_by_kind_without_names():
    description = environment.machine_kind()
    assert " core" in description
    assert platform.system() in description
    for name in (platform.node(), getpass.getuser()):
        assert name not in description.replace(",", " ").split()
