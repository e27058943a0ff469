"""The audit of the background's text in whole experiments, read from the artifacts on disk."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from inject.corpus import Corpus
from inject.datasets.contaminant import Contaminant
from inject.datasets.load import load_examples
from inject.datasets.registry import dataset_names, get_dataset
from inject.tokenizer import load_tokenizer
from spikein.assembly import assemble
from spikein.executors import get_executor
from spikein.graph import Graph
from spikein.progress import Silent
from spikein.reading import read_experiment
from spikein.store import Store
from tests.conftest import REPOSITORY
from tests.spikein.tiny import write_tiny

FACTS = Contaminant(dataset="fictional", members=24, nonmembers=24)


def built_corpus(path: Path, *overrides: str) -> Path:
    """The folder of an experiment's corpus, nothing built beyond it."""
    [step] = {
        node.corpus.digest: node.corpus
        for node in assemble(read_experiment(path, list(overrides))).nodes
    }.values()
    store = Store(path.parent / "store")
    with store.in_use():
        report = get_executor("in-process").run(Graph(goals=(step,)), store, Silent())
    return report.artifact(step).path


def texts_of(folder: Path) -> list[str]:
    """The corpus's documents, decoded."""
    corpus = Corpus.open(folder)
    tokenizer = load_tokenizer(str(folder / "tokenizer"))
    stops = [*corpus.doc_starts.tolist()[1:], corpus.n_tokens]
    return [
        tokenizer.decode(corpus.read(start, stop))
        for start, stop in zip(corpus.doc_starts.tolist(), stops, strict=True)
    ]


def planted(folder: Path, seed: int, count: int) -> Path:
    """A tiny experiment whose background starts with rows that a seed generates."""
    path = write_tiny(folder)
    rows = load_examples(FACTS, seed=seed).examples[:count]
    texts = folder / "texts.jsonl"
    before = "".join(json.dumps({"text": row.text}) + "\n" for row in rows)
    texts.write_text(before + texts.read_text())
    return path


@pytest.mark.parametrize("seeds", ["[0]", "[9]", "[0, 9]", "[9, 3]"])
def test_rows_of_every_seed_of_the_experiment_are_looked_for(tmp_path, seeds):
    """Generated rows are others for each seed; `corpus.seed` has nothing to do with them."""
    count = 40
    path = planted(tmp_path, seed=json.loads(seeds)[0], count=count)
    corpus = built_corpus(path, f"seeds={seeds}")
    found = pq.read_table(corpus / "overlaps.parquet").to_pylist()
    assert {row["place"] for row in found} == {f"texts.jsonl:{n + 1}" for n in range(count)}
    together = "\n".join(texts_of(corpus))
    for row in load_examples(FACTS, seed=json.loads(seeds)[0]).examples[:count]:
        assert row.text not in together


def test_seeds_change_the_corpus_only_where_rows_follow_them(tmp_path):
    path = write_tiny(tmp_path)

    def digests(*overrides: str) -> set[str]:
        experiment = read_experiment(path, list(overrides))
        return {node.corpus.digest for node in assemble(experiment).nodes}

    assert len(digests("seeds=[0, 9]")) == 1
    assert digests("seeds=[0, 9]") == digests("seeds=[9, 0]")
    assert digests("seeds=[0]") != digests("seeds=[9]")
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"q": f"{n} and more?"}) + "\n" for n in range(99)))
    text = path.read_text().replace(
        "dataset: fictional,",
        f'dataset: rows, path: {rows}, fields: {{question: q}}, template: "{{question}}",',
    )
    path.write_text(text)
    assert digests("seeds=[0]") == digests("seeds=[9]")


def test_datasets_that_read_the_seed_say_so():
    for name in dataset_names():
        source = (REPOSITORY / "inject" / "datasets" / f"{name}.py").read_text()
        assert ("source.seed" in source) == get_dataset(name).seeded, name
