"""The how-to pages work: their code blocks are run, experiments with smaller models."""

from pathlib import Path

import pytest

from tests.how_to import REPOSITORY, Reader, blocks, commands, not_shown

PAGES = ("add-a-dataset.md", "evaluate-a-detector.md", "executors.md", "unlearning.md")
# Pages that end in their results, not in a test.
WALKS = ("score-any-model.md", "tutorial.md")
SMALL = {"shape: llama-1m": "shape: ../shape.yaml", "base: {tokens: 20_000": "base: {tokens: 8_000"}
LIGHTER = {
    "tutorial.md": {
        **SMALL,
        "tokens: 150_000": "tokens: 30_000",
        "bers: 90,": "bers: 18,",
        "90}": "18}",
    },
    "evaluate-a-detector.md": {
        **SMALL,
        "tokens: 100_000": "tokens: 50_000",
        "bers: 80": "bers: 40",
    },
    "add-a-dataset.md": {
        **SMALL,
        "tokens: 60_000": "tokens: 20_000",
        "bers: 60": "bers: 20",
        'ber": 60': 'ber": 20',
    },
    "executors.md": {"shape: llama-1m": "shape: ../shape.yaml"},
}
"""Replacements that halve the time of a page; what its commands print does not depend on them."""
SHAPE = """
architecture: llama
hidden: 64
layers: 2
heads: 4
intermediate: 128
context: 512
tie_embeddings: true
init_std: 0.05
"""
"""A tenth of the pages' model."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PAGES, *WALKS])
def test_page_runs(name: str, tmp_path: Path, tiny_model_path: Path):
    page = (REPOSITORY / "docs" / name).read_text(encoding="utf-8")
    for full, light in LIGHTER.get(name, {}).items():
        assert full in page
        page = page.replace(full, light)
    (tmp_path / "shape.yaml").write_text(SHAPE)
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
