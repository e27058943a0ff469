"""The corpus and its token files, against a plain list of all tokens."""

import copy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.corpus.background.document import Document
from inject.corpus.build import BuildOptions, build_corpus
from inject.corpus.corpus import Corpus, CorpusFacts
from inject.corpus.tokens import TokenReader, TokenWriter, token_dtype
from inject.errors import InputError
from tests.conftest import make_texts


def documents(texts: list[str]) -> list[Document]:
    return [Document(text, f"t:{index}", index % 2) for index, text in enumerate(texts)]


def build(out: Path, tokenizer, texts: list[str], tokens: int, **more) -> CorpusFacts:
    out.mkdir(parents=True, exist_ok=True)
    return build_corpus(
        out, documents=iter(documents(texts)), tokenizer=tokenizer, tokens=tokens, **more
    )


def stream(tokenizer, texts: list[str], tokens: int) -> tuple[list[int], list[int]]:
    """The whole stream and the document starts, computed naively."""
    ids: list[int] = []
    starts = []
    for text in texts:
        if text and len(ids) < tokens:
            starts.append(len(ids))
            encoded = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
            ids += [*encoded.ids, 0]
    return ids[:tokens], starts


texts = st.lists(st.text("abc the river.\n", max_size=30), min_size=1, max_size=60)


@settings(max_examples=25, deadline=None)
@given(texts, st.data())
def test_corpus_is_the_concatenation_of_its_documents(tmp_path_factory, tiny_tokenizer, pool, data):
    available, _ = stream(tiny_tokenizer, pool, 10**9)
    if not available:
        return
    tokens = data.draw(st.integers(1, len(available)))
    size = data.draw(st.integers(1, 80))
    folder = tmp_path_factory.mktemp("corpus")
    facts = build(folder, tiny_tokenizer, pool, tokens, options=BuildOptions(shard_bytes=size))
    corpus = Corpus.open(folder)
    corpus.verify()
    ids, starts = stream(tiny_tokenizer, pool, tokens)
    assert corpus.facts == facts
    assert corpus.n_tokens == len(ids) == tokens
    assert corpus.doc_starts.tolist() == starts
    assert corpus.doc_starts.dtype == np.int64
    assert corpus.read(0, tokens).tolist() == ids
    for _ in range(5):
        start = data.draw(st.integers(0, tokens))
        stop = data.draw(st.integers(start, tokens))
        part = corpus.read(start, stop)
        assert part.dtype == np.int64
        assert part.tolist() == ids[start:stop]
    on_disk = b"".join((folder / shard.name).read_bytes() for shard in facts.shards)
    assert np.frombuffer(on_disk, "<u2").tolist() == ids
    # A shard ends after the document with which its text reaches `size` bytes.
    edges, block_bytes, position = [], 0, 0
    for text in pool:
        block_bytes += len(text.encode())
        position += len(stream(tiny_tokenizer, [text], 10**9)[0])
        if block_bytes >= size:
            edges.append(position)
            block_bytes = 0
    inner = [edge for edge in dict.fromkeys(edges) if 0 < edge < tokens]
    assert np.cumsum([shard.tokens for shard in facts.shards]).tolist() == [*inner, tokens]


def test_a_tokenizer_that_encodes_text_to_its_end_token_is_refused(tmp_path, tiny_tokenizer):
    tokenizer = copy.deepcopy(tiny_tokenizer)
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(tokenizer("a")["input_ids"][0])
    with pytest.raises(InputError, match=r"t:1: .*end token"):
        build(tmp_path, tokenizer, ["the", "a b"], 100)


def test_too_few_tokens_error_gives_the_count(tmp_path, tiny_tokenizer):
    pool = make_texts(10)
    n_tokens = len(stream(tiny_tokenizer, pool, 10**9)[0])
    with pytest.raises(InputError) as caught:
        build(tmp_path, tiny_tokenizer, pool, n_tokens + 1)
    assert f"{n_tokens:,} tokens in 10 documents" in str(caught.value)
    assert f"{n_tokens + 1:,}" in str(caught.value)
    assert build(tmp_path / "fits", tiny_tokenizer, pool, n_tokens).tokens == n_tokens


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0\0")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("tokens-00001.bin", cut),
        ("tokens-00001.bin", lengthen),
        ("tokens-00001.bin", Path.unlink),
        ("docs.npy", Path.unlink),
        ("docs.npy", lambda path: np.save(path, np.array([0, 10**9]))),
        ("corpus.json", lambda path: path.write_text("{}")),
    ],
)
def test_damaged_files_are_named(tmp_path, tiny_tokenizer, name, damage):
    build(tmp_path, tiny_tokenizer, make_texts(20), 300, options=BuildOptions(shard_bytes=200))
    Corpus.open(tmp_path)
    damage(tmp_path / name)
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        Corpus.open(tmp_path)


def test_element_types_are_chosen_at_their_limits(tmp_path):
    assert token_dtype(65_536) == "<u2"
    assert token_dtype(65_537) == "<u4"
    for vocabulary in (65_536, 65_537, 2**31):
        folder = tmp_path / str(vocabulary)
        folder.mkdir()
        ids = np.array([0, 1, vocabulary - 1])
        with TokenWriter(folder, vocabulary=vocabulary) as writer:
            writer.append(ids)
        paths = [folder / shard.name for shard in writer.shards]
        reader = TokenReader(paths, writer.shards, dtype=writer.dtype.str)
        assert reader.read(0, 3).tolist() == ids.tolist()
