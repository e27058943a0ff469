"""The wheel contains exactly the packages' files, and works from an empty folder."""

import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

from inject.source_digest import source_digest
from scripts.release.wheel import build, install, run, try_out
from tests.how_to import copy_repository
from tests.test_house import ORDER

REPOSITORY = Path(__file__).resolve().parent.parent
VERSION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]["version"]
SMALL = (
    "corpus={tokens: 12_000, sources: [{kind: docstrings, packages: [pydantic]}]}",
    "base.tokens=8_000",
    "contaminants=[{dataset: fictional, members: 12, nonmembers: 12}]",
    "model.tokenizer.vocab_size=300",
    "train.context=64",
    "sweep=null",
    "detect.detectors=[loss]",
    "analysis={replicates: 100, min_members: 5, task_accuracy: false}",
    "executor=null",
    "copies={fixed: 1}",
)
"""Settings that reduce the quickstart to seconds."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    copy_repository(folder / "clone")
    (folder / "out").mkdir()
    return build(folder / "clone", folder / "out")


def files_in(folder: Path) -> set[str]:
    """The files below a folder, except Python's compiled ones."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }


def sources() -> set[str]:
    """The expected files of the wheel: those of the packages, and `configs/`."""
    shipped = {f"inject/configs/{name}" for name in files_in(REPOSITORY / "configs")}
    return shipped.union(
        f"{folder}/{name}" for folder in ORDER for name in files_in(REPOSITORY / folder)
    )


@pytest.mark.slow
def test_wheel_contains_exactly_the_package_and_config_files(wheel: Path):
    """No test, no document, no script; the source distribution can build it."""
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        (about,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        metadata = message_from_string(opened.read(f"{about}/METADATA").decode())
    assert {name for name in names if not name.startswith(about)} == sources()
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"Changelog", "Repository"} <= {
        url.partition(",")[0] for url in metadata.get_all("Project-URL")
    }
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# spikein")
    assert {"ray", "slurm", "tagger"} <= set(metadata.get_all("Provides-Extra"))


@pytest.mark.slow
def test_wheel_works_in_an_empty_folder_without_the_clone(wheel: Path, tmp_path: Path):
    spikein = install(wheel, tmp_path / "environment", constraints=None)
    before = files_in(tmp_path / "environment")
    (tmp_path / "empty").mkdir()
    outputs = iter(try_out(spikein, tmp_path / "empty", SMALL))
    assert next(outputs).split() == ["spikein", VERSION]
    assert "min-k-table3" in next(outputs)
    assert "mine.yaml" in next(outputs)
    assert "mine.py" in next(outputs)
    assert "nothing wrong was found" in next(outputs)
    assert "Nothing was run" in next(outputs)
    assert "runs/quickstart/1/report.html" in next(outputs)
    assert "mine.score" in next(outputs)
    assert "Scores of 2 rows" in next(outputs)
    assert "boolq" in next(outputs)
    assert next(outputs, None) is None
    # Its code equals the clone's, so that both can use one store; it writes no other files.
    roots = ("spikein.runs.publication", "train.training_step")
    ask = (
        "import inject.source_digest as digest, inject.builtin_files as shipped;"
        f"print(digest.source_digest({roots}), shipped.CONFIGS)"
    )
    python = spikein.with_name("python")
    digest, configs = run(python, "-I", "-c", ask, folder=tmp_path).split()
    assert digest == source_digest(roots)
    assert Path(configs).is_relative_to(tmp_path / "environment")
    assert files_in(tmp_path / "environment") == before
