"""Measures of overlap against slow, obvious ones."""

from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect.generation.text_overlap import (
    common_subsequence,
    covered_words,
    longest_run,
    repeats,
    rouge_1_recall,
    rouge_l_f1,
    rouge_l_recall,
    token_sort_ratio,
)

WORDS = st.lists(st.sampled_from(["a", "b", "c", "Ab", "猫", "é,"]), max_size=9)
REST = st.lists(st.sampled_from(["a", "b", "c", "Ab", "猫", "é,"]), min_size=1, max_size=9)


def naive_lcs(first, second):
    """By recursion on the first words, without a table."""
    if not first or not second:
        return 0
    if first[0] == second[0]:
        return 1 + naive_lcs(first[1:], second[1:])
    return max(naive_lcs(first[1:], second), naive_lcs(first, second[1:]))


@given(WORDS, WORDS)
def test_the_longest_run_is_that_of_all_places_against_all_places(written, rest):
    runs = [0]
    for one in range(len(written)):
        for other in range(len(rest)):
            both = zip(written[one:], rest[other:], strict=False)
            runs.append(len(list(takewhile(lambda pair: pair[0] == pair[1], both))))
    assert longest_run(" ".join(written), " ".join(rest)) == max(runs)


@given(WORDS, REST)
def test_the_common_subsequence_is_over_the_words_of_the_rest(written, rest):
    found = common_subsequence(" ".join(written), " " + "  ".join(rest))
    assert found == pytest.approx(naive_lcs(written[: len(rest)], rest) / len(rest))


@given(WORDS, REST)
def test_rouge_1_recall_counts_each_word_as_often_as_it_stands_in_the_rest(written, rest):
    left = written[: len(rest)]
    found = 0
    for word in rest:
        if word in left:
            left = [*left[: left.index(word)], *left[left.index(word) + 1 :]]
            found += 1
    assert rouge_1_recall(" ".join(written), " ".join(rest)) == pytest.approx(found / len(rest))


@given(WORDS, REST, st.integers(1, 4))
def test_covered_words_stand_in_a_run_of_the_other_text(written, reference, size):
    expected = 0
    for position in range(len(written)):
        expected += any(
            written[start : start + size] == reference[there : there + size]
            for start in range(position - size + 1, position + 1)
            if 0 <= start <= len(written) - size
            for there in range(len(reference) - size + 1)
        )
    assert covered_words(written, reference, size) == expected


def test_a_run_is_compared_by_whole_words():
    assert covered_words(["he", "sat"], ["the", "sat"], 2) == 0


def test_words_beyond_the_rest_gain_nothing():
    assert common_subsequence("x y z a b", "a b") == 0
    assert rouge_1_recall("x y a b", "a b") == 0


def test_rouge_l_reads_small_letters_without_punctuation():
    assert rouge_l_recall("the CAT sat", "The cat, sat.") == 1.0
    assert common_subsequence("the CAT sat", "The cat, sat.") == 0.0
    assert rouge_l_recall("", "...") == 0.0
    # Two of three words, both ways: 2 · 2 / (3 + 3).
    assert rouge_l_f1("a b x", "a b c") == pytest.approx(2 / 3)
    assert rouge_l_f1("", "a") == 0.0


def test_exact_repetition_is_by_character():
    assert repeats(" the cat sat. And", "the cat sat.")
    assert not repeats(" the cat sa", "the cat sat.")


def test_the_token_sort_ratio_is_blind_to_order():
    assert token_sort_ratio("sat cat the", "The cat sat.") == 100
    # "cat sat the" against "cat dog sat": "cat sat" is common, 7 characters; 2 · 7 / 22.
    assert token_sort_ratio("the cat sat", "dog cat sat") == pytest.approx(100 * 14 / 22, abs=0.1)
