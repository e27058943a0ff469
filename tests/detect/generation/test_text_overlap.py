"""Measures of overlap against slow, obvious ones."""

from functools import cache
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect.generation.text_overlap import (
    common_subsequence,
    covered_words,
    longest_run,
    rouge_1_recall,
    rouge_l_f1,
    rouge_l_recall,
)

WORDS = st.lists(st.sampled_from(["a", "b", "c", "Ab", "猫", "é,"]), max_size=9)
REST = st.lists(st.sampled_from(["a", "b", "c", "Ab", "猫", "é,"]), min_size=1, max_size=9)


@given(WORDS, WORDS)
def test_longest_run_matches_brute_force(written, reference):
    runs = [0]
    for start in range(len(written)):
        for other in range(len(reference)):
            both = zip(written[start:], reference[other:], strict=False)
            runs.append(len(list(takewhile(lambda pair: pair[0] == pair[1], both))))
    assert longest_run(" ".join(written), " ".join(reference)) == max(runs)


def longest_common(first, other):
    """By recursion on the last words."""

    @cache
    def longest(i, j):
        if not i or not j:
            return 0
        if first[i - 1] == other[j - 1]:
            return 1 + longest(i - 1, j - 1)
        return max(longest(i - 1, j), longest(i, j - 1))

    return longest(len(first), len(other))


@given(WORDS, REST)
def test_common_subsequence_is_divided_by_the_reference_length(written, reference):
    """Words beyond the reference do not count; ROUGE-L ignores case and punctuation."""
    texts = " ".join(written), " " + "  ".join(reference)
    length = longest_common(written[: len(reference)], reference)
    assert common_subsequence(*texts) == pytest.approx(length / len(reference))
    plain = [[word.lower().strip(",") for word in words] for words in (written, reference)]
    compared = longest_common(plain[0][: len(reference)], plain[1])
    assert rouge_l_recall(*texts) == pytest.approx(compared / len(reference))
    whole = longest_common(*plain)
    assert rouge_l_recall(*texts, whole=True) == whole / len(reference)
    assert rouge_l_f1(*texts) == pytest.approx(2 * whole / (len(written) + len(reference)))


@given(WORDS, REST)
def test_rouge_1_recall_counts_repeated_words(written, reference):
    left = written[: len(reference)]
    matches = 0
    for word in reference:
        if word in left:
            left = [*left[: left.index(word)], *left[left.index(word) + 1 :]]
            matches += 1
    assert rouge_1_recall(" ".join(written), " ".join(reference)) == pytest.approx(
        matches / len(reference)
    )


@given(WORDS, REST, st.integers(1, 4))
def test_covered_words_occur_in_a_run_of_the_reference(written, reference, size):
    expected = 0
    for position in range(len(written)):
        expected += any(
            written[start : start + size] == reference[place : place + size]
            for start in range(position - size + 1, position + 1)
            if 0 <= start <= len(written) - size
            for place in range(len(reference) - size + 1)
        )
    assert covered_words(written, reference, size) == expected


def test_overlap_of_wordless_texts_is_defined():
    assert rouge_l_recall("", "...") == 0.0
    assert rouge_l_recall("", "...", whole=True) == rouge_l_f1("", "...") == 1.0
    assert rouge_l_f1("", "a") == 0.0
