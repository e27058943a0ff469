"""PD and PAC against loops, their sign, and swaps that depend on the text alone."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from detect.detector_settings import parse_detectors
from detect.engine.forward_pass import token_statistics
from detect.evidence import Evidence
from detect.policy import ScoringPolicy
from detect.scoring import score_rows
from detect.token_statistics import EMPTY_TEXT, unscored
from detect.views import SWAPPED, view_text
from tests.conftest import make_texts
from tests.detect.evidence_samples import random_statistics, statistics_of
from tests.detect.models import random_target


def scores(evidence, name):
    names = [str(row) for row in range(len(evidence.texts))]
    return score_rows(names, evidence, parse_detectors(name)).table.to_pylist()


def naive_distance(values):
    ordered = sorted(map(float, values))
    low = max(1, len(ordered) * 30 // 100)
    high = max(1, len(ordered) * 5 // 100)
    return sum(ordered[len(ordered) - high :]) / high - sum(ordered[:low]) / low


@given(st.lists(st.floats(-30, 0, width=32), min_size=1, max_size=90))
def test_pd_is_the_negative_distance_of_the_two_ends(values):
    """The minus is the paper's: members are nearer to the middle."""
    (row,) = scores(Evidence(texts=["x"], statistics={"text": [statistics_of(values)]}), "pd")
    assert row["score"] == pytest.approx(-naive_distance(values), rel=1e-9, abs=1e-9)


def test_pd_of_one_token_and_of_equal_tokens_is_nothing():
    rows = [statistics_of([-3.0]), statistics_of([-2.0] * 7), unscored(EMPTY_TEXT)]
    found = scores(Evidence(texts=["x", "y", ""], statistics={"text": rows}), "pd")
    assert [row["score"] for row in found[:2]] == [0, 0]
    assert found[2]["reason"] == EMPTY_TEXT


def evidence_of(texts, seed=0):
    views = ("text", *SWAPPED)
    statistics = {
        view: [
            random_statistics(30 + row, seed=seed + 10 * row + place) for row in range(len(texts))
        ]
        for place, view in enumerate(views)
    }
    return Evidence(texts=texts, statistics=statistics)


def test_pac_is_calibrated_by_the_mean_of_the_five():
    evidence = evidence_of(["two words", "a b c"])
    for row, found in enumerate(scores(evidence, "pac")):
        distances = {
            view: naive_distance(rows[row].log_probability)
            for view, rows in evidence.statistics.items()
        }
        text = distances.pop("text")
        assert found["score"] == pytest.approx(-(text - sum(distances.values()) / 5), rel=1e-6)


def test_pac_of_one_word_has_a_reason():
    (row,) = scores(evidence_of(["word"]), "pac")
    assert math.isnan(row["score"])
    assert "fewer than two words" in row["reason"]


@given(st.text(max_size=60), st.sampled_from(SWAPPED))
def test_swaps_move_words_alone(text, view):
    swapped = view_text(view, text)
    assert Counter(swapped.split()) == Counter(text.split())
    assert len(swapped) == len(text)
    assert swapped == view_text(view, text)


def test_the_number_of_swaps_is_that_of_the_paper():
    two = view_text(SWAPPED[0], "first  second\n")
    assert two == "second  first\n"
    text = " ".join(map(str, range(100)))
    moved = sum(
        a != b for a, b in zip(text.split(), view_text("swapped-2", text).split(), strict=True)
    )
    assert 40 <= moved <= 60  # thirty swaps of two words each, some of them moved twice
    assert len({view_text(view, text) for view in SWAPPED}) == 5


def test_swaps_depend_on_no_other_text():
    """A known pitfall of public code: one global seed, so that scores depend on the order."""
    texts = make_texts(5, words=12)
    forwards = {text: view_text("swapped-1", text) for text in texts}
    backwards = {text: view_text("swapped-1", text) for text in texts[::-1]}
    assert forwards == backwards


@pytest.mark.parametrize("text", ["世界", "Привет, мир", "the the the", "", " ", "a"])
def test_any_text_has_its_forms(text):
    for view in SWAPPED:
        assert Counter(view_text(view, text)) == Counter(text)


def test_members_of_a_model_that_memorised_them_score_higher(tiny_tokenizer):
    members, others = make_texts(4, seed=1, words=12), make_texts(4, seed=2, words=12)
    target = random_target("llama", tiny_tokenizer)
    encoded = [torch.tensor([ids]) for ids in tiny_tokenizer(members)["input_ids"]]
    optimizer = torch.optim.AdamW(target.model.parameters(), lr=1e-2)
    for _ in range(60):
        for ids in encoded:
            target.model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    texts = [*members, *others]
    statistics = {
        view: token_statistics(target, [view_text(view, text) for text in texts], ScoringPolicy())
        for view in ("text", *SWAPPED)
    }
    for name in ("pd", "pac"):
        found = [row["score"] for row in scores(Evidence(texts=texts, statistics=statistics), name)]
        assert min(found[:4]) > max(found[4:])
