"""ROUGE-L against a slow recursion over subsequences."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect.generation.text_overlap import rouge_l_f1, rouge_l_recall

WORDS = st.lists(st.sampled_from(["a", "b", "c", "D"]), max_size=9)


def slow_length(one, other):
    @cache
    def longest(i, j):
        if i == len(one) or j == len(other):
            return 0
        if one[i].lower() == other[j].lower():
            return 1 + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1))

    return longest(0, 0)


@given(WORDS, WORDS)
def test_it_is_the_longest_common_subsequence_over_words(one, other):
    texts = ", ".join(one), " ".join(other)
    if not one or not other:
        assert rouge_l_recall(*texts, whole=True) == rouge_l_f1(*texts) == float(one == other)
        return
    length = slow_length(one, other)
    assert rouge_l_recall(*texts, whole=True) == length / len(other)
    assert rouge_l_f1(*texts) == pytest.approx(2 * length / (len(one) + len(other)))


def test_an_answer_of_the_paper_has_full_recall():
    answer = "Hagrid’s giant spider friend is named Aragog."
    assert rouge_l_recall(answer, "Aragog", whole=True) == 1
    # As a continuation it is compared as far as the text goes: its first word.
    assert rouge_l_recall(answer, "Aragog") == 0
