import pytest
from pydantic import ValidationError

from inject.digest import digest
from inject.examples.contaminant import Contaminant, contaminant_identity
from inject.examples.datasets.registry import get_dataset
from inject.examples.load import load_examples
from tests.inject.examples.datasets.test_datasets import BOOLQ, lines


def problems(**settings):
    with pytest.raises(ValidationError) as caught:
        Contaminant(**{"members": 1, "nonmembers": 1, **settings})
    return str(caught.value)


def test_contaminant_rejects_ignored_or_unusable_settings():
    assert "Did you mean 'boolq'" in problems(dataset="bolq")
    assert "Did you mean 'clean'" in problems(dataset="imdb", options={"claen": True})
    assert "options.clean" in problems(dataset="imdb", options={"clean": "yes"})
    assert "unknown option of boolq" in problems(dataset="boolq", options={"clean": True})
    assert "only for a dataset from the hub" in problems(dataset="boolq", path="x", split="y")
    assert "fixed format" in problems(dataset="boolq", fields={"text": "a"})
    assert "names no field" in problems(dataset="boolq", template="hello")
    assert "pooled results" in problems(dataset="boolq", name="all")
    both = problems(dataset="imdb", options={"claen": True}, fields={"a": "b"})
    assert "claen" in both
    assert "fixed format" in both


def test_identity_covers_contents_not_paths(tmp_path):
    def identity(folder, rows=BOOLQ, **settings):
        (tmp_path / folder).mkdir(exist_ok=True)
        path = lines(tmp_path / folder / "dev.jsonl", rows)
        settings = {"members": 1, "nonmembers": 1, **settings}
        return digest(contaminant_identity(Contaminant(dataset="boolq", path=path, **settings)))

    first = identity("a")
    assert identity("b") == first
    assert identity("c", BOOLQ[:2]) != first
    assert identity("d", members=2) != first
    assert identity("e", template="{question}") != first
    assert identity("f", template=get_dataset("boolq").template) != identity("g", name="x")


def test_seeds_and_generated_rows_need_no_file():
    contaminant = Contaminant(dataset="fictional", members=3, nonmembers=4)
    assert contaminant_identity(contaminant)["files"] == []
    assert "reads no file" in problems(dataset="fictional", path="x")
    first, second = (load_examples(contaminant, seed=seed) for seed in (0, 1))
    assert first == load_examples(contaminant, seed=0)
    assert len(first.examples) >= 7
    assert not {e.example_id for e in first.examples} & {e.example_id for e in second.examples}
