"""All benchmarks in their original files; this file contains none of their texts."""

import pytest

from inject.digest import digest
from inject.examples.contaminant import Contaminant, contaminant_identity
from inject.examples.example import DropReason
from inject.examples.load import load_examples
from inject.examples.template import lettered

pytestmark = pytest.mark.data


def load(folder, dataset, path, seed=0, **options):
    contaminant = Contaminant(
        dataset=dataset, path=str(folder / path), members=1, nonmembers=1, options=options
    )
    digest(contaminant_identity(contaminant))
    return load_examples(contaminant, seed=seed)


def exact(example, label):
    """Return whether each span cuts exactly its field out of the text."""
    for name, span in example.spans.items():
        value = example.fields[name]
        written = value if isinstance(value, str) else lettered(value, label)
        if example.text[span.start : span.stop] != written:
            return False
    return True


@pytest.mark.parametrize(
    ("dataset", "path", "rows", "lost", "groups", "strata"),
    [
        ("boolq", "bench/boolq/dev.jsonl.gz", 3270, 0, 2932, {"yes", "no"}),
        ("imdb", "bench/imdb", 5000, 3, 4997, {"Positive", "Negative"}),
        ("truthfulqa", "bench/truthfulqa/TruthfulQA.csv", 817, 0, 817,
         {"Adversarial", "Non-Adversarial"}),
        ("commonsenseqa", "bench/commonsenseqa/dev_rand_split.jsonl.gz", 1221, 0, 1221,
         set("ABCDE")),
        ("lsat", "bench/lsat", 1009, 0, 587, {"ar", "lr", "rc"}),
        ("gpqa", "bench/gpqa/dataset.zip", 448, 0, 448, {"Biology", "Chemistry", "Physics"}),
        ("arxivtection", "detect/decop/arXivTection.csv.gz", 787, 1, 25, {""}),
        ("wikimia", "detect/wikimia/WikiMIA_length128.jsonl", 111, 0, 111, {""}),
        ("news", "background/news_wikinews/wikinews_2019.csv", 171, 0, 171,
         {f"2019-{month:02d}" for month in range(1, 13)}),
    ],
)  # fmt: skip
def test_counts_and_spans(data_folder, dataset, path, rows, lost, groups, strata):
    loaded = load(data_folder, dataset, path)
    reason = DropReason.EMPTY if dataset == "arxivtection" else DropReason.DUPLICATE
    assert (loaded.rows, [row.drop_reason for row in loaded.losses]) == (rows, [reason] * lost)
    assert len(loaded.examples) == rows - lost
    assert len({example.group for example in loaded.examples}) == groups
    assert {example.stratum for example in loaded.examples} == strata
    assert len({example.source_id for example in loaded.examples}) == len(loaded.examples)
    assert all(example.spans for example in loaded.examples)
    assert {example.protected for example in loaded.examples} == {dataset == "gpqa"}
    # The assertion compares only ids, because a failure prints its operands.
    label = "A." if dataset == "commonsenseqa" else "(A)"
    assert [example.source_id for example in loaded.examples if not exact(example, label)] == []
