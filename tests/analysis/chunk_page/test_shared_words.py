"""Marked words against a comparison of all runs with all runs."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.chunk_page.page import SHORTEST_RUN, Part, mark_shared

TEXTS = st.lists(st.sampled_from(["a", "B,", "c", "—", " \n", "b"]), max_size=12).map(" ".join)


def plain(word):
    return "".join(one for one in word.lower() if one.isalnum()) or word


def slow(text, other):
    """Which words of a text lie in a run that the other one has."""
    words, there = ([plain(word) for word in one.split()] for one in (text, other))
    size = min(SHORTEST_RUN, len(words), len(there))
    return [
        size > 0
        and any(
            words[start : start + size] == there[at : at + size]
            for start in range(max(0, place - size + 1), min(place, len(words) - size) + 1)
            for at in range(len(there) - size + 1)
        )
        for place in range(len(words))
    ]


@given(TEXTS, TEXTS)
def test_parts_are_the_text_and_marks_are_its_shared_words(text, other):
    parts = mark_shared(text, other)
    assert "".join(part.text for part in parts) == text
    assert all(part.text for part in parts)
    marks = [part.shared for part in parts for _ in part.text.split()]
    assert marks == slow(text, other)
    assert all(one.shared != two.shared for one, two in pairwise(parts))


def test_capitals_and_punctuation_do_not_part_a_run():
    assert mark_shared("He — the troll, grey — sat.", "the Troll grey, — stood") == [
        Part("He — ", False),
        Part("the troll, grey —", True),
        Part(" sat.", False),
    ]


@pytest.mark.parametrize(
    ("text", "other", "marked"),
    [("a b", "b c d", []), ("Aragog", "it is Aragog.", ["Aragog"]), ("", "a", []), ("a", "", [])],
)
def test_texts_of_few_words(text, other, marked):
    assert [part.text for part in mark_shared(text, other) if part.shared] == marked
