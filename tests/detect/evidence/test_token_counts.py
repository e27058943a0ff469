import json
import math
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from detect.evidence import token_counts
from detect.evidence.token_counts import (
    count_files,
    count_texts,
    count_words,
    file_frequency_step,
)
from detect.token_frequency import load_frequency, save_frequency
from inject.errors import InputError
from tests.conftest import make_texts
from train.models.model_node import ModelNode


def write_rows(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


def test_counts_give_laplace_frequencies(tiny_tokenizer):
    texts = make_texts(300)
    table = count_texts(tiny_tokenizer, texts)
    expected = np.zeros(len(tiny_tokenizer), np.int64)
    for text in texts:
        for token in tiny_tokenizer(text)["input_ids"]:
            expected[token] += 1
    np.testing.assert_array_equal(table.counts, expected)
    unseen = int(np.flatnonzero(expected == 0)[0])
    total = expected.sum() + len(expected)
    frequencies = table.log_frequency(np.array([unseen, int(expected.argmax())]))
    np.testing.assert_allclose(
        frequencies, [math.log(1 / total), math.log((expected.max() + 1) / total)]
    )
    everything = np.exp(table.log_frequency(np.arange(len(expected))))
    assert everything.sum() == pytest.approx(1)


def test_count_table_belongs_to_one_content_and_one_tokenizer(tmp_path, tiny_model_path):
    """Known mistake: confusing the tables of two tokenizers of the same size."""
    other = tmp_path / "other"
    shutil.copytree(tiny_model_path, other)
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    words = tokenizer["model"]["vocab"]
    words["Ġriver"], words["Ġthe"] = words["Ġthe"], words["Ġriver"]
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    path = write_rows(tmp_path / "texts.jsonl", make_texts(4))

    def digest(model):
        return file_frequency_step(path, ModelNode(pretrained=str(model))).digest

    first = digest(tiny_model_path)
    assert digest(tiny_model_path) == first != digest(other)
    write_rows(tmp_path / "texts.jsonl", make_texts(4, seed=9))
    assert digest(tiny_model_path) != first


def test_texts_without_tokens_are_rejected(tmp_path, tiny_tokenizer):
    path = write_rows(tmp_path / "empty.jsonl", ["", "  "])
    with pytest.raises(InputError, match="no text to count"):
        count_files(tiny_tokenizer, path)


def test_words_are_counted_alongside_tokens_and_restored(tiny_tokenizer, tmp_path):
    texts = [
        "The river's bank, the RIVER; a well-known na\u00efve caf\u00e9 \u2014 \u6771\u4eac 42 _x_"
    ]
    table = count_texts(tiny_tokenizer, texts, identity={"corpus": "abc"})
    expected = {
        "the": 2, "river's": 1, "bank": 1, "river": 1, "a": 1, "well-known": 1,
        "na\u00efve": 1, "caf\u00e9": 1, "\u6771\u4eac": 1, "42": 1, "x": 1,
    }  # fmt: skip
    assert dict(table.words.counts) == expected
    assert table.words.total == 12
    save_frequency(tmp_path, table)
    stored = load_frequency(tmp_path)
    np.testing.assert_array_equal(stored.counts, table.counts)
    assert stored.identity == {"corpus": "abc"}
    words = stored.words
    assert (dict(words.counts), words.total) == (expected, 12)
    assert words.probability("THE") == 3 / (12 + 11 + 1)
    assert words.probability("never") == 1 / (12 + 11 + 1)


class Stored:
    """A corpus of texts in memory."""

    facts = SimpleNamespace(end_token=0)

    def __init__(self, texts, tokenizer):
        self.ids = np.concatenate([[*tokenizer(text)["input_ids"], 0] for text in texts])
        self.n_tokens = len(self.ids)

    def read(self, start, stop):
        return self.ids[start:stop].astype(np.int64)


@pytest.mark.parametrize("block", [7, 100, 1 << 18])
def test_block_edges_do_not_cut_words(monkeypatch, tiny_tokenizer, block):
    monkeypatch.setattr(token_counts, "_TOKENS_A_BLOCK", block)
    texts = make_texts(9, words=12)
    words = count_words(token_counts._texts(Stored(texts, tiny_tokenizer), tiny_tokenizer))
    expected = count_words(texts)
    assert dict(words.counts) == dict(expected.counts)
    assert words.total == expected.total


def test_only_the_first_tokens_of_a_large_corpus_are_read(monkeypatch, tiny_tokenizer):
    monkeypatch.setattr(token_counts, "_TOKENS_FOR_WORDS", 50)
    monkeypatch.setattr(token_counts, "_TOKENS_A_BLOCK", 20)
    corpus = Stored(make_texts(9, words=12), tiny_tokenizer)
    text = "".join(token_counts._texts(corpus, tiny_tokenizer))
    assert text == tiny_tokenizer.decode(corpus.ids[:50].tolist(), skip_special_tokens=True)
