"""Chunks: exact slices, in order, that hold every word but a short end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.unlearning_audit.text_chunks import SourceText, cut_chunks
from inject.errors import InputError


def source(text: str, name: str = "a") -> SourceText:
    return SourceText(name, name, text, f"{name}.txt:1")


@given(
    words=st.lists(st.text("abé.“", min_size=1, max_size=5), min_size=4, max_size=60),
    blank=st.sampled_from([" ", "\n\n", "\t ", "\u3000"]),
    size=st.integers(4, 20),
)
def test_chunks_hold_the_words_in_order(words: list[str], blank: str, size: int):
    text = blank + blank.join(words) + blank
    chunks = cut_chunks([source(text)], words=size, prompt_words=3)
    held = [word for chunk in chunks for word in chunk.text.split()]
    assert held == words[: len(held)]
    assert len(words) - len(held) <= 3
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.stop]
        assert chunk.prompt + chunk.rest == chunk.text
        assert len(chunk.prompt.split()) == 3
        assert chunk.rest.split()
        assert len(chunk.text.split()) <= size
    assert [chunk.chunk for chunk in chunks] == list(range(len(chunks)))


def test_a_text_can_be_left_whole():
    texts = [source("one two three"), source("four five six seven", "b")]
    chunks = cut_chunks(texts, words=None, prompt_words=1)
    assert [(chunk.text_id, chunk.rest) for chunk in chunks] == [
        ("a", " two three"),
        ("b", " five six seven"),
    ]


def test_a_text_that_is_all_prompt_is_refused_with_its_place():
    with pytest.raises(InputError, match=r"b\.txt:1: the text has 2 words.*--prompt-words"):
        cut_chunks([source("one two three"), source("one two", "b")], words=9, prompt_words=2)
    with pytest.raises(InputError, match="leaves nothing of a chunk"):
        cut_chunks([source("one two three")], words=2, prompt_words=2)
