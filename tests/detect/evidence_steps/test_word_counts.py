"""The words of a corpus are those of its documents, whatever blocks its tokens are read in."""

import numpy as np
import pytest

from detect.evidence_steps import frequency
from detect.evidence_steps.frequency import count_words
from tests.conftest import make_texts


class Stored:
    """A corpus of texts in memory."""

    end_token = 0

    def __init__(self, texts, tokenizer):
        self.ids = np.concatenate([[*tokenizer(text)["input_ids"], 0] for text in texts])
        self.n_tokens = len(self.ids)

    def read(self, start, stop):
        return self.ids[start:stop].astype(np.int64)


@pytest.mark.parametrize("block", [7, 100, 1 << 18])
def test_words_of_documents_are_cut_by_no_block(monkeypatch, tiny_tokenizer, block):
    monkeypatch.setattr(frequency, "_TOKENS_A_BLOCK", block)
    texts = make_texts(9, words=12)
    found = count_words(frequency._texts(Stored(texts, tiny_tokenizer), tiny_tokenizer))
    expected = count_words(texts)
    assert dict(found.counts) == dict(expected.counts)
    assert found.total == expected.total


def test_of_a_large_corpus_the_first_tokens_are_read(monkeypatch, tiny_tokenizer):
    monkeypatch.setattr(frequency, "_TOKENS_FOR_WORDS", 50)
    monkeypatch.setattr(frequency, "_TOKENS_A_BLOCK", 20)
    corpus = Stored(make_texts(9, words=12), tiny_tokenizer)
    found = "".join(frequency._texts(corpus, tiny_tokenizer))
    assert found == tiny_tokenizer.decode(corpus.ids[:50].tolist(), skip_special_tokens=True)
