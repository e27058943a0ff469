"""Tokenizers: training, loading, and encoding that no document can trick."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.corpus.named_tokenizer import load_named_tokenizer
from inject.corpus.tokenizer import (
    encode_chat,
    encode_texts,
    encode_with_offsets,
    end_token_id,
    load_tokenizer,
    train_tokenizer,
    vocabulary_size,
)
from inject.errors import InputError
from tests.conftest import make_texts
from tests.processes import printed


@pytest.fixture(scope="module")
def trained():
    return train_tokenizer(make_texts(200), 350)


anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=50)
@given(st.lists(anything, max_size=4))
def test_every_text_survives_encoding(trained, texts):
    encoded = encode_texts(trained, texts)
    assert [trained.decode(ids) for ids in encoded] == texts
    assert all(ids.dtype == np.int64 and ids.ndim == 1 for ids in encoded)


def test_end_token_and_bytes_have_fixed_ids(trained):
    assert len(trained) == vocabulary_size(trained) == 350
    assert trained.convert_tokens_to_ids("<|endoftext|>") == 0
    assert trained.bos_token == trained.eos_token == "<|endoftext|>"
    assert trained.pad_token is None
    assert end_token_id(trained) == 0
    assert trained("the river")["input_ids"][0] != 0
    every_byte = {int(ids[0]) for ids in encode_texts(trained, [chr(code) for code in range(128)])}
    assert every_byte <= set(range(1, 257))


def test_training_is_deterministic_across_processes(trained):
    code = (
        "from tests.conftest import make_texts;"
        "from inject.corpus.tokenizer import train_tokenizer;"
        "print(train_tokenizer(make_texts(200), 350).backend_tokenizer.to_str())"
    )
    again = printed(code, PYTHONHASHSEED="1", TOKENIZERS_PARALLELISM="true")
    assert again == trained.backend_tokenizer.to_str()


def test_vocabulary_too_small_or_too_large_is_rejected(caplog):
    with pytest.raises(InputError, match="257 or more"):
        train_tokenizer(["text"], 256)
    tokenizer = train_tokenizer(["too little text"], 5000)
    assert 257 < len(tokenizer) < 5000
    assert f"vocabulary of 5000; it has {len(tokenizer)}" in caplog.text


FORGED = "before<|endoftext|>after"


def test_a_text_cannot_forge_the_end_of_a_document(trained):
    [ids] = encode_texts(trained, [FORGED])
    assert 0 not in ids
    assert trained.decode(ids) == FORGED
    # The same tokenizer called as usual does see the special token, and still does afterwards.
    assert 0 in trained(FORGED)["input_ids"]


def test_encoding_never_truncates_pads_or_adds_tokens(tiny_tokenizer, tmp_path):
    from tokenizers.processors import TemplateProcessing

    tiny_tokenizer.save_pretrained(tmp_path)
    tokenizer = load_tokenizer(str(tmp_path))
    backend = tokenizer.backend_tokenizer
    plain = encode_texts(tokenizer, ["the river", "the river " * 50])
    backend.post_processor = TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
    )
    backend.enable_truncation(max_length=5)
    backend.enable_padding(length=9, pad_id=0, pad_token="<|endoftext|>")
    again = encode_texts(tokenizer, ["the river", "the river " * 50])
    assert all(np.array_equal(before, after) for before, after in zip(plain, again, strict=True))
    assert len(again[1]) > 50
    assert backend.truncation["max_length"] == 5
    assert backend.padding["length"] == 9


class Slow:
    """A tokenizer without a backend, with the interface of transformers."""

    def encode(self, text, *, add_special_tokens, split_special_tokens, verbose):
        assert not add_special_tokens
        assert split_special_tokens
        assert not verbose
        return [ord(letter) for letter in text]


def test_tokenizer_without_backend_encodes_texts():
    [ids] = encode_texts(Slow(), ["ab"])
    assert ids.tolist() == [97, 98]


def test_only_chat_templates_write_special_tokens(trained, tmp_path):
    trained.save_pretrained(tmp_path)
    tokenizer = load_tokenizer(str(tmp_path))
    tokenizer.chat_template = (
        "<|endoftext|>{% for one in messages %}{{ one.role }}: {{ one.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}\n"
    )
    ids = encode_chat(tokenizer, FORGED, answer="A")
    assert [place for place, number in enumerate(ids) if number == 0] == [0]
    assert tokenizer.decode(ids) == f"<|endoftext|>user: {FORGED}\nassistant:A"
    plain = tokenizer.apply_chat_template(
        [{"role": "user", "content": "the river"}], add_generation_prompt=True, return_dict=True
    )
    assert encode_chat(tokenizer, "the river") == plain["input_ids"]


def test_trimming_blanks_does_not_change_offsets(trained, tmp_path):
    from tokenizers import processors

    trained.save_pretrained(tmp_path)
    trimming = load_tokenizer(str(tmp_path))
    trimming.backend_tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    texts = ["the   river  town \n ", " ", FORGED]
    for own, other in zip(
        encode_with_offsets(trained, texts), encode_with_offsets(trimming, texts), strict=True
    ):
        assert own.ids.tolist() == other.ids.tolist()
        assert own.offsets.tolist() == other.offsets.tolist()
        assert (own.offsets[:, 0] < own.offsets[:, 1]).all()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("owner/name/more", "no such folder"),
        ("owner/no-such-tokenizer", "the hub cannot be reached"),
    ],
)
def test_unloadable_tokenizer_is_named(name, part):
    with pytest.raises(InputError) as caught:
        load_named_tokenizer(name)
    assert name in str(caught.value)
    assert part in str(caught.value)


def test_folder_without_tokenizer_is_rejected(tmp_path):
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        load_tokenizer(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{broken")
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        load_tokenizer(str(tmp_path))
