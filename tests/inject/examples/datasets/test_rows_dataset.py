import json

import pytest

from inject.errors import InputError
from inject.examples.contaminant import Contaminant
from inject.examples.example import DropReason
from inject.examples.load import load_examples

ROWS = [
    {"qid": 7, "q": {"stem": "Who?", "tags": ["a", "b"]}, "gold": ["Ann", "Bob"], "n": 1.5},
    {"qid": 8, "q": {"stem": "When?", "tags": ["c"]}, "gold": [], "n": 2},
    {"qid": 9, "q": {"stem": "Where?", "tags": ["d"]}, "gold": 3, "n": None},
]
FIELDS = {"id": "qid", "question": "q.stem", "answer": "gold", "label": "q.tags.0", "extra": "n"}


def load(path, **settings):
    contaminant = Contaminant(
        **{"dataset": "rows", "path": str(path), "members": 1, "nonmembers": 1, **settings}
    )
    return load_examples(contaminant, seed=0)


@pytest.fixture
def trivia(tmp_path):
    path = tmp_path / "trivia.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_rows_accept_dotted_paths_lists_numbers_and_a_template(trivia):
    loaded = load(trivia, name="trivia", fields=FIELDS, template="Q {question} A {answer} {extra}")
    assert [example.text for example in loaded.examples] == ["Q Who? A Ann 1.5", "Q Where? A 3 "]
    assert [row.drop_reason for row in loaded.losses] == ["without an answer"]
    first = loaded.examples[0]
    assert (first.source_id, first.stratum, first.dataset) == ("7", "a", "trivia")
    assert first.group == first.example_id


def test_usual_field_names_are_recognised(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [
        {"text": "Just text.", "id": "x", "group": "g"},
        {"question": "Who?", "answer": "Ann"},
        {"question": "Which?", "options": ["p", "q"], "answer": "p"},
        {"passage": "There.", "question": "What?", "answer": "This"},
        {"question": "Alone?"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    examples = load(path).examples
    assert [example.text for example in examples] == [
        "Just text.",
        "Question: Who?\nAnswer: Ann",
        "Question: Which?\nA. p\nB. q\nAnswer: p",
        "There.\nQuestion: What?\nAnswer: This",
        "Alone?",
    ]
    assert (examples[0].source_id, examples[0].group) == ("x", "g")
    assert examples[1].source_id == "a.jsonl:2"


def test_rows_with_equal_ids_are_numbered(tmp_path):
    rows = [{"id": name, "text": f"text {at}"} for at, name in enumerate("abaca")]
    rows += [{"id": "d", "text": None}, {"id": "b", "text": "text 1"}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    loaded = load(path)
    assert [item.source_id for item in loaded.examples] == ["a", "b", "a#2", "c", "a#3"]
    assert loaded.repeated_ids == 2
    assert [item.drop_reason for item in loaded.losses] == [DropReason.EMPTY, DropReason.DUPLICATE]


def test_rows_keep_their_shared_group(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("g,text\np,one\np,two\n,three\n")
    examples = load(path, fields={"group": "g", "text": "text"}).examples
    assert [example.group for example in examples][:2] == ["p", "p"]
    assert examples[2].group == examples[2].example_id


def texts_read(path, rows, **options):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    loaded = load(path, template="{text}", options=options)
    return {example.text: example.group for example in loaded.examples}


def test_share_of_rows_does_not_depend_on_order_or_seed(tmp_path):
    rows = [{"text": f"row number {n}"} for n in range(500)]
    texts = texts_read(tmp_path / "a.jsonl", rows, share=0.2)
    # Five standard errors of a binomial share.
    assert abs(len(texts) - 100) < 5 * (500 * 0.2 * 0.8) ** 0.5
    assert set(texts_read(tmp_path / "b.jsonl", rows[::-1], share=0.2)) == set(texts)
    # Further rows do not move the others, and a larger share contains the smaller one.
    more = texts_read(tmp_path / "c.jsonl", [{"text": "another"}, *rows], share=0.2)
    assert set(more) - {"another"} == set(texts)
    assert set(texts_read(tmp_path / "d.jsonl", rows, share=0.4)) > set(texts)
    assert len(texts_read(tmp_path / "e.jsonl", rows)) == 500
    contaminant = Contaminant(dataset="rows", path=str(tmp_path / "a.jsonl"), template="{text}",
                        members=1, nonmembers=1, options={"share": 0.2})  # fmt: skip
    other_seed = load_examples(contaminant, seed=7)
    assert {example.text for example in other_seed.examples} == set(texts)


def test_a_share_of_the_rows_takes_whole_groups(tmp_path):
    rows = [{"text": f"row number {n}", "group": f"passage {n // 5}"} for n in range(500)]
    texts = texts_read(tmp_path / "a.jsonl", rows, share=0.3)
    assert 0 < len(texts) < 500
    assert len(texts) == 5 * len(set(texts.values()))


def test_rows_are_chosen_by_their_values(tmp_path):
    rows = [
        {"text": f"row number {n}", "task": {"id": str(n % 3)}, "part": n % 2} for n in range(60)
    ]
    texts = texts_read(tmp_path / "a.jsonl", rows, where=["task.id=1", "part=0"])
    assert list(texts) == [
        row["text"] for row in rows if (row["task"]["id"], row["part"]) == ("1", 0)
    ]
    with pytest.raises(InputError, match="0 rows read"):
        texts_read(tmp_path / "b.jsonl", rows, where=["task.id=7"])


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("true", [0, 3]),
        ("null", [2, 4]),
        ("1", [5, 6, 7]),
        ("[1, 2]", [10]),
    ],
)
def test_rows_are_chosen_by_values_as_json_writes_them(tmp_path, text, places):
    values = [True, False, None, "true", "null", 1, 1.0, "1", "1.0", 0, [1, 2], "yes", {}]
    rows = [
        {"text": f"{place} {number}", "answer": value}
        for place, value in enumerate(values)
        for number in range(2)
    ]
    texts = texts_read(tmp_path / "a.jsonl", rows, where=[f"answer={text}"])
    assert [int(line.split()[0]) for line in list(texts)[::2]] == places


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"it has body, task_id.*fields: \{text: body\}"),
        ({"fields": {"text": "task_id"}}, "field 'text' contains a dict"),
        ({"options": {"where": ["taskid=1"]}}, "no 'taskid'.*Did you mean 'task_id'"),
    ],
)
def test_a_row_that_cannot_be_mapped_is_named(tmp_path, settings, message):
    path = tmp_path / "a.jsonl"
    path.write_text('{"body": "one", "task_id": {}}\n')
    with pytest.raises(InputError, match=rf"a\.jsonl:1: .*{message}"):
        load(path, **settings)
