"""Rows whose passages have the same words are one group, and no others."""

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from inject.examples.datasets.source import passage_group

WORDS = ["river", "Ørsted", "straße", "naïve", "река", "2026", "ποταμός", "نهر", "한강"]
CHARACTERS = ["河", "水", "東", "か"]
words = st.lists(st.sampled_from([*WORDS, *CHARACTERS]), min_size=1, max_size=8)
signs = st.text(
    " ,.;:!?-\n\t\u00a0\u3000\u2014\u300c\u300d\u3002\u2026()\u201c\u201d\"'", max_size=3
)


@st.composite
def spelling(draw, given_words):
    """The words with blanks and signs between them, and in capitals or taken apart at will."""
    parts = [draw(signs)]
    for word, behind in zip(given_words, [*given_words[1:], ""], strict=True):
        if draw(st.booleans()):
            word = word.title()
        if draw(st.booleans()):
            word = unicodedata.normalize("NFD", word)
        between = draw(signs)
        # A character of a script without spaces is a word by itself.
        if not between and behind and not {word, behind} & set(CHARACTERS):
            between = " "
        parts += [word, between]
    return "".join(parts)


@settings(max_examples=40, deadline=None)
@given(st.data(), words)
def test_signs_blanks_and_capitals_make_no_other_group(data, given_words):
    one, other = (data.draw(spelling(given_words)) for _ in range(2))
    assert passage_group(one) == passage_group(other)


@settings(max_examples=40, deadline=None)
@given(st.data(), words, words)
def test_other_words_are_another_group(data, given_words, other_words):
    one, other = data.draw(spelling(given_words)), data.draw(spelling(other_words))
    assert (passage_group(one) == passage_group(other)) == (given_words == other_words)
