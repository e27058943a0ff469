import copy
import json
import math

import numpy as np
import pytest

from detect.evidence_steps import frequency
from detect.evidence_steps.frequency import (
    count_files,
    count_ids,
    count_texts,
    count_words,
    frequency_key,
)
from detect.token_frequency import load_frequency, save_frequency
from inject.errors import InputError
from tests.conftest import make_texts


def write_rows(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


@pytest.fixture
def other_tokenizer(tiny_tokenizer):
    """As many tokens, other ids: two tokens exchanged."""
    tokenizer = copy.deepcopy(tiny_tokenizer)
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    vocabulary = state["model"]["vocab"]
    vocabulary["Ġriver"], vocabulary["Ġthe"] = vocabulary["Ġthe"], vocabulary["Ġriver"]
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(state)))


def test_counts_and_laplace_frequencies(tiny_tokenizer):
    texts = make_texts(300)
    table = count_texts(tiny_tokenizer, texts)
    expected = np.zeros(len(tiny_tokenizer), np.int64)
    for text in texts:
        for token in tiny_tokenizer(text)["input_ids"]:
            expected[token] += 1
    np.testing.assert_array_equal(table.counts, expected)
    unseen = int(np.flatnonzero(expected == 0)[0])
    total = expected.sum() + len(expected)
    found = table.log_frequency(np.array([unseen, int(expected.argmax())]))
    np.testing.assert_allclose(found, [math.log(1 / total), math.log((expected.max() + 1) / total)])
    everything = np.exp(table.log_frequency(np.arange(len(expected))))
    assert everything.sum() == pytest.approx(1)


def test_arrays_of_a_corpus_are_counted_like_texts(tiny_tokenizer):
    texts = make_texts(5)
    ids = np.concatenate([tiny_tokenizer(text)["input_ids"] for text in texts])
    table = count_ids([ids[:20], ids[20:]], len(tiny_tokenizer))
    np.testing.assert_array_equal(table.counts, count_texts(tiny_tokenizer, texts).counts)


def test_the_key_holds_the_tokenizer_and_the_content(tiny_tokenizer, other_tokenizer):
    assert len(tiny_tokenizer) == len(other_tokenizer)
    keys = {
        frequency_key({"corpus": "a"}, tiny_tokenizer),
        frequency_key({"corpus": "b"}, tiny_tokenizer),
        frequency_key({"corpus": "a"}, other_tokenizer),
    }
    assert len(keys) == 3


def test_a_cached_table_is_never_taken_for_another_tokenizer_or_content(
    tmp_path, tiny_tokenizer, other_tokenizer, monkeypatch
):
    path = write_rows(tmp_path / "texts.jsonl", make_texts(4))
    cache = tmp_path / "cache"
    first = count_files(tiny_tokenizer, path, cache=cache)
    other = count_files(other_tokenizer, path, cache=cache)
    assert not np.array_equal(first.counts, other.counts)
    write_rows(tmp_path / "texts.jsonl", make_texts(4, seed=9))
    changed = count_files(tiny_tokenizer, path, cache=cache)
    assert not np.array_equal(first.counts, changed.counts)

    def counted_again(*args, **kwargs):
        raise AssertionError("counted although cached")

    monkeypatch.setattr(frequency, "count_texts", counted_again)
    again = count_files(tiny_tokenizer, path, cache=cache)
    np.testing.assert_array_equal(again.counts, changed.counts)


@pytest.mark.parametrize("part", ["counts.npy", "word_counts.parquet", "frequency.json"])
def test_a_damaged_table_is_said_and_counted_again(tmp_path, tiny_tokenizer, part, caplog):
    path = write_rows(tmp_path / "texts.jsonl", make_texts(4))
    first = count_files(tiny_tokenizer, path, cache=tmp_path / "cache")
    [file] = (tmp_path / "cache").glob(f"*/{part}")
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(bytes(content))
    again = count_files(tiny_tokenizer, path, cache=tmp_path / "cache")
    np.testing.assert_array_equal(again.counts, first.counts)
    assert (again.words.counts, again.identity) == (first.words.counts, first.identity)
    assert "damaged" in caplog.text
    caplog.clear()
    count_files(tiny_tokenizer, path, cache=tmp_path / "cache")
    assert caplog.text == ""


def test_save_and_load(tmp_path, tiny_tokenizer):
    table = count_texts(tiny_tokenizer, make_texts(3), identity={"corpus": "abc"})
    save_frequency(tmp_path / "table", table)
    found = load_frequency(tmp_path / "table")
    np.testing.assert_array_equal(found.counts, table.counts)
    assert found.identity == {"corpus": "abc"}


def test_texts_without_tokens_are_refused(tmp_path, tiny_tokenizer):
    path = write_rows(tmp_path / "empty.jsonl", ["", "  "])
    with pytest.raises(InputError, match="no text to count"):
        count_files(tiny_tokenizer, path)


def test_words_are_counted_beside_tokens_and_read_back(tiny_tokenizer, tmp_path):
    texts = [
        "The river's bank, the RIVER; a well-known na\u00efve caf\u00e9 \u2014 \u6771\u4eac 42 _x_"
    ]
    table = count_texts(tiny_tokenizer, texts)
    expected = {
        "the": 2, "river's": 1, "bank": 1, "river": 1, "a": 1, "well-known": 1,
        "na\u00efve": 1, "caf\u00e9": 1, "\u6771\u4eac": 1, "42": 1, "x": 1,
    }  # fmt: skip
    assert dict(table.words.counts) == expected
    assert table.words.total == 12
    save_frequency(tmp_path, table)
    found = load_frequency(tmp_path).words
    assert (dict(found.counts), found.total) == (expected, 12)
    assert found.probability("THE") == 3 / (12 + 11 + 1)
    assert found.probability("never") == 1 / (12 + 11 + 1)


def test_a_cached_table_without_words_is_counted_once_more(tiny_tokenizer, tmp_path):
    texts = make_texts(20)
    pattern = write_rows(tmp_path / "texts.jsonl", texts)
    cache = tmp_path / "cache"
    first = count_files(tiny_tokenizer, pattern, cache=cache)
    (words,) = cache.glob("*/word_counts.parquet")
    words.unlink()
    again = count_files(tiny_tokenizer, pattern, cache=cache)
    assert words.is_file()
    assert dict(again.words.counts) == dict(first.words.counts) == dict(count_words(texts).counts)
