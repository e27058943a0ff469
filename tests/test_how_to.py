"""The how-to pages work: their code blocks are run, two experiments with fewer rows and tokens."""

from pathlib import Path

import pytest

from tests.how_to import REPOSITORY, Reader, blocks, commands, not_shown

PAGES = ("add-a-dataset.md", "evaluate-a-detector.md", "executors.md", "unlearning.md")
# Pages that end in their results, not in a test.
WALKS = ("score-any-model.md", "tutorial.md")
LIGHTER = {
    "tutorial.md": {"tokens: 150_000": "tokens: 50_000", "bers: 90,": "bers: 30,", "90}": "30}"},
    "evaluate-a-detector.md": {"tokens: 100_000": "tokens: 60_000", "bers: 80": "bers: 50"},
}
"""Replacements that halve the time of a page; what its commands print does not depend on them."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PAGES, *WALKS])
def test_page_runs(name: str, tmp_path: Path, tiny_model_path: Path):
    page = (REPOSITORY / "docs" / name).read_text(encoding="utf-8")
    for full, light in LIGHTER.get(name, {}).items():
        assert full in page
        page = page.replace(full, light)
    Reader(tmp_path).follow(page, tiny_model_path)


@pytest.mark.parametrize("name", PAGES)
def test_pages_end_with_a_test(name: str):
    page = (REPOSITORY / "docs" / name).read_text(encoding="utf-8")
    page_blocks = blocks(page)
    assert {block.folder for block in page_blocks} <= {"yours", "repository"}
    assert any(block.title and Path(block.title).name.startswith("test_") for block in page_blocks)
    last = commands(page_blocks[-1].text)[-1]
    assert last.line.startswith("pytest")
    assert any("passed" in line for line in last.shown)


def test_page_is_split_into_blocks():
    page = (
        '```python title="a/b.py"\nx = 1\n```\n\nwords\n\n```python\nonly to read\n```\n'
        "<!-- folder: repository -->\n```console\n$ echo one\none\n\n$ echo two\n```\n"
    )
    assert blocks(page) == [
        ("yours", "a/b.py", "x = 1\n"),
        ("repository", None, "$ echo one\none\n\n$ echo two\n"),
    ]
    assert commands(blocks(page)[1].text) == [("echo one", ("one",)), ("echo two", ())]


def test_documented_output_is_compared():
    output = "min_k   0.84  [0.81, 0.87]\n3 passed in 0.02s\n"
    assert not_shown(("min_k 0.84 …", "3 passed…"), output) is None
    assert not_shown(("min_k … [0.81, 0.87]",), output) is None
    assert not_shown(("4 passed",), output) == "4 passed"
    assert not_shown(("3 passed", "min_k"), output) == "min_k"
