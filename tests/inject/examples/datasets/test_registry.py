"""Datasets of the user's, by file; packages offer them as they offer sources."""

import textwrap

import pytest

from inject.examples.contaminant import Contaminant, contaminant_identity
from inject.examples.datasets.registry import (
    dataset_label,
)
from inject.examples.load import load_examples

CODE = """
    from inject.examples.datasets.source import Dataset
    from inject.examples.example import Row
    from inject.settings import Settings


    class Options(Settings):
        word: str = "river"


    def rows(source):
        for number in range(40):
            word = source.options["word"]
            fields = {"text": f"the {word} number {number} runs to the sea and back again"}
            yield Row(fields=fields, source_id=str(number))


    RIVERS = Dataset(
        name="rivers",
        summary="Rivers.",
        template="{text}",
        rows=rows,
        endless=True,
        options=Options,
    )
    NOTHING = 3
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent(CODE))
    monkeypatch.chdir(tmp_path)
    return path


def contaminant(**changes):
    return Contaminant.model_validate(
        {"dataset": "mine.py:RIVERS", "members": 5, "nonmembers": 5, **changes}
    )


def test_a_dataset_in_a_file_is_read_under_its_own_name(file):
    asked = contaminant(options={"word": "train"})
    assert asked.name == dataset_label("mine.py:RIVERS") == "RIVERS"
    examples = load_examples(asked, seed=0).examples
    assert examples[0].text == "the train number 0 runs to the sea and back again"
    assert {one.dataset for one in examples} == {"RIVERS"}


def test_its_identity_follows_its_source_and_no_folder(file, tmp_path, monkeypatch):
    before = contaminant_identity(contaminant())
    assert str(tmp_path) not in str(before)
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "mine.py").write_text(file.read_text())
    monkeypatch.chdir(other)
    assert contaminant_identity(contaminant()) == before
    (other / "mine.py").write_text(file.read_text().replace("sea", "lake"))
    assert contaminant_identity(contaminant()) != before
