"""Exports, read with readers written from the formats' description, against plain lists."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.digest import file_digest
from inject.errors import InputError
from inject.formats import exported_rows, huggingface, jsonl, megatron
from inject.formats.export import ExportSettings, export_view
from inject.formats.exported_rows import ExportedRows
from inject.formats.folder import exporting
from inject.formats.huggingface import write_dataset
from inject.formats.megatron import write_index
from inject.stream.view import clean_view
from tests.inject.formats.readers import read_dataset, read_lines, read_megatron, split_at
from tests.inject.formats.spiked import CONTEXT, Copy, Spiked, Words, spiked


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    """Read and write a few tokens and rows at a time, so that blocks end everywhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exported_rows, "BLOCK", 16)
        patch.setattr(exported_rows, "_ROWS", 4)
        patch.setattr(jsonl, "_TOKENS", 16)
        patch.setattr(megatron, "_BLOCK", 3)
        patch.setattr(huggingface, "BLOCK", 16)
        yield


ids = st.integers(1, 90)
texts = st.lists(ids, min_size=1, max_size=9)


@st.composite
def streams(draw) -> Spiked:
    documents = draw(st.lists(texts, min_size=1, max_size=6))
    length = sum(len(document) + 1 for document in documents)
    anchors = st.integers(0, length)
    copies = draw(st.lists(st.builds(Copy, anchors, texts), max_size=4))
    return spiked(documents, copies, separator=draw(st.sampled_from(["none", "end"])))


def export_corpus(tmp_path_factory, corpus: Spiked, format: str, tokenizer, **more):
    out = tmp_path_factory.mktemp("export") / "out"
    settings = ExportSettings(format=format, **more)
    facts = export_view(corpus.view, out, settings, tokenizer=tokenizer, copies=corpus.copies)
    assert not list(out.parent.glob(".*"))
    check_facts(out, facts)
    return out, facts


def check_facts(out: Path, facts) -> None:
    written = json.loads((out / "export.json").read_text())
    assert written == json.loads(json.dumps(asdict(facts)))
    on_disk = {
        path.relative_to(out).as_posix(): {
            "sha256": file_digest(path),
            "bytes": path.stat().st_size,
        }
        for path in out.rglob("*")
        if path.is_file() and path.name != "export.json"
    }
    assert written["files"] == on_disk


def check_copies(out: Path, corpus: Spiked, stream: list[int], starts: list[int]) -> None:
    rows = pq.read_table(out / "copies.parquet").to_pylist()
    assert [row["start"] for row in rows] == sorted(row["start"] for row in rows)
    assert len(rows) == len(corpus.places)
    for row in rows:
        number = int(row["example_id"][1:])
        assert (row["start"], row["stop"]) == corpus.places[number]
        assert row["document"] == max(i for i, at in enumerate(starts) if at <= row["start"])
        assert row["window"] == row["start"] // CONTEXT
        assert row["exported"] == (row["stop"] <= len(stream))
        assert (row["dataset"], row["copy"]) == ("toy", number)


def unended(stream: list[int], starts: list[int]) -> int:
    return sum(document[-1] != 0 for document in split_at(stream, starts))


def tokens_and_documents(
    out: Path, format: str, corpus: Spiked
) -> tuple[list[int], list[list[int]]]:
    """The tokens and documents that our reader finds in an export of documents."""
    if format == "datasets":
        rows = read_dataset(out)
        return [token for row in rows for token in row], rows
    if format == "olmo":
        width = json.loads((out / "export.json").read_text())["dtype"]
        stream = np.fromfile(out / "tokens.npy", dtype=width).tolist()
        return stream, split_at(stream, corpus.starts)
    read = read_megatron(out / "tokens")
    assert all(len(document) == 1 for document in read.documents)
    return read.stream, [document[0].tolist() for document in read.documents]


@given(corpus=streams(), format=st.sampled_from(["megatron", "olmo", "datasets"]))
@settings(max_examples=30, deadline=None)
def test_exported_documents_match_the_stream(tmp_path_factory, corpus, format):
    out, facts = export_corpus(tmp_path_factory, corpus, format, Words(91))
    expected = corpus.stream, split_at(corpus.stream, corpus.starts)
    assert tokens_and_documents(out, format, corpus) == expected
    check_copies(out, corpus, corpus.stream, corpus.starts)
    assert facts.unended_documents == unended(corpus.stream, corpus.starts)
    assert (facts.tokens, facts.documents) == (len(corpus.stream), len(corpus.starts))


@pytest.mark.parametrize("format", ["megatron", "olmo", "datasets"])
def test_a_large_vocabulary_takes_four_bytes(tmp_path_factory, format):
    corpus = spiked([[70_000, 1], [2]], [Copy(1, [99_999, 5])])
    out, facts = export_corpus(tmp_path_factory, corpus, format, Words(100_000))
    assert np.dtype(facts.dtype).itemsize == 4
    assert tokens_and_documents(out, format, corpus)[0] == corpus.stream


@given(corpus=streams())
@settings(max_examples=15, deadline=None)
def test_exported_windows_match_the_stream(tmp_path_factory, corpus):
    whole = len(corpus.stream) // CONTEXT * CONTEXT
    windows = [corpus.stream[at : at + CONTEXT] for at in range(0, whole, CONTEXT)]
    if not windows:
        with pytest.raises(InputError, match="shorter than one window"):
            export_corpus(tmp_path_factory, corpus, "megatron", Words(91), rows="windows")
        return
    out, facts = export_corpus(tmp_path_factory, corpus, "megatron", Words(91), rows="windows")
    read = read_megatron(out / "tokens")
    assert [sequence.tolist() for sequence in read.sequences] == windows
    assert all(len(document) == 1 for document in read.documents)
    out, again = export_corpus(tmp_path_factory, corpus, "datasets", Words(91), rows="windows")
    assert read_dataset(out) == windows
    assert again.row_count == facts.row_count == len(windows)
    check_copies(out, corpus, corpus.stream[:whole], corpus.starts)
    assert facts.tokens_left_out == len(corpus.stream) - whole
    assert facts.copies_left_out == sum(stop > whole for _, stop in corpus.places)


SENTENCES = ["the river", "Town market, winter!", "größe 東京", " a  b\n\n", "of"]


@given(
    documents=st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5),
    copies=st.lists(st.tuples(st.floats(0, 1), st.sampled_from(SENTENCES)), max_size=3),
    separator=st.sampled_from(["none", "end"]),
    cut=st.integers(0, 3),
)
@settings(max_examples=20, deadline=None)
def test_text_export_marks_documents_that_do_not_reencode(
    tmp_path_factory, tiny_tokenizer, documents, copies, separator, cut
):
    def encode(text: str) -> list[int]:
        return tiny_tokenizer.encode(text, add_special_tokens=False)

    bodies = [encode(text) for text in documents]
    length = sum(len(body) + 1 for body in bodies)
    placed = [Copy(int(share * (length - cut)), encode(text)) for share, text in copies]
    payload = sum(len(copy.text) + (separator == "end") for copy in placed)
    corpus = spiked(bodies, placed, separator=separator, budget=length + payload - cut)
    out, facts = export_corpus(tmp_path_factory, corpus, "jsonl", tiny_tokenizer)
    lines = read_lines(out / "documents.jsonl")
    changed = 0
    for line, document in zip(lines, split_at(corpus.stream, corpus.starts), strict=True):
        assert line.get("ended", True) == (document[-1] == 0)
        body = document[:-1] if document[-1] == 0 else document
        assert line["text"] == tiny_tokenizer.decode(body, clean_up_tokenization_spaces=False)
        same = encode(line["text"].replace("<|endoftext|>", "\0")) == body
        assert line.get("same_tokens", True) == same
        changed += not same
    assert facts.texts["changed"] == changed
    assert facts.texts["documents"] == len(corpus.starts)
    assert facts.texts["changed_tokens"] <= facts.tokens


def test_protected_texts_are_exported_only_when_asked(tmp_path):
    corpus = spiked([[5, 6, 7], [8]], [Copy(2, [9, 10]), Copy(4, [11])])

    def export(out: Path, **more):
        settings = ExportSettings(format="olmo", show_protected=more.pop("show_protected", False))
        return export_view(
            corpus.view, out, settings, tokenizer=Words(91), copies=corpus.copies, **more
        )

    with pytest.raises(InputError, match="texts of 1 protected example") as caught:
        export(tmp_path / "a", protected={"e1", "other"})
    assert "--show-protected" in str(caught.value)
    assert not list(tmp_path.iterdir())
    assert export(tmp_path / "a", protected={"e1"}, show_protected=True).protected
    assert not export(tmp_path / "b", protected={"other"}).protected


class Huge:
    """A stream of one document that is too long for an index, and is never read."""

    n_tokens = 2**31
    context = 2**20

    def document_starts(self):
        return np.zeros(1, dtype=np.int64)


def test_lengths_beyond_the_index_limit_are_rejected(tmp_path):
    view = Huge()
    path = tmp_path / "tokens.idx"
    with pytest.raises(InputError, match="2,147,483,648 tokens is too long"):
        write_index(path, ExportedRows(view, "documents", end=0), np.dtype("<u2"))
    write_index(path, ExportedRows(view, "windows", end=0), np.dtype("<u2"))
    offsets = np.fromfile(path, "<i8", 2048, offset=34 + 4 * 2048)
    assert offsets[-1] == 2047 * 2**20 * 2


def test_data_sets_are_cut_into_files(tmp_path, monkeypatch):
    corpus = spiked([[number] * 5 for number in range(1, 9)], [Copy(3, [50, 51])])
    with exporting(tmp_path / "out") as folder:
        rows = ExportedRows(corpus.view, "documents", end=0)
        monkeypatch.setattr(huggingface, "BLOCK", 12)
        monkeypatch.setattr(huggingface, "SHARD_TOKENS", 1)
        write_dataset(folder, rows)
    names = sorted(path.name for path in (tmp_path / "out").glob("*.arrow"))
    # 8 tokens and then 6 each, so two rows fit except the first, in blocks of 4 rows.
    assert names == [f"data-{number:05d}-of-00005.arrow" for number in range(5)]
    assert read_dataset(tmp_path / "out") == split_at(corpus.stream, corpus.starts)


def test_memory_does_not_grow_with_the_stream(tmp_path, monkeypatch):
    import tracemalloc

    class Counting:
        doc_starts = np.zeros(1, dtype=np.int64)

        def __init__(self, n_tokens: int) -> None:
            self.n_tokens = n_tokens

        def read(self, start, stop):
            return np.arange(start, stop) % 90 + 1

    monkeypatch.setattr(exported_rows, "BLOCK", 1 << 15)
    peaks = []
    for number, size in enumerate((1 << 18, 1 << 21)):
        view = clean_view(Counting(size), tokens=size, context=64)
        windows = ExportSettings(format="megatron", rows="windows")
        tracemalloc.start()
        export_view(view, tmp_path / str(number), windows, tokenizer=Words(91))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + (1 << 20)
