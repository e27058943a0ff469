"""Held-out rows: shots, populations, and calibration of `de_cop` and decisions."""

import numpy as np
import pytest

from detect.choices import ORDERS, TOO_FEW, choice_question
from inject.errors import InputError
from tests.conftest import make_texts

SCORED = [{"text": text} for text in make_texts(6, seed=1, words=12)]
FURTHER = make_texts(20, seed=2, words=8)
TEXTS = make_texts(8, words=4)


def test_shots_and_populations_come_from_the_file(detect, write):
    rows = [{"text": text, "label": int(number > 15)} for number, text in enumerate(FURTHER)]
    detectors = "recall:shots=1,con_recall:shots=1,codec:draws=2:skip=2,camia,recall:shots=12"
    result = detect(SCORED, detectors, held_out=write(rows, "held.jsonl"))
    scores = result.scores.to_pylist()
    assert {row["detector"] for row in scores} == {"recall", "con_recall", "codec", "camia"}
    assert [row for row in scores if row["reason"]] == []
    assert any(note.startswith("recall: at most ") for note in result.notes), "12 do not fit"


def test_known_members_are_required_if_the_file_has_none(detect, write):
    held_out = write([{"text": text} for text in FURTHER], "held.jsonl")
    with pytest.raises(InputError, match="Rows of it with label 1 are known members"):
        detect(SCORED, "con_recall", held_out=held_out)


def test_detectors_that_read_only_the_text_also_score_held_out_rows(detect, write):
    rows = [{"text": text, "group": str(at // 2)} for at, text in enumerate(FURTHER)]
    result = detect(SCORED, "loss,lowercase,min_k:k=0.2", held_out=write(rows, "held.jsonl"))
    table = result.calibration.scores
    assert set(table["detector"].to_pylist()) == {"loss", "min_k"}
    assert result.calibration.groups[:4] == ("group 0", "group 0", "group 1", "group 1")
    scored = detect([{"text": text} for text in FURTHER], "loss,min_k:k=0.2").scores
    assert table["score"].to_pylist() == pytest.approx(scored["score"].to_pylist(), abs=1e-5)
    assert any(note.endswith(": lowercase") for note in result.notes)
    assert detect(SCORED, "lowercase", held_out=write(rows, "held.jsonl")).calibration is None


@pytest.fixture
def long_model(tmp_path, tiny_tokenizer):
    from tests.detect.models import random_target

    target = random_target("llama", tiny_tokenizer, context=1024)
    target.model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def row(first, texts=TEXTS, **more):
    return {"text": texts[first], "paraphrases": texts[first + 1 : first + 4], **more}


def test_rows_with_paraphrases_are_scored_and_others_get_a_reason(detect, long_model):
    result = detect([row(0, label=1), {"text": TEXTS[4], "label": 0}], "de_cop", model=long_model)
    first, last = result.scores.to_pylist()
    assert 0 <= first["score"] <= 1
    assert first["score"] * 24 == pytest.approx(round(first["score"] * 24))
    assert last["reason"] == TOO_FEW
    assert any("NOT calibrated" in note for note in result.notes)


def test_held_out_rows_calibrate_and_members_among_them_do_not(detect, write, long_model):
    """Δ of a label is 1/4 minus its mean share over a passage's 24 orders and over documents."""
    from detect.engine.label_probabilities import label_probabilities
    from detect.engine.target import load_target

    other = make_texts(20, seed=9, words=4)
    held_out = [
        row(0, other, group="one", label=0),
        row(4, other, group="one", label=0),
        row(8, other, group="two", label=0),
        row(12, other, group="member", label=1),
        {"text": other[16], "paraphrases": [], "group": "three", "label": 0},
    ]
    result = detect(
        [row(0), row(4)],
        "de_cop,de_cop:calibration=none",
        model=long_model,
        held_out=write(held_out, "held.jsonl"),
    )
    assert not any("NOT calibrated" in note for note in result.notes)
    assert any("calibrated on 3 clean passages" in note for note in result.notes)

    def shares(passage):
        """Return the labels' probabilities in each order, normalized to a sum of 1."""
        question = choice_question(passage["text"], passage["paraphrases"])
        (answers,) = label_probabilities(load_target(long_model), [question])
        raw = np.exp(answers.log_probability.astype(np.float64))
        return raw / raw.sum(axis=1, keepdims=True)

    first, same_group, second = (shares(passage).mean(axis=0) for passage in held_out[:3])
    delta = 0.25 - ((first + same_group) / 2 + second) / 2
    expected = [
        np.mean([rows[at].argmax() == order.index(0) for at, order in enumerate(ORDERS)])
        for shift in (delta, 0.0)
        for rows in (shares(row(0)) + shift, shares(row(4)) + shift)
    ]
    scores = result.scores["score"].to_pylist()
    assert scores == pytest.approx(expected)
