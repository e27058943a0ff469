"""The longest common run against a comparison of all places with all places."""

import time

from hypothesis import given
from hypothesis import strategies as st

from analysis.similarity.longest_common_substring import (
    CommonRun,
    common_characters,
    common_words,
    longest_common_run,
)


def slow(first, second):
    best = (0, 0, 0)
    for one in range(len(first)):
        for other in range(len(second)):
            size = 0
            while (
                one + size < len(first)
                and other + size < len(second)
                and first[one + size] == second[other + size]
            ):
                size += 1
            if size > best[0]:
                best = (size, one, other)
    return best


@given(st.text("abc ", max_size=25), st.text("abc ", max_size=25))
def test_characters(first, second):
    assert common_characters(first, second) == slow(first, second)


@given(
    st.lists(st.integers(0, 3), max_size=20),
    st.lists(st.integers(0, 3), max_size=20),
)
def test_items_of_any_kind(first, second):
    assert longest_common_run(first, second) == slow(first, second)


def test_words_are_compared_as_they_are_written():
    assert common_words("He sat on  the mat, idle", "on the mat, he slept") == CommonRun(3, 2, 0)
    assert common_words("The mat", "the Mat") == CommonRun(0, 0, 0)
    assert common_words("", "a") == CommonRun(0, 0, 0)


def test_long_texts_take_milliseconds():
    first = "".join(chr(97 + number * number % 23) for number in range(2000))
    second = "".join(chr(97 + number * 7 % 19) for number in range(2000))
    second = second[:700] + first[300:340] + second[740:]
    started = time.process_time()
    found = common_characters(first, second)
    assert time.process_time() - started < 0.5
    assert found.length >= 40
    assert first[found.first :][: found.length] == second[found.second :][: found.length]
