"""The audit of the background's text in whole experiments, read from the artifacts on disk."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from inject.corpus.corpus import Corpus
from inject.corpus.tokenizer import encode_texts, load_tokenizer
from inject.errors import InputError
from inject.examples.contaminant import Contaminant
from inject.examples.datasets.registry import built_in_names, get_dataset
from inject.examples.load import load_examples
from tests.conftest import REPOSITORY, make_texts
from tests.inject.formats.readers import write_megatron
from tests.spikein.tiny import LIGHT, build, graph_of, write_tiny

FACTS = Contaminant(dataset="fictional", members=24, nonmembers=24)


def built_corpus(folder: Path, *overrides: str) -> Path:
    """The folder of an experiment's corpus, nothing built beyond it."""
    return build(folder, graph_of(folder, *overrides).nodes[0].corpus)[0].path


def texts_of(folder: Path) -> list[str]:
    """The corpus's documents, decoded."""
    corpus = Corpus.open(folder)
    tokenizer = load_tokenizer(str(folder / "tokenizer"))
    stops = [*corpus.doc_starts.tolist()[1:], corpus.n_tokens]
    return [
        tokenizer.decode(corpus.read(start, stop))
        for start, stop in zip(corpus.doc_starts.tolist(), stops, strict=True)
    ]


def plant(folder: Path, seed: int, count: int) -> None:
    """A tiny experiment whose background starts with rows that a seed generates."""
    write_tiny(folder)
    rows = load_examples(FACTS, seed=seed).examples[:count]
    texts = folder / "texts.jsonl"
    before = "".join(json.dumps({"text": row.text}) + "\n" for row in rows)
    texts.write_text(before + texts.read_text())


@pytest.mark.parametrize(("seed", "seeds"), [(0, "[0]"), (3, "[9, 3]")])
def test_rows_of_all_seeds_of_the_experiment_are_searched(tmp_path, seed, seeds):
    """Generated rows differ by seed; `corpus.seed` does not affect them."""
    count = 40
    plant(tmp_path, seed=seed, count=count)
    corpus = built_corpus(tmp_path, f"seeds={seeds}")
    overlaps = pq.read_table(corpus / "overlaps.parquet").to_pylist()
    assert {row["place"] for row in overlaps} == {f"texts.jsonl:{n + 1}" for n in range(count)}
    together = "\n".join(texts_of(corpus))
    for row in load_examples(FACTS, seed=seed).examples[:count]:
        assert row.text not in together


def write_imported(folder: Path, tokenizer, texts: list[str]) -> None:
    """A tiny experiment whose background is these texts as Megatron files."""
    path = write_tiny(folder)
    tokenizer.save_pretrained(folder / "tokenizer")
    ids = [[*encode_texts(tokenizer, [text])[0].tolist(), 0] for text in texts]
    write_megatron(folder / "data", [[document] for document in ids], code=8)
    text = path.read_text()
    sources = text[text.index("  sources:") : text.index("contaminants:")]
    text = text.replace(sources, f"  imported: {{kind: megatron, path: {folder}/data}}\n")
    path.write_text(text.replace("{vocab_size: 300}", f"{folder}/tokenizer"))


def test_an_imported_corpus_is_audited_like_any_background(tmp_path, tiny_tokenizer):
    """It contains twenty rows with one word changed: none of their tokens is in the stream."""
    rows = [row.text for row in load_examples(FACTS, seed=0).examples[:20]]
    changed = []
    for row in rows:
        words = row.split(" ")
        words[len(words) // 2] = "otherwise"
        changed.append(" ".join(words))
    texts = make_texts(900, seed=5, words=60)
    mixed = [text for pair in zip(texts, changed, strict=False) for text in pair] + texts[20:]
    write_imported(tmp_path, tiny_tokenizer, mixed)
    folder = built_corpus(tmp_path)
    overlaps = pq.read_table(folder / "overlaps.parquet").to_pylist()
    assert {row["place"].split(",")[0] for row in overlaps} == {
        f"document {2 * number + 1}" for number in range(20)
    }
    assert Corpus.open(folder).n_tokens == 44_000
    decoded = texts_of(folder)
    assert [text.removesuffix("<|endoftext|>") for text in decoded[:200]] == texts[:200]
    together = "\n".join(decoded)
    assert not any(text in together for text in changed)

    with pytest.raises(InputError, match="20 documents of the background overlap"):
        built_corpus(tmp_path, "audit.drop=stop")
    undropped = built_corpus(tmp_path, "audit.drop=false")
    assert "\n".join(texts_of(undropped)).count("otherwise") == 20


def test_seeds_change_the_corpus_only_if_rows_depend_on_them(tmp_path):
    path = write_tiny(tmp_path)

    def digests(*overrides: str) -> set[str]:
        return {node.corpus.digest for node in graph_of(tmp_path, *overrides).nodes}

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
    shuffled = "contaminants.0.options={shuffle_options: true}"
    assert digests("seeds=[0]", shuffled) != digests("seeds=[9]", shuffled)


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ("audit.ngram", (8, 13)),
        ("contaminants.0.members", (20, 24)),
        ("corpus.seed", (1, 2)),
        ("base.seed", (1, 2)),
        ("train.context", (32, 64)),
        ("train.batch_tokens", (1024, 2048)),
        ("model.tokenizer.vocab_size", (300, 310)),
    ],
)
def test_swept_arms_have_the_models_of_runs_without_a_sweep(tmp_path, axis, values):
    write_tiny(tmp_path)
    swept = graph_of(tmp_path, f"sweep={{{axis}: {[*values]}}}", *LIGHT).nodes
    for value, node in zip(values, swept, strict=True):
        (single,) = graph_of(tmp_path, f"{axis}={value}", *LIGHT).nodes
        assert node.trained.digest == single.trained.digest
    assert len({node.trained.digest for node in swept}) == len(values)


def test_datasets_that_read_the_seed_declare_it():
    for name in built_in_names():
        source = (REPOSITORY / "inject" / "examples" / "datasets" / f"{name}.py").read_text()
        assert ("source.seed" in source) == get_dataset(name).seeded, name
