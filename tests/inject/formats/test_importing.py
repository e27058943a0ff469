"""Imports against the files' own bytes: tokens, documents, digests, and invalid files."""

import hashlib
import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.corpus.corpus import Corpus
from inject.corpus.imported_layout import token_files
from inject.errors import InputError
from inject.formats import importing, megatron
from inject.formats.importing import import_corpus
from inject.formats.megatron import MegatronImport
from inject.formats.olmo import OlmoImport
from inject.settings import plain
from tests.inject.formats.readers import write_megatron

END = 0
"""The end token of `tiny_tokenizer`, whose ids are 0 to 386."""


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    """Read three tokens and three index entries at a time, so that blocks end everywhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importing, "_BLOCK", 3)
        patch.setattr(megatron, "_BLOCK", 3)
        yield


ids = st.integers(0, 386)
sequences = st.lists(ids, max_size=6)
documents_of_sequences = st.lists(st.lists(sequences, max_size=3), min_size=1, max_size=6).filter(
    lambda documents: any(sequence for document in documents for sequence in document)
)


def import_source(tmp_path_factory, source, tokenizer, tokens=None):
    out = tmp_path_factory.mktemp("corpus")
    facts = import_corpus(out, source, tokenizer=tokenizer, tokens=tokens)
    corpus = Corpus.open(out)
    assert corpus.facts == facts
    return corpus, corpus.read(0, corpus.n_tokens).tolist()


def olmo_starts(files: list[list[int]]) -> list[int]:
    """Document starts by the description: after each end token, and at each file."""
    starts, at = [], 0
    for file in files:
        for position, _ in enumerate(file):
            if position == 0 or file[position - 1] == END:
                starts.append(at + position)
        at += len(file)
    return starts


@given(documents=documents_of_sequences, code=st.sampled_from([8, 4, 3, 5]), data=st.data())
@settings(max_examples=25, deadline=None)
def test_megatron_tokens_and_documents_are_imported(
    tmp_path_factory, tiny_tokenizer, documents, code, data
):
    prefix = tmp_path_factory.mktemp("megatron") / "data"
    write_megatron(prefix, documents, code=code)
    whole = [[token for sequence in document for token in sequence] for document in documents]
    whole = [document for document in whole if document]
    stream = [token for document in whole for token in document]
    cut = data.draw(st.integers(1, len(stream)))
    starts = np.cumsum([0, *map(len, whole[:-1])]).tolist()
    for tokens in (None, cut):
        corpus, ids = import_source(
            tmp_path_factory,
            MegatronImport(kind="megatron", path=str(prefix)),
            tiny_tokenizer,
            tokens,
        )
        expected = stream[:tokens]
        assert ids == expected
        assert corpus.doc_starts.tolist() == [at for at in starts if at < len(expected)]
        # The last document of a cut stream has no end token after it.
        ends = [at for at in starts[1:] if at < len(expected)]
        ends += [len(stream)] if len(expected) == len(stream) else []
        unended = sum(stream[at - 1] != END for at in ends)
        assert corpus.facts.mixture[0]["documents_without_end_token"] == unended


@given(
    files=st.lists(
        st.lists(st.sampled_from([END, 1, 2, 386]), min_size=1, max_size=12), min_size=1, max_size=4
    ),
    header=st.booleans(),
    data=st.data(),
)
@settings(max_examples=25, deadline=None)
def test_olmo_tokens_and_documents_are_imported(
    tmp_path_factory, tiny_tokenizer, files, header, data
):
    folder = tmp_path_factory.mktemp("olmo")
    for number, file in enumerate(files):
        array = np.array(file, dtype="<u2")
        path = folder / f"part-{number}.npy"
        if header and number % 2:
            np.save(path, array)
        else:
            array.tofile(path)
    stream = [token for file in files for token in file]
    cut = data.draw(st.integers(1, len(stream)))
    for tokens in (None, cut):
        corpus, ids = import_source(
            tmp_path_factory,
            OlmoImport(kind="olmo", path=str(folder), dtype="uint16"),
            tiny_tokenizer,
            tokens,
        )
        assert ids == stream[:tokens]
        expected = [at for at in olmo_starts(files) if at < len(ids)]
        assert corpus.doc_starts.tolist() == expected


def test_files_readable_in_place_are_not_copied(tmp_path, tmp_path_factory, tiny_tokenizer):
    for number in (1, 2):
        np.array([number, number + 1, END], dtype="<u4").tofile(tmp_path / f"{number}.npy")
    source = OlmoImport(kind="olmo", path=str(tmp_path / "*.npy"), dtype="uint32")
    corpus, ids = import_source(tmp_path_factory, source, tiny_tokenizer)
    assert ids == [1, 2, END, 2, 3, END]
    assert not list(corpus.path.glob("tokens-*"))
    assert list(corpus.files) == [tmp_path.resolve() / f"{number}.npy" for number in (1, 2)]
    for shard, file in zip(corpus.facts.shards, corpus.files, strict=True):
        assert shard.sha256 == shard.file_sha256 == hashlib.sha256(file.read_bytes()).hexdigest()


def test_moved_files_are_found_at_their_configured_path(tmp_path, tmp_path_factory, tiny_tokenizer):
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        np.array([1, 2, END], dtype="<u4").tofile(tmp_path / place / "x.npy")
    source = OlmoImport(kind="olmo", path=str(tmp_path / "a"), dtype="uint32")
    corpus, _ = import_source(tmp_path_factory, source, tiny_tokenizer)
    facts = (corpus.path / "corpus.json").read_text()
    assert str(tmp_path) not in facts
    (tmp_path / "a" / "x.npy").unlink()
    with pytest.raises(InputError, match=r"a/x\.npy: the token file no longer exists"):
        Corpus.open(corpus.path)
    moved = token_files({"kind": "olmo", "path": str(tmp_path / "b"), "dtype": "uint32"})
    assert Corpus.open(corpus.path, outside=moved).read(0, 3).tolist() == [1, 2, END]


@pytest.mark.parametrize("written", ["{}/b", "{}/b/x.bin", "{}/b/*.idx"])
def test_corpus_reads_the_imported_files(tmp_path, written):
    (tmp_path / "b").mkdir()
    write_megatron(tmp_path / "b" / "x", [[[1, 2, END]]])
    source = MegatronImport(kind="megatron", path=written.format(tmp_path))
    files = token_files(plain(source))
    assert files == tuple(file.path for file in source.layout().files)
    assert [file.name for file in files] == ["x.bin"]


def test_a_file_edited_in_place_is_not_opened(tmp_path, tmp_path_factory, tiny_tokenizer):
    file = tmp_path / "x.npy"
    np.array([1, 2, END], dtype="<u4").tofile(file)
    source = OlmoImport(kind="olmo", path=str(file), dtype="uint32")
    corpus, _ = import_source(tmp_path_factory, source, tiny_tokenizer)
    before = file.stat()
    np.array([1, 3, END], dtype="<u4").tofile(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(InputError, match=r"x\.npy: the token file is not the one"):
        Corpus.open(corpus.path)


@pytest.mark.parametrize("dtypes", [("<u2", "<u4"), (">u4", ">u4"), ("u1", "u1")])
def test_files_of_other_widths_are_copied(tmp_path, tmp_path_factory, tiny_tokenizer, dtypes):
    for number, dtype in enumerate(dtypes):
        np.save(tmp_path / f"{number}.npy", np.array([5, 200, END, 7], dtype=dtype))
    source = OlmoImport(kind="olmo", path=str(tmp_path))
    corpus, ids = import_source(tmp_path_factory, source, tiny_tokenizer)
    assert ids == [5, 200, END, 7] * 2
    assert corpus.doc_starts.tolist() == [0, 3, 4, 7]
    assert corpus.facts.dtype == "<u2"
    assert not any(shard.outside for shard in corpus.facts.shards)
    assert corpus.facts.mixture[0]["documents_without_end_token"] == 2


def test_several_megatron_pairs_are_one_stream(tmp_path, tmp_path_factory, tiny_tokenizer):
    write_megatron(tmp_path / "b", [[[3, END]]])
    write_megatron(tmp_path / "a", [[[1], [2, END]], [[9]]])
    source = MegatronImport(kind="megatron", path=str(tmp_path))
    corpus, ids = import_source(tmp_path_factory, source, tiny_tokenizer)
    assert ids == [1, 2, END, 9, 3, END]
    assert corpus.doc_starts.tolist() == [0, 3, 4]


def test_import_identity_is_the_content(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_megatron(tmp_path / name / f"{name}-data", [[[1, 2]], [[3]]])
    identity, other_identity = (
        MegatronImport(kind="megatron", path=str(tmp_path / name)).identity()
        for name in ("one", "two")
    )
    assert identity == other_identity
    write_megatron(tmp_path / "two" / "two-data", [[[1, 2], [3]]])
    assert MegatronImport(kind="megatron", path=str(tmp_path / "two")).identity() != identity
    assert "one" not in json.dumps(identity)


def rejection(tmp_path, source, tokenizer, tokens=None) -> str:
    out = tmp_path / "refused"
    out.mkdir()
    with pytest.raises(InputError) as caught:
        import_corpus(out, source, tokenizer=tokenizer, tokens=tokens)
    return str(caught.value)


@pytest.mark.parametrize(("code", "wrong"), [(8, 387), (5, 387), (2, -2), (5, -2)])
def test_an_id_outside_the_vocabulary_is_named(tmp_path, tiny_tokenizer, code, wrong):
    write_megatron(tmp_path / "data", [[[1, 2]], [[3, wrong, END]]], code=code)
    message = rejection(
        tmp_path, MegatronImport(kind="megatron", path=str(tmp_path)), tiny_tokenizer
    )
    assert f"data.bin: token id {wrong} at position 3" in message
    assert "0 to 386" in message


def test_ids_after_the_cut_are_not_part_of_the_corpus(tmp_path, tmp_path_factory, tiny_tokenizer):
    np.array([1, 2, 600], dtype="<u2").tofile(tmp_path / "a.npy")
    source = OlmoImport(kind="olmo", path=str(tmp_path), dtype="uint16")
    _, ids = import_source(tmp_path_factory, source, tiny_tokenizer, 2)
    assert ids == [1, 2]
    assert "position 2" in rejection(tmp_path, source, tiny_tokenizer, 3)


def test_request_for_too_many_tokens_is_rejected(tmp_path, tiny_tokenizer):
    np.array([1, 2, 3], dtype="<u2").tofile(tmp_path / "a.npy")
    source = OlmoImport(kind="olmo", path=str(tmp_path), dtype="uint16")
    assert "has 3 tokens, fewer than the 4" in rejection(tmp_path, source, tiny_tokenizer, 4)


def test_memory_does_not_grow_with_the_corpus(tmp_path, tiny_tokenizer, monkeypatch):
    import tracemalloc

    monkeypatch.setattr(importing, "_BLOCK", 1 << 16)
    random = np.random.default_rng(0)
    peaks = []
    for number, size in enumerate((1 << 19, 1 << 22)):
        folder = tmp_path / str(number)
        folder.mkdir()
        random.integers(0, 100, size).astype("<u2").tofile(folder / "a.npy")
        (folder / "out").mkdir()
        source = OlmoImport(kind="olmo", path=str(folder / "a.npy"), dtype="uint16")
        tracemalloc.start()
        import_corpus(folder / "out", source, tokenizer=tiny_tokenizer)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
