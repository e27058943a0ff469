"""Which documents follow a corpus, and how much of them is taken."""

import pytest

from inject.corpus.background.document import Document
from inject.errors import InputError
from inject.overlap.general_text_step import OPENING, documents_after, take_tokens


class Letters:
    """A tokenizer that ignores blanks."""

    backend_tokenizer = None

    def encode(self, text, **_):
        return [ord(letter) for letter in text if not letter.isspace()]


def documents(texts):
    return iter([Document(text, "here", 0) for text in texts])


def test_documents_without_tokens_are_ignored():
    texts = ["a", " " * 100, "b" * 10, " " * 80 + "c", "d", "\n", "e"]
    texts_after = [document.text for document in documents_after(documents(texts), 2, Letters())]
    assert texts_after == [" " * 80 + "c", "d", "e"]
    taken = take_tokens(documents_after(documents(texts), 1, Letters()), 11, Letters())
    assert [len(text) for text in taken] == [10, 81]
    with pytest.raises(InputError, match="have 13 tokens after the corpus, fewer than the 99"):
        take_tokens(documents_after(documents(texts), 1, Letters()), 99, Letters())


def test_opening_of_a_long_document_ends_with_a_word():
    long = " ".join(["abcdefghi"] * 200)
    (opening,) = take_tokens(documents([long]), 10, Letters())
    assert long.startswith(opening + " ")
    assert OPENING - 10 < len(opening.replace(" ", "")) <= OPENING
    assert opening.endswith("abcdefghi")
