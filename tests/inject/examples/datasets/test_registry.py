"""Datasets of the user's: by file, by entry point, and messages about those that fail."""

import textwrap

import pytest

from inject.errors import InputError
from inject.examples.contaminant import Contaminant, contaminant_identity
from inject.examples.datasets.registry import (
    built_in_names,
    dataset_label,
    dataset_table,
    find_dataset,
)
from inject.examples.load import load_examples
from tests.inject.plugins.packages import forget, install

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


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield tmp_path / "site"
    forget("river_data")


def offer(site, **names):
    install(
        site,
        "river-data",
        modules={"river_data/__init__.py": CODE},
        entry_points={"spikein.datasets": names or {"rivers": "river_data:RIVERS"}},
    )


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


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dataset": "mine.py:RIVER"}, r"no 'RIVER'.*RIVERS"),
        ({"dataset": "mine.py:NOTHING"}, "not a dataset"),
        ({"options": {"wrod": "x"}}, "Did you mean 'word'"),
    ],
)
def test_what_cannot_be_used_is_named(file, changes, words):
    with pytest.raises(ValueError, match=words):
        contaminant(**changes)


def test_a_dataset_of_a_package_is_found_listed_and_suggested(site):
    offer(site, rivers="river_data:RIVERS", boolq="river_data:RIVERS")
    found = find_dataset("rivers")
    assert (found.dataset.name, found.origin) == ("rivers", "river-data 1.0")
    known, [warning] = dataset_table()
    assert "dataset boolq (river-data 1.0): the name is taken" in warning
    lines = {name: dataset.origin for name, dataset in known.items()}
    assert lines["rivers"] == "river-data 1.0"
    assert {lines[name] for name in built_in_names()} == {"spikein"}
    with pytest.raises(InputError, match=r"Did you mean 'rivers'"):
        find_dataset("river")
