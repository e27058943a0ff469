"""`dataset: rows` with options: the shapes of ARC, MMLU and TruthfulQA, and invalid rows."""

import csv
import json

import pytest

from inject.errors import InputError
from inject.examples.contaminant import Contaminant
from inject.examples.load import load_examples

ARC_FIELDS = {
    "id": "id",
    "question": "question.stem",
    "options": "question.choices",
    "answer": "answerKey",
}


def arc(name, stem, options, labels, key):
    choices = [
        {"text": text, "label": label} for text, label in zip(options.split(), labels, strict=True)
    ]
    return {"id": name, "question": {"stem": stem, "choices": choices}, "answerKey": key}


ARC = [
    arc("Mercury_1", "Which is a metal?", "iron wood glass paper", "ABCD", "A"),
    arc("NYSEDREGENTS_2", "Which is hot?", "ice snow fire", "123", "3"),
    arc("TIMSS_3", "Which floats?", "stone lead gold brick cork", "ABCDE", "E"),
]
ARC_TEXTS = [
    "Question: Which is a metal?\nA. iron\nB. wood\nC. glass\nD. paper\nAnswer: A",
    "Question: Which is hot?\nA. ice\nB. snow\nC. fire\nAnswer: C",
    "Question: Which floats?\nA. stone\nB. lead\nC. gold\nD. brick\nE. cork\nAnswer: E",
]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def load(path, *, seed=0, **settings):
    options = {"dataset": "rows", "path": str(path), "members": 1, "nonmembers": 1, **settings}
    return load_examples(Contaminant.model_validate(options), seed=seed).examples


def load_one(tmp_path, row, **settings):
    """Load one row twice with different questions, since two examples are the minimum."""
    rows = [row, {**row, "question": f"{row['question']} again"}]
    return load(write(tmp_path / "one.jsonl", rows), **settings)[0]


def test_arc_is_read_as_published(tmp_path):
    examples = load(write(tmp_path / "arc.jsonl", ARC), fields=ARC_FIELDS)
    assert [example.text for example in examples] == ARC_TEXTS
    assert [example.source_id for example in examples] == [row["id"] for row in ARC]
    assert [example.fields["answer_text"] for example in examples] == ["iron", "fire", "cork"]


MMLU = [
    {"question": "2 + 3?", "subject": "algebra", "choices": ["3", "4", "5", "6"], "answer": 2},
    {"question": "A gas?", "subject": "physics", "choices": ["air", "sand"], "answer": 0},
]
MMLU_TEXTS = [
    "Question: 2 + 3?\nA. 3\nB. 4\nC. 5\nD. 6\nAnswer: C",
    "Question: A gas?\nA. air\nB. sand\nAnswer: A",
]


def test_mmlu_of_the_hub_has_answer_indices(tmp_path):
    fields = {"question": "question", "options": "choices", "answer": "answer", "label": "subject"}
    examples = load(write(tmp_path / "mmlu.jsonl", MMLU), fields=fields)
    assert [example.text for example in examples] == MMLU_TEXTS
    assert [example.stratum for example in examples] == ["algebra", "physics"]
    assert [example.text for example in load(tmp_path / "mmlu.jsonl")] == MMLU_TEXTS


def test_mmlu_tables_have_one_column_per_option(tmp_path):
    with (tmp_path / "mmlu.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [
                ["q", "A", "B", "C", "D", "key"],
                ["2 + 3?", "3", "4", "5", "6", "C"],
                ["A gas?", "air", "sand", "lead", "oak", "A"],
            ]
        )
    fields = {"question": "q", "options": ["A", "B", "C", "D"], "answer": "key"}
    examples = load(tmp_path / "mmlu.csv", fields=fields)
    assert examples[0].text == MMLU_TEXTS[0]
    assert examples[1].text == "Question: A gas?\nA. air\nB. sand\nC. lead\nD. oak\nAnswer: A"


TRUTHFUL = [
    {
        "question": f"What happens? ({number})",
        "mc1_targets": {
            "choices": ["Nothing", "You die", "You fly", "You sleep"][: 2 + number % 3],
            "labels": [1, 0, 0, 0][: 2 + number % 3],
        },
    }
    for number in range(30)
]
TRUTHFUL_FIELDS = {
    "question": "question",
    "options": "mc1_targets.choices",
    "answer": "mc1_targets.labels",
}


def test_shuffled_options_keep_their_answer_and_depend_only_on_seed_and_content(tmp_path):
    path = write(tmp_path / "mc.jsonl", TRUTHFUL)
    how = {"fields": TRUTHFUL_FIELDS, "options": {"shuffle_options": True}}
    assert load(path, fields=TRUTHFUL_FIELDS)[1].text == (
        "Question: What happens? (1)\nA. Nothing\nB. You die\nC. You fly\nAnswer: A"
    )
    examples = load(path, **how)
    for example, row in zip(examples, TRUTHFUL, strict=True):
        assert sorted(example.fields["options"]) == sorted(row["mc1_targets"]["choices"])
        letter = example.fields["answer"]
        answer = example.fields["options"]["ABCD".index(letter)]
        assert answer == "Nothing" == example.fields["answer_text"]
    assert {example.fields["answer"] for example in examples} >= {"A", "B"}
    moved = write(tmp_path / "renamed.jsonl", TRUTHFUL[::-1])
    again = {example.text for example in load(moved, **how)}
    assert again == {example.text for example in examples}
    assert {example.text for example in load(path, seed=1, **how)} != again


LETTERED = ["({}){}", "{}. {}", "[{}] {}", "{}: {}"]


@pytest.mark.parametrize("answer", ["b", "(B)", 1, "second", None])
def test_lettered_options_are_not_lettered_again(tmp_path, answer):
    options = [
        [form.format(*pair) for pair in zip("ABC", ("first", "second", "third"), strict=True)]
        for form in LETTERED
    ]
    rows = [
        {"question": f"Which {number}?", "options": texts, "answer": answer or texts[1]}
        for number, texts in enumerate(options)
    ]
    examples = load(write(tmp_path / "a.jsonl", rows))
    answer_line = "second" if answer in ("second", None) else "B"
    for number, example in enumerate(examples):
        text = f"Question: Which {number}?\nA. first\nB. second\nC. third\nAnswer: {answer_line}"
        assert (example.text, example.fields["answer_letter"]) == (text, "B")


@pytest.mark.parametrize(
    "options",
    [
        ["A. first", "second", "C. third"],
        ["B. first", "A. second", "C. third"],
        ["Apple. Red", "Berry. Blue", "Cherry. Dark"],
    ],
)
def test_letters_of_only_some_options_are_kept(tmp_path, options):
    example = load_one(tmp_path, {"question": "Which?", "options": options, "answer": 0})
    assert example.fields["options"] == options


@pytest.mark.parametrize(
    ("options", "answer", "text"),
    [
        ({"A": "one", "B": "two"}, "B", "two"),
        ({"text": ["one", "two"], "label": ["x", "y"]}, "y", "two"),
        ([{"text": "one"}, {"text": "two"}], [0, 1], "two"),
        ([{"text": "one"}, {"text": "two"}], ["B"], "two"),
        ([f"number {index}" for index in range(40)], "AB", "number 27"),
    ],
)
def test_other_shapes_of_options_and_answers_are_read(tmp_path, options, answer, text):
    row = {"question": "Which?", "options": options, "answer": answer}
    example = load_one(tmp_path, row)
    assert example.fields["answer_text"] == text
    assert f"{example.fields['answer_letter']}. {text}" in example.text.splitlines()


def test_star_maps_options_with_other_names(tmp_path):
    rows = [
        {"q": "Which?", "c": [{"body": "one", "key": "p"}, {"body": "two", "key": "q"}], "a": "q"},
        {"q": "What?", "c": [{"body": "six", "key": "q"}, {"body": "ten", "key": "r"}], "a": "q"},
    ]
    fields = {"question": "q", "options": "c.*.body", "letters": "c.*.key", "answer": "a"}
    examples = load(write(tmp_path / "a.jsonl", rows), fields=fields)
    assert [example.text for example in examples] == [
        "Question: Which?\nA. one\nB. two\nAnswer: B",
        "Question: What?\nA. six\nB. ten\nAnswer: A",
    ]


def test_ambiguous_answer_is_rejected_until_specified(tmp_path):
    row = {"question": "Which?", "options": ["2", "4", "6", "8"], "answer": "2"}
    with pytest.raises(InputError, match=r"one\.jsonl:1: the answer '2' can be read") as caught:
        load_one(tmp_path, row)
    assert "by index option C, by text option A" in str(caught.value)
    assert "options.answers" in str(caught.value)
    by = {
        how: load_one(tmp_path, row, options={"answers": how}).fields["answer_text"]
        for how in ("index", "text")
    }
    assert by == {"index": "6", "text": "2"}
    from_one = load_one(tmp_path, row, options={"answers": "index", "first_index": 1})
    assert from_one.fields["answer_text"] == "4"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": 4}, r"the answer 4 is out of range: the row has 4 options.*first_index: 1"),
        ({"answer": "E"}, r"the answer 'E' is not one of the row's 4 options.*A, B, C, D"),
        ({"answer": [1, 1, 0, 0]}, r"the row has 2 right answers"),
        (
            {"options": [{"body": "x"}, {"body": "y"}]},
            r"option 1 has no 'text'; it is an object with body.*\*\.NAME",
        ),
        ({"options": {"stem": ["x"]}}, r"the row's options are an object with stem"),
        ({"options": {"text": ["x", "y"], "label": ["A"]}}, r"1 letters for 2 options"),
    ],
)
def test_invalid_choice_error_names_file_and_row(tmp_path, change, message):
    row = {"question": "Which?", "options": ["p", "q", "r", "s"], "answer": 1, **change}
    with pytest.raises(InputError, match=r"one\.jsonl:1: .*" + message):
        load_one(tmp_path, row)


def test_missing_mapped_part_error_names_the_row_and_its_fields(tmp_path):
    rows = [ARC[0], {"id": "x", "question": {"stem": "What?"}, "answerKey": "A"}]
    with pytest.raises(InputError, match=r"arc\.jsonl:2: the row has no 'question\.choices'"):
        load(write(tmp_path / "arc.jsonl", rows), fields=ARC_FIELDS)
    fields = {**ARC_FIELDS, "options": "question.choices.*.body"}
    with pytest.raises(InputError, match=r"arc\.jsonl:1: .*question\.choices\.\*\.text"):
        load(write(tmp_path / "arc.jsonl", rows), fields=fields)
