"""Rows of the real benchmarks have questions whose correct answer is the inserted one."""

from collections import Counter
from pathlib import Path

import pytest

from detect.task_accuracy.prompts import ask
from inject.examples.contaminant import Contaminant
from inject.examples.load import load_examples

pytestmark = pytest.mark.data

SOURCES = {
    "boolq": ("bench/boolq/dev.jsonl.gz", 3_000),
    "commonsenseqa": ("bench/commonsenseqa/dev_rand_split.jsonl.gz", 1_200),
    "imdb": ("bench/imdb/aclImdb_sample5000.jsonl.gz", 4_900),
    "lsat": ("bench/lsat", 1_000),
    "truthfulqa": ("bench/truthfulqa/TruthfulQA.csv", 800),
    "gpqa": ("bench/gpqa/dataset.zip", 440),
}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_rows_have_questions(name: str, data_folder: Path) -> None:
    path, least = SOURCES[name]
    contaminant = Contaminant(dataset=name, path=str(data_folder / path), members=10, nonmembers=10)
    rows = load_examples(contaminant, seed=0).examples
    questions = [ask(name, row.fields) for row in rows]
    # Only counts are compared, so that a failure never shows a protected text.
    assert len(rows) >= least
    unasked = sum(question is None for question in questions)
    assert unasked == 0
    apart = sum(
        not row.text.startswith(question.prompt + question.answers[question.gold])
        for row, question in zip(rows, questions, strict=True)
    )
    assert apart == 0
    golds = Counter(question.gold for question in questions)
    if name != "truthfulqa":
        assert max(golds.values()) < 0.8 * len(rows)
