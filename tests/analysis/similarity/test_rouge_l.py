"""ROUGE-L against a slow recursion over subsequences."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.similarity.rouge_l import RougeL, rouge_l
from detect.generation.text_overlap import rouge_l_f1

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
    found = rouge_l(", ".join(one), " ".join(other))
    if not one or not other:
        assert found == RougeL(*[float(one == other)] * 3)
        return
    length = slow_length(one, other)
    assert found.precision == length / len(one)
    assert found.recall == length / len(other)
    assert found.f1 == pytest.approx(2 * length / (len(one) + len(other)))
    assert found.f1 == rouge_l_f1(" ".join(one), " ".join(other))


def test_an_answer_of_the_paper_has_full_recall():
    found = rouge_l("Hagrid’s giant spider friend is named Aragog.", "Aragog")
    assert found.recall == 1
    assert found.precision == 1 / 8  # the apostrophe parts a word in two
