"""The rules of the house that a machine can check."""

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
ORDER = ["inject", "train", "detect", "analysis", "spikein"]
FILES = [path for package in ORDER for path in sorted((REPOSITORY / package).rglob("*.py"))]


def imported_packages(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names & set(ORDER)


@pytest.mark.parametrize("package", ORDER)
def test_imports_run_downward(package):
    allowed = set(ORDER[: ORDER.index(package) + 1])
    for path in (REPOSITORY / package).rglob("*.py"):
        assert imported_packages(path) <= allowed, path


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_module_says_what_it_does_and_is_short(path):
    source = path.read_text()
    assert ast.get_docstring(ast.parse(source)), "no docstring"
    assert len(source.splitlines()) <= 400


def test_nothing_unsafe_is_loaded():
    forbidden = re.compile(
        r"pickle\.load|yaml\.load\(|torch\.load\(|trust_remote_code=True|eval\(|seed=None"
    )
    for path in FILES:
        found = [
            match
            for match in forbidden.finditer(path.read_text())
            # `model.eval()` is torch's way to switch dropout off.
            if not (match.group() == "eval(" and path.read_text()[match.start() - 1] == ".")
        ]
        assert not found, path


def test_installed_packages_are_the_five():
    import tomllib

    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    include = settings["tool"]["setuptools"]["packages"]["find"]["include"]
    assert {name.rstrip("*") for name in include} == set(ORDER)
