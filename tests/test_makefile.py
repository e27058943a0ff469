"""The Makefile's installations and commands, by `make --dry-run`."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
IMPORTED_AS = {"scikit-learn": "sklearn", "resvg-py": "resvg_py"}
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def test_requirements_are_imported_by_the_packages():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    packages = ("inject", "train", "detect", "analysis", "spikein")
    files = [path for package in packages for path in (REPOSITORY / package).rglob("*.py")]
    text = "\n".join(path.read_text() for path in files)
    imported = set(re.findall(r"^ *(?:from|import) ([\w.]+)", text, flags=re.MULTILINE))
    imported |= {name.partition(".")[0] for name in imported}
    required = {re.split(r"[^\w.-]", requirement)[0] for requirement in project["dependencies"]}
    assert {IMPORTED_AS.get(name, name) for name in required} <= imported


def commands(target: str) -> str:
    """Return the commands that a target would run in a fresh clone."""
    # `make test` passes its own options on to every make below it.
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "--dry-run", "--always-make", target, "WORKERS=2"],
        cwd=REPOSITORY,
        env=outside,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@needs_make
def test_quickstart_installs_only_runtime_requirements():
    done = commands("quickstart")
    assert "--editable .\n" in done
    assert "[dev]" not in done
    assert done.rstrip().endswith("spikein run configs/quickstart.yaml")


@needs_make
@pytest.mark.parametrize("target", ["test", "test-quick", "lint"])
def test_test_and_tool_targets_add_development_requirements(target):
    done = commands(target)
    assert done.index("--editable .\n") < done.index("--editable '.[dev]'\n")


@needs_make
def test_the_benchmark_is_built_with_a_secret_seed_by_one_command():
    done = commands("bench-bundle")
    assert "randbits(62)" in done
    assert done.index('run bench "seeds=[0,$SECRET]"') < done.index("--hold-out $SECRET")


@needs_make
def test_the_quick_tests_run_on_all_cores():
    last = commands("test-quick").rstrip().splitlines()[-1]
    assert " -n 2 " in last
    assert 'not slow and not thorough"' in last
