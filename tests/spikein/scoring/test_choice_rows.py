"""Rows that bring paraphrases: read as the benchmarks have them, and scored by `de_cop`."""

import json
from dataclasses import replace

import numpy as np
import pytest

from detect.choices.question import ORDERS, TOO_FEW, choice_question
from detect.engine.label_probabilities import label_probabilities
from detect.engine.target import load_target
from detect.user_rows.labelled_rows import read_labelled
from inject.errors import InputError
from spikein.scoring.detect_file import DetectFileRequest, detect_file
from tests.conftest import make_texts

TEXTS = make_texts(8, words=4)


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_options_become_a_text_and_its_paraphrases(tmp_path):
    """As arXivTection has it: a byte order mark, the verbatim text first, documents by ID."""
    path = tmp_path / "rows.csv"
    path.write_text(
        "\ufeffExample_A,Example_B,Example_C,Example_D,Answer,ID,Label\n"
        "a,b,c,d,A,A Paper,1\ne,f,g,h,A,A Paper,1\ni,j,k,l,C,Another,0\n",
        encoding="utf-8",
    )
    rows = read_labelled(str(path))
    assert rows.texts == ["a", "e", "k"]
    assert rows.paraphrases == [("b", "c", "d"), ("f", "g", "h"), ("i", "j", "l")]
    assert rows.titles == ["A Paper", "A Paper", "Another"]
    assert rows.groups == ["group A Paper", "group A Paper", "group Another"]
    assert rows.labels == [True, True, False]


def test_paraphrases_of_rows_and_rows_without(tmp_path):
    path = write(
        tmp_path / "r.jsonl", [{"text": "a", "Paraphrases": ["b"], "title": "T"}, {"text": "c"}]
    )
    rows = read_labelled(path)
    assert rows.paraphrases == [("b",), ()]
    assert rows.titles == ["T", ""]
    assert rows.groups is None
    plain = read_labelled(write(tmp_path / "p.jsonl", [{"text": "a"}]))
    assert (plain.paraphrases, plain.titles) == (None, None)


def test_a_row_with_a_text_is_read_as_it_always_was(tmp_path):
    row = {"text": "t", "Example_A": "a", "Example_B": "b", "answer": 3}
    assert read_labelled(write(tmp_path / "r.jsonl", [row])).texts == ["t"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "a", "paraphrases": "b"}, "holds no list of texts"),
        ({"text": "a", "paraphrases": ["b", 3]}, "holds no list of texts"),
        ({"text": "a", "title": ["b"]}, "'title' holds list"),
        ({"Example_A": "a", "Answer": "E"}, "'E' names no option. Allowed: A, B, C, D"),
        ({"Example_A": "a", "Example_C": 3}, "'example_c' holds int"),
    ],
)
def test_what_cannot_be_read_names_the_line(tmp_path, row, message):
    with pytest.raises(InputError, match=message) as caught:
        read_labelled(write(tmp_path / "r.jsonl", [row]))
    assert "r.jsonl:1" in str(caught.value)


@pytest.fixture
def long_model(tmp_path, tiny_tokenizer):
    from tests.detect.models import random_target

    target = random_target("llama", tiny_tokenizer, context=1024)
    target.model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def request(model, examples, tmp_path, detectors):
    return DetectFileRequest(
        model=model, examples=examples, out=tmp_path / "scores.parquet", detectors=detectors
    )


def test_rows_with_paraphrases_are_scored_and_the_others_say_why_not(tmp_path, long_model):
    rows = [
        {"text": TEXTS[0], "paraphrases": TEXTS[1:4], "label": 1},
        {"text": TEXTS[4], "label": 0},
    ]
    examples = write(tmp_path / "r.jsonl", rows)
    found = detect_file(request(long_model, examples, tmp_path, "de_cop"))
    first, last = found.scores.to_pylist()
    assert 0 <= first["score"] <= 1
    assert first["score"] * 24 == pytest.approx(round(first["score"] * 24))
    assert last["reason"] == TOO_FEW
    assert any("NOT calibrated" in note for note in found.notes)


def test_held_out_rows_calibrate_and_members_among_them_do_not(tmp_path, long_model):
    """Δ is the mean over documents, and of a passage's 24 orders, of what lacks to a quarter."""

    def row(first, **more):
        return {"text": TEXTS[first], "paraphrases": TEXTS[first + 1 : first + 4], **more}

    other = make_texts(20, seed=9, words=4)
    held_out = [
        {"text": other[0], "paraphrases": other[1:4], "group": "one", "label": 0},
        {"text": other[4], "paraphrases": other[5:8], "group": "one", "label": 0},
        {"text": other[8], "paraphrases": other[9:12], "group": "two", "label": 0},
        {"text": other[12], "paraphrases": other[13:16], "group": "member", "label": 1},
        {"text": other[16], "paraphrases": [], "group": "three", "label": 0},
    ]
    examples = write(tmp_path / "r.jsonl", [row(0), row(4)])
    asked = request(long_model, examples, tmp_path, "de_cop,de_cop:calibration=none")
    found = detect_file(replace(asked, held_out=write(tmp_path / "h.jsonl", held_out)))
    assert not any("NOT calibrated" in note for note in found.notes)
    assert any("calibrated on 3 clean passages" in note for note in found.notes)

    def shares(row):
        """Return the labels' probabilities among themselves in each order."""
        question = choice_question(row["text"], row["paraphrases"])
        (answers,) = label_probabilities(load_target(long_model), [question])
        raw = np.exp(answers.log_probability.astype(np.float64))
        return raw / raw.sum(axis=1, keepdims=True)

    one, same, two = (shares(row).mean(axis=0) for row in held_out[:3])
    delta = 0.25 - ((one + same) / 2 + two) / 2
    expected = [
        np.mean([rows[at].argmax() == order.index(0) for at, order in enumerate(ORDERS)])
        for shift in (delta, 0.0)
        for rows in (shares(row(0)) + shift, shares(row(4)) + shift)
    ]
    scores = found.scores["score"].to_pylist()
    assert scores == pytest.approx(expected)


def test_without_paraphrases_it_is_left_out_of_all_and_refused_by_name(tmp_path, tiny_model_path):
    examples = write(tmp_path / "r.jsonl", [{"text": text} for text in TEXTS])
    found = detect_file(request(str(tiny_model_path), examples, tmp_path, ["all"]))
    assert "de_cop" not in found.scores["detector"].to_pylist()
    assert any(
        "de_cop needs paraphrases to choose from" in note and "is left out" in note
        for note in found.notes
    )
    with pytest.raises(InputError, match="Give rows three paraphrases each"):
        detect_file(request(str(tiny_model_path), examples, tmp_path, ["loss", "de_cop"]))


def test_arxivtection_is_read_as_it_is(data_folder):
    rows = read_labelled(str(data_folder / "detect" / "decop" / "arXivTection.csv.gz"))
    assert rows.paraphrases is not None
    assert all(len(set(others)) <= 3 and len(others) == 3 for others in rows.paraphrases)
    assert len(set(rows.groups or ())) == 50
    assert rows.titles is not None
    assert "A Tale of Pronouns" in rows.titles[0]
    assert set(rows.labels or ()) == {True, False}
    assert rows.texts[0].startswith("Recent instruction fine-tuned models can solve")
