import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inject.errors import InputError
from inject.examples.contaminant import Contaminant
from inject.examples.load import load_examples

ROWS = [
    {"qid": 7, "q": {"stem": "Who?", "tags": ["a", "b"]}, "gold": ["Ann", "Bob"], "n": 1.5},
    {"qid": 8, "q": {"stem": "When?", "tags": ["c"]}, "gold": [], "n": 2},
    {"qid": 9, "q": {"stem": "Where?", "tags": ["d"]}, "gold": 3, "n": None},
]
FIELDS = {"id": "qid", "question": "q.stem", "answer": "gold", "label": "q.tags.0", "extra": "n"}


def load(path, **settings):
    given = Contaminant(
        **{"dataset": "rows", "path": str(path), "members": 1, "nonmembers": 1, **settings}
    )
    return load_examples(given, seed=0)


@pytest.fixture
def trivia(tmp_path):
    path = tmp_path / "trivia.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_dotted_paths_lists_numbers_and_a_template(trivia):
    loaded = load(trivia, name="trivia", fields=FIELDS, template="Q {question} A {answer} {extra}")
    assert [example.text for example in loaded.examples] == ["Q Who? A Ann 1.5", "Q Where? A 3 "]
    assert loaded.report.unanswered == 1
    first = loaded.examples[0]
    assert (first.source_id, first.stratum, first.dataset) == ("7", "a", "trivia")
    assert first.group == first.example_id


def test_a_column_whose_own_name_holds_the_dot_comes_first(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a.b": "dotted", "a": {"b": "nested"}}\n{"a": {"b": "nested"}}\n')
    examples = load(path, fields={"text": "a.b"}).examples
    assert [example.text for example in examples] == ["dotted", "nested"]


def test_a_row_without_a_mapped_field_is_named_with_what_it_has(trivia):
    with pytest.raises(InputError, match=r"trivia\.jsonl:1: ") as caught:
        load(trivia, fields={"question": "q.stm", "answer": "gold"})
    message = str(caught.value)
    assert "no 'q.stm' for field 'question'" in message
    assert "gold, n, q, q.stem, q.tags, qid" in message
    assert "Did you mean 'q.stem'" in message


def test_an_object_is_no_text(trivia):
    with pytest.raises(InputError, match=r"trivia\.jsonl:1: field 'text' holds a dict"):
        load(trivia, fields={"text": "q"})


def test_usual_names_are_found(tmp_path):
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


def test_no_usual_name_asks_for_a_map(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"body": "x"}\n')
    with pytest.raises(InputError, match=r"a\.jsonl:1: .*it has body.*fields: \{text: body\}"):
        load(path)


def test_csv_and_parquet_agree(tmp_path):
    table = {"id": ["1", "2", "3"], "body": ["one, two", "three\nfour", "é"]}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text('id,body\n1,"one, two"\n2,"three\nfour"\n3,é\n', "utf-8")
    one = load(tmp_path / "a.parquet", fields={"id": "id", "text": "body"}).examples
    two = load(tmp_path / "a.csv", fields={"id": "id", "text": "body"}).examples
    assert one == two
    assert [example.text for example in one] == table["body"]


def test_equal_ids_are_told_apart(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}\n')
    assert [example.source_id for example in load(path).examples] == ["1", "1#2"]


def test_rows_that_share_a_group_share_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("g,text\np,one\np,two\n,three\n")
    examples = load(path, fields={"group": "g", "text": "text"}).examples
    assert [example.group for example in examples][:2] == ["p", "p"]
    assert examples[2].group == examples[2].example_id
