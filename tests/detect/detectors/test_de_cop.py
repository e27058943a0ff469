"""DE-COP against its definition, order by order, and its calibration against algorithm 1."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from detect.access import Access
from detect.choices import ChoiceAnswers, ChoiceEvidence
from detect.detector_settings import parse_detectors, with_grids
from detect.evidence import Evidence
from detect.scoring import score_rows
from inject.errors import InputError


def random_answers(count, *, seed=0, bias=(0.0, 0.0, 0.0, 0.0)):
    random = np.random.Generator(np.random.Philox(key=seed))
    logs = -random.gamma(2.0, 1.0, (count, 24, 4)) + np.array(bias)
    return [ChoiceAnswers(log_probability=table.astype(np.float32)) for table in logs]


def evidence_of(answers, clean=(), documents=None):
    documents = documents if documents is not None else [str(row) for row in range(len(clean))]
    clean = [replace(answer, document=name) for answer, name in zip(clean, documents, strict=True)]
    choices = ChoiceEvidence(answers=answers, clean=clean)
    return Evidence(texts=["x"] * len(answers), statistics={}, choices=choices)


def score_evidence(evidence, detectors="de_cop"):
    names = [str(row) for row in range(len(evidence.texts))]
    return score_rows(names, evidence, with_grids(parse_detectors(detectors)))


def values(scores, setting="-"):
    rows = scores[0].to_pylist()
    return [row["score"] for row in rows if row["setting"] == setting]


def naive(answers, clean, documents):
    """Equation by equation, in float64, with plain loops."""

    def shares(row):
        weights = [math.exp(float(value)) for value in row]
        return [weight / sum(weights) for weight in weights]

    delta = [0.0] * 4
    if clean:
        means = {}
        for answer, document in zip(clean, documents, strict=True):
            orders = [shares(row) for row in answer.log_probability]
            passage = [sum(order[label] for order in orders) / 24 for label in range(4)]
            means.setdefault(document, []).append(passage)
        books = [[sum(p[label] for p in m) / len(m) for label in range(4)] for m in means.values()]
        delta = [0.25 - sum(book[label] for book in books) / len(books) for label in range(4)]
    right = 0
    for order, row in zip(
        itertools.permutations(["verbatim", "p1", "p2", "p3"]), answers.log_probability, strict=True
    ):
        adjusted = [value + change for value, change in zip(shares(row), delta, strict=True)]
        best = [label for label in range(4) if adjusted[label] == max(adjusted)]
        right += len(best) == 1 and order[best[0]] == "verbatim"
    return right / 24


@pytest.mark.parametrize("bias", [(0.0, 0.0, 0.0, 0.0), (2.0, 0.0, -1.0, 0.5)])
def test_score_is_the_share_of_orders_answered_correctly(bias):
    answers = random_answers(7, seed=1, bias=bias)
    clean = random_answers(5, seed=2, bias=bias)
    documents = ["a", "a", "b", "a", "c"]
    results = score_evidence(evidence_of(answers, clean, documents))
    assert values(results) == pytest.approx([naive(answer, clean, documents) for answer in answers])
    assert values(results, "calibration=none") == pytest.approx(
        [naive(answer, [], []) for answer in answers]
    )


def test_missing_clean_passages_are_reported_as_no_calibration():
    _, notes = score_evidence(evidence_of(random_answers(1)))
    assert "NOT calibrated" in notes[0]
    unanswered = ChoiceAnswers(reason="why")
    assert "NOT calibrated" in score_evidence(evidence_of(random_answers(1), [unanswered]))[1][0]


def test_equally_likely_labels_give_no_choice():
    equal = ChoiceAnswers(log_probability=np.full((24, 4), -3.0, np.float32))
    assert values(score_evidence(evidence_of([equal]))) == [0.0]


def test_letters_are_compared_with_the_verbatim_position():
    right = [order.index(0) for order in itertools.permutations(range(4))]
    some = [place if row % 3 else -1 for row, place in enumerate(right)]
    answers = [
        ChoiceAnswers(letters=np.array(right, np.int8)),
        ChoiceAnswers(letters=np.array(some, np.int8)),
        ChoiceAnswers(letters=np.zeros(24, np.int8)),
    ]
    results = score_evidence(evidence_of(answers))
    assert values(results) == pytest.approx([1.0, 16 / 24, 6 / 24])
    assert "letters have no probabilities" in results[1][0]


def test_passage_without_answers_has_a_reason():
    table, _ = score_evidence(
        evidence_of([ChoiceAnswers(reason="no three paraphrases"), *random_answers(1)])
    )
    row = table.to_pylist()[0]
    assert math.isnan(row["score"])
    assert row["reason"] == "no three paraphrases"


def test_score_is_not_a_thresholded_prediction():
    """A known mistake of public code: an AUC of thresholded predictions."""
    scores = values(score_evidence(evidence_of(random_answers(60, seed=4))))
    assert len(set(scores)) > 5


def test_de_cop_needs_answers_and_only_text_access():
    (setting,) = parse_detectors("DE-COP".replace("-", ""))
    assert setting.name == "de_cop"
    assert setting.detector.access_with(setting.parameters) is Access.TEXT
    with pytest.raises(InputError, match="de_cop needs paraphrases to choose from"):
        score_evidence(Evidence(texts=["x"], statistics={}))
