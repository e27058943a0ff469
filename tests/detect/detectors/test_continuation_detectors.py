"""Detectors of continuations: their formulas, their edge cases, and a memorising model."""

import math
import zlib
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect.detector_settings import needs_of, parse_detectors
from detect.evidence import Evidence
from detect.generation.continuations import Continued
from detect.registry import get_detector
from inject.words import words_of

NAMES = ("prefix", "samia", "cdd", "ngram_coverage")
REST = "two three, four two."


def given_texts(name, *texts, ending=REST, greedy=None, reason=None, **parameters):
    """Score invented continuations; by default the first one is the greedy one."""
    detector = get_detector(name).detector
    setting = detector.parameters.model_validate(parameters)
    continuations = {}
    for need in detector.needs_with(setting):
        own = (
            (greedy if greedy is not None else texts[0],)
            if need.request.temperature == 0
            else texts
        )
        continuations[need.request] = [
            Continued("one", ending, () if reason else own, reason=reason)
        ]
    (column,) = detector.score(
        Evidence(texts=["one" + ending], statistics={}, continuations=continuations), [setting]
    )
    return column.scores[0]


@pytest.mark.parametrize("name", NAMES)
def test_undivided_text_has_no_score(name):
    result = given_texts(name, "", reason="empty text")
    assert math.isnan(result.value)
    assert result.reason == "empty text"


@pytest.mark.parametrize("name", NAMES)
def test_empty_continuation_scores_as_no_match(name):
    # Fifty empty continuations are all equal, which is what `cdd` measures.
    assert given_texts(name, "", "").value == (1.0 if name == "cdd" else 0.0)


def test_prefix_measures():
    """Three of five words are in order: "two", "four", "two."; "three" lacks a comma."""
    written = " two three four x two. and more"
    ending = "two three, four five two."
    assert given_texts("prefix", written, ending=ending).value == pytest.approx(3 / 5)
    assert given_texts("prefix", written, ending=ending, measure="rouge_l").value == pytest.approx(
        4 / 5
    )
    assert given_texts("prefix", written, ending=ending, measure="exact").value == 0.0
    assert given_texts("prefix", ending, ending=ending, measure="exact").value == 1.0
    assert given_texts("prefix", ending, ending=ending, measure="correct").value == 1.0
    assert given_texts("prefix", written, ending=ending, measure="correct").value == 1.0
    assert given_texts("prefix", "no such thing", ending=ending, measure="correct").value == 0.0


texts_of_words = st.lists(st.sampled_from(["two", "three,", "four", "two.", "猫"]), max_size=8).map(
    " ".join
)


@given(st.lists(texts_of_words, min_size=1, max_size=5), st.booleans())
def test_samia_is_the_mean_recall_of_the_samples(texts, compressed):
    expected = []
    for text in texts:
        words = text.split()[:4]
        counts, matches = Counter(words), 0
        for word in REST.split():
            if counts[word] > 0:
                counts[word] -= 1
                matches += 1
        weight = len(zlib.compress(" ".join(words).encode())) if compressed else 1
        expected.append(matches / 4 * weight)
    score = given_texts("samia", *texts, zlib=compressed, samples=len(texts))
    assert score.value == pytest.approx(np.mean(expected))


def naive_distance(first, second):
    """Edit distance as a full table."""
    table = np.zeros((len(first) + 1, len(second) + 1), dtype=int)
    table[:, 0], table[0] = range(len(first) + 1), range(len(second) + 1)
    for row, token in enumerate(first, 1):
        for column, other in enumerate(second, 1):
            table[row, column] = min(
                table[row - 1, column] + 1,
                table[row, column - 1] + 1,
                table[row - 1, column - 1] + (token != other),
            )
    return int(table[-1, -1])


@given(
    texts_of_words,
    st.lists(texts_of_words, min_size=1, max_size=5),
    st.sampled_from(["0", "0.05", "0.25", "0.5"]),
)
def test_cdd_is_the_share_of_samples_within_the_distance(greedy, texts, alpha):
    tokens = [words_of(words)[:100] for words in (greedy, *texts)]
    longest = max(map(len, tokens))
    near = [naive_distance(tokens[0], words) <= Decimal(alpha) * longest for words in tokens[1:]]
    result = given_texts("cdd", *texts, greedy=greedy, alpha=alpha, samples=len(texts))
    assert result.value == pytest.approx(np.mean(near))


def test_cdd_compares_100_tokens_and_does_not_cut_code():
    """Known pitfall: the authors' code cuts every answer at three backticks."""
    same = " ".join(f"w{number}" for number in range(100))
    assert given_texts("cdd", same + " x y", same, greedy=same + " z", alpha="0").value == 1.0
    fenced = "```\nfirst\n```"
    assert given_texts("cdd", "```\nsecond\n```", greedy=fenced, alpha="0").value == 0.0


def test_cdd_can_share_the_samples_of_samia():
    shared = needs_of(parse_detectors("cdd:samples=10:temperature=1:top_k=50,samia,ngram_coverage"))
    assert len(shared) == 2
    assert needs_of(parse_detectors("cdd"))[1].request.samples == 50


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        # "two three four" covers 3 words of 5; the reference has 4 words, the samples 5 and 1.
        ({"over": "generation"}, 3 / 5),
        ({"over": "reference"}, 3 / 5),
        ({"over": "both"}, 6 / 10),
        ({"aggregate": "mean"}, 3 / 10),
        ({"aggregate": "median"}, 3 / 10),
        ({"aggregate": "min"}, 0.0),
        ({"n": "4"}, 0.0),
        ({"n": "1"}, 3 / 5),
    ],
)
def test_ngram_coverage(parameters, expected):
    result = given_texts("ngram_coverage", "Two three four! x y", "four", **parameters)
    assert result.value == pytest.approx(expected)
