import gzip
import json

import pytest

from inject.errors import InputError
from inject.examples.contaminant import Contaminant
from inject.examples.example import DropReason
from inject.examples.load import load_examples


def lines(path, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return str(path)


def load(dataset, path, *, count=2, seed=0, **settings):
    contaminant = Contaminant(
        dataset=dataset, path=str(path), members=count // 2, nonmembers=count - count // 2,
        **settings,
    )  # fmt: skip
    return load_examples(contaminant, seed=seed)


def cut(example):
    return {name: example.text[span.start : span.stop] for name, span in example.spans.items()}


BOOLQ = [
    {"question": "is ice cold", "title": "Ice", "answer": True, "passage": "Ice is frozen."},
    {"question": "is ice hot", "title": "Ice", "answer": False, "passage": "Ice is frozen."},
    {"question": "is fire hot?", "title": "Fire", "answer": True, "passage": "Fire burns."},
]


def test_boolq(tmp_path):
    loaded = load("boolq", lines(tmp_path / "dev.jsonl.gz", BOOLQ))
    texts = [example.text for example in loaded.examples]
    assert texts == [
        "Ice is frozen.\nQuestion: is ice cold?\nAnswer: yes",
        "Ice is frozen.\nQuestion: is ice hot?\nAnswer: no",
        "Fire burns.\nQuestion: is fire hot?\nAnswer: yes",
    ]
    assert cut(loaded.examples[1]) == {
        "passage": "Ice is frozen.", "question": "is ice hot", "answer": "no",
    }  # fmt: skip
    groups = [example.group for example in loaded.examples]
    assert groups[0] == groups[1] != groups[2]
    assert [example.stratum for example in loaded.examples] == ["yes", "no", "yes"]
    assert [example.source_id for example in loaded.examples] == [
        "dev.jsonl.gz:1", "dev.jsonl.gz:2", "dev.jsonl.gz:3",
    ]  # fmt: skip


def test_imdb_keeps_the_raw_text_by_default(tmp_path):
    rows = [
        {"text": "Good.<br /><br />Very\x85 good.\x00", "label": 1, "path": "train/pos/1_9.txt"},
        {"text": "Bad.", "label": 0, "path": "train/neg/1_2.txt"},
        {"text": "Who knows?", "label": -1, "path": "train/unsup/1_0.txt"},
    ]
    path = lines(tmp_path / "reviews.jsonl", rows)
    loaded = load("imdb", path)
    assert loaded.examples[0].text == (
        "Passage: Good.<br /><br />Very\x85 good.\x00\nSentiment: Positive"
    )
    assert [row.drop_reason for row in loaded.losses] == [DropReason.UNANSWERED]
    assert [example.source_id for example in loaded.examples] == [
        "train/pos/1_9.txt", "train/neg/1_2.txt",
    ]  # fmt: skip
    clean = load("imdb", path, options={"clean": True}).examples[0]
    assert cut(clean)["passage"] == "Good.\n\nVery good."


def test_imdb_is_read_from_the_original_folders(tmp_path):
    for name, text in {"pos/0_9.txt": "Fine film.", "neg/0_2.txt": "Dull film."}.items():
        file = tmp_path / "aclImdb" / "test" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    examples = load("imdb", tmp_path / "aclImdb" / "test").examples
    assert {example.source_id: cut(example)["answer"] for example in examples} == {
        "test/pos/0_9.txt": "Positive", "test/neg/0_2.txt": "Negative",
    }  # fmt: skip


def test_truthfulqa_csv(tmp_path):
    path = tmp_path / "TruthfulQA.csv"
    path.write_text(
        "Type,Category,Question,Best Answer,Correct Answers,Incorrect Answers,Source\n"
        'Adversarial,Myths,"What, then?",Nothing,Nothing; Not much;,All;  ; Some ,http://x\n'
        "Non-Adversarial,Myths,Why?,Because,Because,No,http://y\n"
    )
    first = load("truthfulqa", path).examples[0]
    assert first.text == "Q: What, then?\nA: Nothing"
    assert first.fields["correct_answers"] == ["Nothing", "Not much"]
    assert first.fields["incorrect_answers"] == ["All", "Some"]
    assert first.stratum == "Adversarial"


def nested(number, key="B"):
    choices = [{"label": mark, "text": f"{mark.lower()}{number}"} for mark in "ABCDE"]
    question = {"question_concept": "c", "choices": choices, "stem": f"What is {number}?"}
    return {"answerKey": key, "id": f"id{number}", "question": question}


def flat(number, key="B"):
    return {
        "id": f"id{number}",
        "question": f"What is {number}?",
        "question_concept": "c",
        "choices": {"label": list("ABCDE"), "text": [f"{mark}{number}" for mark in "abcde"]},
        "answerKey": key,
    }


@pytest.mark.parametrize("form", [nested, flat])
def test_commonsenseqa_is_read_in_both_formats(tmp_path, form):
    path = lines(tmp_path / "dev.jsonl", [form(1), form(2, "E"), form(3, "")])
    loaded = load("commonsenseqa", path)
    first = loaded.examples[0]
    assert first.text == "Question: What is 1?\nA. a1\nB. b1\nC. c1\nD. d1\nE. e1\nAnswer: B. b1"
    assert cut(first) == {
        "question": "What is 1?",
        "options": "A. a1\nB. b1\nC. c1\nD. d1\nE. e1",
        "answer": "B. b1",
    }
    assert first.source_id == "id1"
    assert first.stratum == first.fields["answer_letter"] == "B"
    assert [row.drop_reason for row in loaded.losses] == [DropReason.UNANSWERED]


def lsat(passage, question, label="B"):
    options = [f"({mark})text {mark.lower()}" for mark in "ABCDE"]
    return {"passage": passage, "question": question, "options": options, "label": label,
            "answer": None, "other": None}  # fmt: skip


def lsat_query(row):
    query = (
        f"{row['passage']}Q: {row['question']} Answer Choices: {' '.join(row['options'])}\n"
        "A: Among A through E, the answer is"
    )
    return {"query": query, "choices": row["options"], "gold": ["ABCDE".index(row["label"])]}


ROOMS = [
    lsat("He said Q: who? Five rooms.", "Which room?"),
    lsat("He said Q: who? Five rooms.", "Which other room?", "E"),
    lsat("Six boats.", "Which boat?"),
]


def test_lsat(tmp_path):
    lines(tmp_path / "lsat-ar.jsonl", ROOMS)
    lines(tmp_path / "lsat-lr.jsonl", [lsat("An argument.", "Which flaw?", "A")])
    examples = load("lsat", tmp_path).examples
    assert examples[0].text == (
        "He said Q: who? Five rooms.\nQuestion: Which room?\n"
        "(A) text a\n(B) text b\n(C) text c\n(D) text d\n(E) text e\nAnswer: (B)"
    )
    assert cut(examples[1])["answer"] == "E"
    assert examples[0].group == examples[1].group != examples[2].group
    assert [example.stratum for example in examples] == ["ar", "ar", "ar", "lr"]
    only = load("lsat", tmp_path, options={"sections": ["ar"]}).examples
    assert [example.text for example in only] == [example.text for example in examples[:3]]


def test_duplicates_blank_and_unanswered_rows_are_counted(tmp_path):
    blank = {"question": " ", "title": "", "answer": True, "passage": ""}
    rows = [*BOOLQ, BOOLQ[0], blank, {"question": "x", "passage": "y"}]
    loaded = load("boolq", lines(tmp_path / "dev.jsonl", rows))
    assert (loaded.rows, len(loaded.examples)) == (6, 3)
    assert [(row.source_id, row.drop_reason, row.duplicate_of) for row in loaded.losses] == [
        ("dev.jsonl:4", DropReason.DUPLICATE, "boolq dev.jsonl:1"),
        ("dev.jsonl:5", DropReason.EMPTY, None),
        ("dev.jsonl:6", DropReason.UNANSWERED, None),
    ]


def test_a_custom_template(tmp_path):
    path = lines(tmp_path / "dev.jsonl", [{"question": "x", "passage": "y"}, *BOOLQ])
    # An answer that the template does not name may be missing.
    loaded = load("boolq", path, template="{passage} {question}")
    assert (loaded.examples[0].text, loaded.losses) == ("y x", ())
    with pytest.raises(InputError, match=r"no field 'pasage'.*Did you mean 'passage'"):
        load("boolq", path, template="{pasage}")


def passage(number, label=0, **more):
    return {
        "Example_A": f" the passage {number} ", "Example_B": f"b{number}",
        "Example_C": f"c{number}", "Example_D": f"d{number}", "Answer": "A",
        "ID": f"book {number // 2}", "Label": label, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("dataset", "row", "message"),
    [
        ("boolq", {**BOOLQ[0], "answer": "maybe"}, "the answer is not a boolean"),
        ("commonsenseqa", nested(1, "Z"), "gold label 'Z' is not one .*A, B, C, D, E"),
        ("news", {"url": "u", "date": "last week", "title": "t", "text": "x"}, "is not a date"),
        ("booktection", passage(0), "no field 'Length'"),
        ("arxivtection", passage(0, label=2), "unknown label '2'"),
        ("lsat", {"query": "Q: x", "choices": ["(A)a"], "gold": 0}, "not in AGIEval's form"),
        *(
            (name, {"foo": 1, "bar": 2}, "(it has bar, foo|'options' is not a list)")
            for name in ("boolq", "imdb", "truthfulqa", "commonsenseqa", "lsat", "news")
        ),
    ],
)
def test_malformed_published_row_is_named(tmp_path, dataset, row, message):
    with pytest.raises(InputError, match=rf"rows\.jsonl:1: .*{message}"):
        load(dataset, lines(tmp_path / "rows.jsonl", [row]))
