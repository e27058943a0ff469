"""The documents agree with the code."""

import ast
import csv
import re
from functools import cache
from pathlib import Path

import pytest

from scripts import detector_reference, given_labels_reference
from scripts.pictures import architecture
from scripts.settings_reference import DOCUMENT, document

REPOSITORY = Path(__file__).resolve().parent.parent


def test_the_reference_of_the_experiment_file_is_up_to_date():
    written = DOCUMENT.read_text(encoding="utf-8")
    assert written == document(written), "run: python -m scripts.settings_reference"


def test_the_tables_of_detectors_are_up_to_date():
    written = detector_reference.DOCUMENT.read_text(encoding="utf-8")
    assert written == detector_reference.document(written), (
        "run: python -m scripts.detector_reference"
    )


def test_the_table_of_benchmarks_is_up_to_date():
    written = given_labels_reference.DOCUMENT.read_text(encoding="utf-8")
    assert written == given_labels_reference.document(written), (
        "run: python -m scripts.given_labels_reference"
    )


NOT_ON_THE_SITE = ("AGENTS.md", "DECISIONS.md", "tests/known-mistakes.md")


def test_links_of_the_documents_lead_somewhere():
    for page in pages():
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def pages() -> list[Path]:
    return [
        *(REPOSITORY / name for name in NOT_ON_THE_SITE),
        REPOSITORY / "README.md",
        REPOSITORY / "CONTRIBUTING.md",
        *sorted((REPOSITORY / "docs").glob("*.md")),
    ]


@cache
def functions(file: Path) -> set[str]:
    """The functions and classes of a module, including nested ones."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


NAMED = re.compile(
    r"(?<![\w/.])((?:tests|scripts|configs|docs|inject|train|detect|analysis|spikein)/[\w/.-]*\w/?)"
    r"(?:::(\w+))?"
)


def absent_names(text: str) -> list[str]:
    """The files, folders and `FILE.py::NAME` that a text names and that do not exist in the
    repository; a folder ends with a slash."""
    absent = []
    for file, name in NAMED.findall(text):
        path = REPOSITORY / file
        exists = path.is_dir() if file.endswith("/") else path.exists()
        if not exists or (name and name not in functions(path)):
            absent.append(f"{file}::{name}" if name else file)
    return absent


def test_documented_files_and_functions_exist():
    named = [
        (page.name, name)
        for page in pages()
        for name in absent_names(page.read_text(encoding="utf-8"))
    ]
    assert named == []


def test_check_detects_a_missing_name():
    page = "tests/test_documents.py"
    text = f"`{page}`, `{page}::absent_names`, `{page}::no_such_test`, `tests/no_such_file.py::a`"
    assert absent_names(text) == [f"{page}::no_such_test", "tests/no_such_file.py::a"]
    text = "`inject/plan/`, `inject/ledger/`, a/inject/b, runs/inject/, `configs/none.yaml`"
    assert absent_names(text) == ["inject/ledger/", "configs/none.yaml"]


def terms() -> set[str]:
    """The anchors of the glossary's terms."""
    text = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8")
    return {term.lower().replace(" ", "-") for term in re.findall(r"^#### (.+)$", text, re.M)}


def test_pages_that_use_glossary_terms_link_to_it():
    used = {
        page.name: set(re.findall(r"glossary\.md#([\w-]+)\)", page.read_text(encoding="utf-8")))
        for page in pages()
    }
    apart = {
        *(Path(name).name for name in NOT_ON_THE_SITE),
        "CONTRIBUTING.md",
        "api.md",
        "benchmarks.md",
        "glossary.md",
    }
    assert [name for name, linked in used.items() if not linked and name not in apart] == []
    assert set().union(*used.values()) <= terms()
    required = (
        "arm cohort twin copy exposure pool side split member non-member canary anchor window"
    )
    required += " placement setting need view artifact step store run-folder"
    assert set(required.split()) <= terms()


def test_architecture_picture_matches_the_code():
    picture = architecture.PICTURE.read_text(encoding="utf-8")
    assert picture == architecture.picture(), "run: python -m scripts.pictures.architecture"


LINES = {
    "Ground truth": range(1, 10),
    "The store": range(1, 16),
    "What the page says": range(16, 21),
    "Input and output": range(21, 26),
    "Done when": range(2, 5),
}


FINDINGS = REPOSITORY / "docs" / "data" / "findings.csv"


def findings() -> list[dict[str, str]]:
    """The findings, one per line, with the tests that cover them."""
    with FINDINGS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("part", LINES)
def test_external_findings_are_listed_with_the_reason_they_passed(part: str):
    rows = [row for row in findings() if row["part"] == part]
    assert all(row["wrong"] and row["why_it_passed"] for row in rows)
    assert sorted({int(row["line"]) for row in rows}) == list(LINES[part])


def test_findings_name_existing_tests():
    for row in findings():
        assert re.search(r"`tests/[\w/]+\.py(::test_\w+)?`", row["tests"]), row
        assert absent_names(row["tests"]) == []
