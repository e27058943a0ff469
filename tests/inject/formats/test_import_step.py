"""Imports with documents that overlap examples: the remainder against plain lists."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.corpus import corpus as corpora
from inject.corpus.corpus import Corpus
from inject.corpus.tokenizer import encode_texts
from inject.corpus.tokens import Exclusions, TokenReader, TokenWriter, read_excluded, write_excluded
from inject.errors import InputError
from inject.formats.import_step import import_audited
from inject.formats.megatron import MegatronImport
from inject.formats.olmo import OlmoImport
from inject.overlap.filter import OverlapFilter, read_overlaps
from inject.overlap.settings import OverlapSettings
from inject.stream.view import SourceSlice
from tests.conftest import make_texts
from tests.inject.formats.readers import write_megatron
from tests.inject.overlap.oracles import make_example

END = 0
SECRET = "the northern harbour letter said that a teacher from that winter market was on his bridge"
CHANGED = SECRET.replace("winter", "garden")


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), max_size=6),
    st.integers(0, 40),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_reader_skips_excluded_stretches(tmp_path_factory, gaps, behind, data):
    """Against a list with those elements deleted, for all stretches and document starts."""
    stretches, at = [], 0
    for gap, length in gaps:
        stretches.append((at + gap, at + gap + length))
        at += gap + length
    total = at + behind
    starts = sorted({0, *data.draw(st.lists(st.integers(0, max(total - 1, 0)), max_size=8))})
    excluded = Exclusions(stretches)
    folder = tmp_path_factory.mktemp("excluded")
    write_excluded(folder, excluded)
    excluded = read_excluded(folder)
    out = {place for start, stop in stretches for place in range(start, stop)}
    positions = [place for place in range(total) if place not in out]
    size = 2 * data.draw(st.integers(1, 80))
    with TokenWriter(folder, vocabulary=1000, shard_bytes=size) as writer:
        writer.append(np.arange(total))
    paths = [folder / shard.name for shard in writer.shards]
    reader = TokenReader(paths, writer.shards, dtype="<u2", excluded=excluded)
    assert reader.n_tokens == len(positions)
    for start in range(len(positions) + 1):
        for stop in range(start, len(positions) + 1):
            assert reader.read(start, stop).tolist() == positions[start:stop]
    if positions:
        indices = [
            number
            for number, place in enumerate(positions)
            if place in starts or (place and place - 1 in out)
        ]
        assert excluded.starts_of_the_rest(np.array(starts), total).tolist() == indices
        for count in range(1, len(positions) + 1):
            assert excluded.place_of(count) == positions[count - 1] + 1


def corpus_of(folder, texts, tokenizer):
    """The texts as Megatron files; their ids, each with the end token."""
    ids = [[*encode_texts(tokenizer, [text])[0].tolist(), END] for text in texts]
    write_megatron(folder / "data", [[token] for token in ids], code=8)
    return MegatronImport(kind="megatron", path=str(folder / "data")), ids


def audit_of(drop=True, **rules):
    settings = OverlapSettings(drop=drop, **rules)
    return OverlapFilter([make_example(SECRET)], settings)


def possible_streams(ids, marked, tokens):
    """The possible streams, with their document starts.

    A marked document that the stream cuts before its secret need not be known for one.
    """
    outcomes, stream, starts = [], [], []
    for number, document in enumerate(ids):
        room = tokens - len(stream)
        if room and (number not in marked or len(document) > room):
            end = ([*stream, *document[:room]], [*starts, len(stream)])
            if len(end[0]) == tokens:
                outcomes.append(end)
        if number not in marked:
            starts.append(len(stream))
            stream += document[:room]
    return outcomes


@given(
    marked=st.sets(st.integers(0, 11), max_size=6),
    tokens=st.integers(1, 700),
)
@settings(max_examples=25, deadline=None)
def test_overlapping_documents_are_excluded_and_the_stream_has_the_requested_length(
    tmp_path_factory, tiny_tokenizer, marked, tokens
):
    folder = tmp_path_factory.mktemp("import")
    texts = make_texts(12, seed=3, words=30)
    texts = [f"{text} {CHANGED}." if n in marked else text for n, text in enumerate(texts)]
    source, ids = corpus_of(folder, texts, tiny_tokenizer)
    streams = possible_streams(ids, marked, tokens)
    out = folder / "corpus"
    out.mkdir()
    audit, message, facts = audit_of(), "", None
    try:
        facts = import_audited(out, source, tokenizer=tiny_tokenizer, tokens=tokens, audit=audit)
    except InputError as error:
        message = str(error)
    if message:
        assert "fewer than" in message
        assert ("are left out" in message) == (tokens <= sum(map(len, ids)))
        assert tokens > sum(
            len(document) for number, document in enumerate(ids) if number not in marked
        )
        return
    corpus = Corpus.open(out)
    corpus.verify()
    assert corpus.facts == facts
    stream = corpus.read(0, corpus.n_tokens).tolist()
    assert (stream, corpus.doc_starts.tolist()) in streams
    assert CHANGED not in tiny_tokenizer.decode(stream)
    base = SourceSlice(corpus, tokens // 2, tokens)
    assert base.read(0, base.n_tokens).tolist() == stream[tokens // 2 :]
    listed, counts = read_overlaps(out)
    assert {document.place.split(",")[0] for document in listed} <= {
        f"document {n}" for n in marked
    }
    assert counts.dropped == counts.offending == len({document.place for document in listed})
    if not listed:
        assert read_excluded(out) is None


def test_import_stops_and_names_the_documents_if_requested(tmp_path, tiny_tokenizer):
    source, ids = corpus_of(tmp_path, [*make_texts(3), f"So {SECRET}."], tiny_tokenizer)
    (tmp_path / "c").mkdir()
    with pytest.raises(InputError, match=r"1 documents .* document 3, token \d+ \(n-gram: toy"):
        import_audited(
            tmp_path / "c",
            source,
            tokenizer=tiny_tokenizer,
            tokens=sum(map(len, ids)),
            audit=audit_of(drop="stop"),
        )


def test_pieces_of_files_without_document_ends_are_excluded(tmp_path, tiny_tokenizer, monkeypatch):
    """One document of 3,000 tokens; only the surroundings of each secret are removed."""
    monkeypatch.setattr(corpora, "PIECE", 200)
    monkeypatch.setattr(corpora, "OVERLAP", 60)
    parts = make_texts(60, seed=8)
    parts[20], parts[45] = SECRET, SECRET
    stream = encode_texts(tiny_tokenizer, [" ".join(parts)])[0]
    stream.astype("<u2").tofile(tmp_path / "all.npy")
    source = OlmoImport(kind="olmo", path=str(tmp_path / "all.npy"), dtype="uint16")
    (tmp_path / "c").mkdir()
    import_audited(
        tmp_path / "c",
        source,
        tokenizer=tiny_tokenizer,
        tokens=len(stream) - 1_000,
        audit=audit_of(),
    )
    corpus = Corpus.open(tmp_path / "c")
    excluded = read_excluded(tmp_path / "c")
    assert 2 <= len(excluded.stretches) <= 4
    assert excluded.tokens <= 4 * 200
    text = tiny_tokenizer.decode(corpus.read(0, corpus.n_tokens))
    assert SECRET not in text
    remaining = np.delete(stream, [p for a, b in excluded.stretches for p in range(a, b)])
    assert np.array_equal(corpus.read(0, corpus.n_tokens), remaining[: corpus.n_tokens])
    # The text after a gap is a separate document.
    assert len(corpus.doc_starts) == 1 + len(excluded.stretches)


def test_missing_exclusion_list_is_detected(tmp_path, tiny_tokenizer):
    source, ids = corpus_of(tmp_path, [f"So {SECRET}.", *make_texts(3)], tiny_tokenizer)
    (tmp_path / "d").mkdir()
    import_audited(tmp_path / "d", source, tokenizer=tiny_tokenizer, tokens=50, audit=audit_of())
    facts = json.loads((tmp_path / "d" / "corpus.json").read_text())
    assert facts["mixture"][0]["excluded_tokens"] == len(ids[0])
    (tmp_path / "d" / "excluded.npy").unlink()
    with pytest.raises(InputError, match="tokens that are part of the corpus"):
        Corpus.open(tmp_path / "d")
