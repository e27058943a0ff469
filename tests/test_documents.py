"""The documents say what the code does."""

import ast
import re
from pathlib import Path

import pytest

from scripts.settings_reference import DOCUMENT, document

REPOSITORY = Path(__file__).resolve().parent.parent


def test_the_reference_of_the_experiment_file_is_up_to_date():
    written = DOCUMENT.read_text(encoding="utf-8")
    assert written == document(written), "run: python -m scripts.settings_reference"


def test_links_of_the_documents_lead_somewhere():
    for page in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def pages() -> list[Path]:
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def absent_tests(text: str) -> list[str]:
    """The tests that a text names as `tests/….py` or `tests/….py::name` and that are not there."""
    absent = []
    for file, name in re.findall(r"(tests/[\w/.-]+\.py)(?:::(\w*))?", text):
        path = REPOSITORY / file
        if not path.is_file() or (name and name not in functions(path)):
            absent.append(f"{file}::{name}" if name else file)
    return absent


def test_tests_named_in_the_documents_exist():
    named = [
        (page.name, test) for page in pages() for test in absent_tests(page.read_text("utf-8"))
    ]
    assert named == []


def test_a_test_that_is_not_there_would_be_found():
    here = "tests/test_documents.py"
    text = f"`{here}`, `{here}::absent_tests`, `{here}::no_such_test`, `tests/no_such_file.py::a`"
    assert absent_tests(text) == [f"{here}::no_such_test", "tests/no_such_file.py::a"]


LINES = {
    "Ground truth": range(1, 10),
    "The store": range(1, 16),
    "What the page says": range(16, 21),
    "Input and output": range(21, 26),
    "Done when": range(2, 5),
}


@pytest.mark.parametrize("part", LINES)
def test_every_line_that_outsiders_found_has_tests_in_the_log(part: str):
    log = (REPOSITORY / "docs" / "log.md").read_text(encoding="utf-8")
    table = log.split(f"\n### {part}\n")[1].split("\n### ")[0]
    found = set()
    for row in re.findall(r"^\| *(\d+) *\|(.+)\|$", table, re.MULTILINE):
        number, (wrong, passed, tests) = int(row[0]), (cell.strip() for cell in row[1].split("|"))
        assert wrong, number
        assert passed, number
        assert re.search(r"`tests/[\w/]+\.py(::test_\w+)?`", tests), number
        found.add(number)
    assert sorted(found) == list(LINES[part])
