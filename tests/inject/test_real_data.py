"""Every benchmark in its original files; nothing of their text is written here."""

import csv
from collections import Counter

import pytest

from inject.digest import digest
from inject.examples.contaminant import Contaminant, contaminant_identity
from inject.examples.example import Loss
from inject.examples.load import LengthRules, filter_by_length, load_examples
from inject.examples.membership import draw_sides
from inject.examples.template import lettered

pytestmark = pytest.mark.data


def load(folder, dataset, path, seed=0, **options):
    given = Contaminant(
        dataset=dataset, path=str(folder / path), members=1, nonmembers=1, options=options
    )
    digest(contaminant_identity(given))
    return load_examples(given, seed=seed)


def exact(example, label):
    """Return whether each span cuts exactly its field out of the text."""
    for name, span in example.spans.items():
        value = example.fields[name]
        written = value if isinstance(value, str) else lettered(value, label)
        if example.text[span.start : span.stop] != written:
            return False
    return True


@pytest.mark.parametrize(
    ("dataset", "path", "rows", "duplicates", "groups", "strata"),
    [
        ("boolq", "bench/boolq/dev.jsonl.gz", 3270, 0, 2932, {"yes", "no"}),
        ("imdb", "bench/imdb", 5000, 3, 4997, {"Positive", "Negative"}),
        ("truthfulqa", "bench/truthfulqa/TruthfulQA.csv", 817, 0, 817,
         {"Adversarial", "Non-Adversarial"}),
        ("commonsenseqa", "bench/commonsenseqa/dev_rand_split.jsonl.gz", 1221, 0, 1221,
         set("ABCDE")),
        ("lsat", "bench/lsat", 1009, 0, 587, {"ar", "lr", "rc"}),
        ("gpqa", "bench/gpqa/dataset.zip", 448, 0, 448, {"Biology", "Chemistry", "Physics"}),
        ("news", "background/news_wikinews/wikinews_2019.csv", 171, 0, 171,
         {f"2019-{month:02d}" for month in range(1, 13)}),
    ],
)  # fmt: skip
def test_counts_and_spans(data_folder, dataset, path, rows, duplicates, groups, strata):
    loaded = load(data_folder, dataset, path)
    lost = [one.loss for one in loaded.losses]
    assert (loaded.rows, lost) == (rows, [Loss.DUPLICATE] * duplicates)
    assert len(loaded.examples) == rows - duplicates
    assert len({example.group for example in loaded.examples}) == groups
    assert {example.stratum for example in loaded.examples} == strata
    assert len({example.source_id for example in loaded.examples}) == len(loaded.examples)
    assert all(example.spans for example in loaded.examples)
    assert {example.protected for example in loaded.examples} == {dataset == "gpqa"}
    # Only ids are compared by the assertion: a failure prints what it compares.
    label = "A." if dataset == "commonsenseqa" else "(A)"
    assert [example.source_id for example in loaded.examples if not exact(example, label)] == []


@pytest.mark.parametrize(("subset", "rows"), [("diamond", 198), ("extended", 546)])
def test_gpqa_subsets(data_folder, subset, rows):
    examples = load(data_folder, "gpqa", "bench/gpqa/dataset.zip", subset=subset).examples
    assert len(examples) == rows
    # A fair shuffle puts each letter on about a quarter: 5 standard deviations at most.
    letters = Counter(example.fields["answer"] for example in examples)
    assert set(letters) == set("ABCD")
    assert all(abs(n - rows / 4) < 5 * (rows * 3 / 16) ** 0.5 for n in letters.values())


def test_boolq_passages_that_differ_by_a_comma_stand_on_one_side(data_folder):
    examples = load(data_folder, "boolq", "bench/boolq/dev.jsonl.gz").examples
    pair = {"dev.jsonl.gz:1735", "dev.jsonl.gz:917"}
    one, other = (row for row in examples if row.source_id in pair)
    passages = one.fields["passage"], other.fields["passage"]
    assert passages[0] != passages[1]
    assert passages[0].replace(",", "") == passages[1].replace(",", "")
    for seed in range(12):
        drawn = draw_sides(examples, members=1500, nonmembers=1500, stratify=True, seed=seed)
        sides = {
            side for side, rows in drawn.sides.items() if any(row.source_id in pair for row in rows)
        }
        assert len(sides) <= 1


@pytest.mark.parametrize(
    ("dataset", "path"),
    [("lsat", "bench/lsat/lsat-rc.jsonl")],
)
def test_every_row_that_a_cut_costs_is_named(data_folder, tiny_tokenizer, dataset, path):
    rows = load(data_folder, dataset, path).examples[:600]
    rules = LengthRules(context=256, room=256, min_tokens=4, policy="truncate")
    found = filter_by_length(rows, tiny_tokenizer, rules)
    reasons = {loss: {one.source_id for one in found.losses if one.loss == loss} for loss in Loss}
    kept = {row.source_id for row in found.examples}
    dropped = {row.source_id for row in rows} - kept
    assert dropped == reasons[Loss.EQUAL_ONCE_CUT] != set()
    texts = {row.source_id: row.text for row in rows}
    cut = {row.source_id for row in found.examples if row.text != texts[row.source_id]}
    # The answer ends either text.
    assert cut == reasons[Loss.CUT_BEFORE_ANSWER]
    assert reasons[Loss.CUT] == set()


def test_truthfulqa_answers_hold_no_empty_part(data_folder):
    path = data_folder / "bench/truthfulqa/TruthfulQA.csv"
    with path.open(encoding="utf-8", newline="") as file:
        raw = list(csv.DictReader(file))
    examples = load(data_folder, "truthfulqa", "bench/truthfulqa/TruthfulQA.csv").examples
    assert sum(row["Correct Answers"].rstrip().endswith(";") for row in raw) == 11
    assert all(all(example.fields["correct_answers"]) for example in examples)
    assert all(
        example.text == f"Q: {row['Question']}\nA: {row['Best Answer'].strip()}"
        for row, example in zip(raw, examples, strict=True)
    )


def test_news_between_two_dates(data_folder):
    window = {"after": "2019-12-01", "before": "2020-01-31"}
    examples = load(data_folder, "news", "background/news_wikinews", **window).examples
    assert {example.stratum for example in examples} == {"2019-12", "2020-01"}
    assert all("2019-12-01" <= example.fields["date"] <= "2020-01-31" for example in examples)


def test_passages_of_new_papers_alone_unless_others_are_asked_for(data_folder):
    path = "detect/decop/arXivTection.csv.gz"
    for documents, rows in (("new", 787), ("old", 762), ("all", 1549)):
        loaded = load(data_folder, "arxivtection", path, documents=documents)
        examples, lost = loaded.examples, [one.loss for one in loaded.losses]
        assert (loaded.rows, lost) == (rows, [] if documents == "old" else [Loss.EMPTY])
        assert len(examples) == rows - len(lost)
    assert len({example.group for example in examples}) == 50
    assert all(len({example.text, *example.paraphrases}) == 4 for example in examples)


@pytest.mark.parametrize(("words", "new", "rows"), [(128, 111, 250)])
def test_events_of_2023_alone_unless_others_are_asked_for(data_folder, words, new, rows):
    path = f"detect/wikimia/WikiMIA_length{words}.jsonl"
    examples = load(data_folder, "wikimia", path).examples
    assert len(examples) == new
    assert all(len(example.text.split()) == words for example in examples)
    every = load(data_folder, "wikimia", path, events="all").examples
    assert len(every) == rows
    assert {example.stratum for example in every} == {"0", "1"}
