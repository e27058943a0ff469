"""An unready release is rejected before it is built; a ready one is complete."""

import subprocess
import tomllib
from pathlib import Path

import pytest

from scripts.release.__main__ import PLACEHOLDER, STEPS, SUMS, changes, main

REPOSITORY = Path(__file__).resolve().parent.parent
FILES = {
    "pyproject.toml": '[project]\nversion = "0.2.0"\n[project.urls]\n'
    'Repository = "https://example.org/spikein"\n',
    "CHANGELOG.md": "# Changelog\n\n## 0.2.0 (2027-01-02)\n\n- New.\n\n## 0.1.0 (2026-11-30)\n",
    "CITATION.cff": 'cff-version: 1.2.0\nversion: 0.2.0\ndate-released: "2027-01-02"\n',
    ".gitignore": "/dist/\n",
}


def git(folder: Path, *arguments: str) -> None:
    own = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A clone whose release is ready, with a built wheel."""
    folder = tmp_path_factory.mktemp("clone")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "All")
    (folder / "dist").mkdir()
    for name in ("spikein-0.2.0-py3-none-any.whl", "spikein-0.2.0.tar.gz"):
        (folder / "dist" / name).write_text(name)
    return folder


def test_version_is_the_same_everywhere():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    newest, _, notes = changes((REPOSITORY / "CHANGELOG.md").read_text("utf-8"))
    assert newest == project["version"]
    assert f"\nversion: {newest}\n" in (REPOSITORY / "CITATION.cff").read_text("utf-8")
    assert notes.startswith("A real language model")


def test_repository_address_has_one_placeholder():
    """Or one address, once it exists: the notebook installs from pyproject.toml's address."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    place = project["urls"]["Repository"]
    account = place.removeprefix("https://github.com/")
    assert all(url.startswith(place) for url in project["urls"].values())
    notebook = (REPOSITORY / "docs/notebooks/judge-a-detector.ipynb").read_text("utf-8")
    assert f"git+{place}" in notebook
    colab = "https://colab.research.google.com/github/"
    for text in (notebook, (REPOSITORY / "README.md").read_text("utf-8")):
        assert text.count(colab) == text.count(f"{colab}{account}/blob/main/docs/notebooks/") == 1


def test_release_is_checked_and_has_checksums(clone: Path, capsys):
    assert main(["tree", "version", "checksums"], clone) == 0
    assert "version: 0.2.0 of 2027-01-02" in capsys.readouterr().out
    done = subprocess.run(["sha256sum", "--check", SUMS], cwd=clone / "dist", check=False)
    assert done.returncode == 0
    (clone / "dist" / "spikein-0.2.0.tar.gz").write_text("another")
    done = subprocess.run(["sha256sum", "--check", SUMS], cwd=clone / "dist", check=False)
    assert done.returncode != 0


def test_dry_run_checks_lists_remaining_steps_and_changes_nothing(clone: Path, tmp_path, capsys):
    assert main(["--dry-run", "--out", str(tmp_path / "new")], clone) == 0
    output = capsys.readouterr().out
    assert [line.partition(":")[0] for line in output.splitlines() if "…" not in line] == [*STEPS]
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("CHANGELOG.md", "(2027-01-02)", "(unreleased)", ["CHANGELOG.md", "YYYY-MM-DD"]),
        ("CHANGELOG.md", "## 0.2.0", "## 0.3.0", ["begins with 0.3.0", "changes of 0.2.0"]),
        ("CHANGELOG.md", "2027-01-02", "2027-13-02", ["2027-13-02", "YYYY-MM-DD"]),
        ("CHANGELOG.md", "## ", "#", ["CHANGELOG.md", "## VERSION (YYYY-MM-DD)"]),
        ("CITATION.cff", "0.2.0", "0.1.0", ["CITATION.cff", "`version: 0.2.0`"]),
        ("CITATION.cff", "2027-01-02", "2026-01-02", ['`date-released: "2027-01-02"`']),
        ("pyproject.toml", "example.org", PLACEHOLDER, [PLACEHOLDER, "git grep"]),
    ],
)
def test_unready_release_names_the_file(clone: Path, capsys, file, old, new, message):
    try:
        (clone / file).write_text(FILES[file].replace(old, new), encoding="utf-8")
        assert main(["version"], clone) == 2
        assert main(["tree"], clone) == 2
    finally:
        (clone / file).write_text(FILES[file], encoding="utf-8")
    output = capsys.readouterr().err
    assert all(words in output for words in [*message, "Nothing was uploaded", f" M {file}"]), (
        output
    )


def test_tagged_version_is_rejected(clone: Path, capsys):
    git(clone, "tag", "v0.2.0")
    try:
        assert main(["version"], clone) == 2
    finally:
        git(clone, "tag", "--delete", "v0.2.0")
    assert "the tag v0.2.0 exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["versio"], ["versio", "Did you mean 'version'", "checksums"]),
        (["build"], ["dist: is not empty", "--out"]),
        (["build", "--out", "CITATION.cff"], ["CITATION.cff: is a file"]),
        (["trial", "--out", "absent"], ["contains 0 files spikein-*.whl", "scripts.release build"]),
    ],
)
def test_impossible_release_is_rejected(clone: Path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(clone)
    assert main(arguments, clone) == 2
    output = capsys.readouterr().err
    assert all(words in output for words in message), output
