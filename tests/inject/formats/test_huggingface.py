"""Rows of token ids: saved datasets, Parquet and Arrow files, and the hub."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.corpus.corpus import Corpus
from inject.errors import InputError
from inject.formats.huggingface import DatasetsImport
from inject.formats.importing import import_corpus
from inject.hub import dataset_rows, resolver

END = 0

some_rows = st.lists(
    st.none() | st.lists(st.sampled_from([END, 1, 2, 386]), max_size=5), max_size=9
)


def import_source(folder, source, tokenizer, tokens=None):
    out = folder / f"corpus-{len(list(folder.glob('corpus-*')))}"
    out.mkdir()
    facts = import_corpus(out, source, tokenizer=tokenizer, tokens=tokens)
    corpus = Corpus.open(out)
    assert corpus.facts == facts
    return corpus, corpus.read(0, corpus.n_tokens).tolist()


def source(path, **more) -> DatasetsImport:
    return DatasetsImport(kind="datasets", path=str(path), **more)


def ended(rows) -> list[list[int]]:
    return [row if row[-1] == END else [*row, END] for row in rows if row]


@given(rows=some_rows.filter(any), kind=st.sampled_from(["list", "large", "u2"]), data=st.data())
@settings(max_examples=20, deadline=None)
def test_rows_become_documents_with_end_tokens(tmp_path_factory, tiny_tokenizer, rows, kind, data):
    folder = tmp_path_factory.mktemp("rows")
    types = {"list": pa.list_(pa.int64()), "large": pa.large_list(pa.int32())}
    array = pa.array(rows, types.get(kind, pa.list_(pa.uint16())))
    pq.write_table(
        pa.table({"input_ids": array, "text": ["x"] * len(rows)}),
        folder / "a.parquet",
        row_group_size=2,
    )
    whole = ended(rows)
    stream = [token for row in whole for token in row]
    starts = np.cumsum([0, *map(len, whole[:-1])]).tolist()
    cut = data.draw(st.integers(1, len(stream)))
    for tokens in (None, cut):
        corpus, ids = import_source(folder, source(folder / "a.parquet"), tiny_tokenizer, tokens)
        assert ids == stream[:tokens]
        assert corpus.doc_starts.tolist() == [at for at in starts if at < len(ids)]
    corpus, _ = import_source(folder, source(folder), tiny_tokenizer)
    facts = corpus.facts.mixture[0]
    assert facts["empty_rows"] == sum(not row for row in rows)
    assert facts["end_tokens_added"] == sum(bool(row) and row[-1] != END for row in rows)


@given(rows=some_rows.filter(any))
@settings(max_examples=15, deadline=None)
def test_rows_can_be_pieces_of_one_stream(tmp_path_factory, tiny_tokenizer, rows):
    folder = tmp_path_factory.mktemp("rows")
    pq.write_table(
        pa.table({"input_ids": pa.array(rows, pa.list_(pa.int32()))}), folder / "a.parquet"
    )
    corpus, ids = import_source(folder, source(folder, rows="stream"), tiny_tokenizer)
    assert ids == [token for row in rows for token in row or []]
    starts = [at for at in range(len(ids)) if at == 0 or ids[at - 1] == END]
    assert corpus.doc_starts.tolist() == starts


@pytest.fixture
def saved(tmp_path):
    import datasets

    data = datasets.Dataset.from_dict({"input_ids": [[1, 2], [3, END], [4]]})
    (tmp_path / "saved").mkdir()
    data.save_to_disk(str(tmp_path / "saved" / "one"), num_shards=2)
    splits = datasets.DatasetDict({"train": data, "other": data.select([2, 0])})
    splits.save_to_disk(str(tmp_path / "saved" / "splits"))
    data.select([2, 0]).save_to_disk(str(tmp_path / "saved" / "selected"))
    return tmp_path / "saved"


def test_saved_dataset_is_imported(tmp_path, saved, tiny_tokenizer):
    _, ids = import_source(tmp_path, source(saved / "one"), tiny_tokenizer)
    assert ids == [1, 2, END, 3, END, 4, END]
    _, ids = import_source(tmp_path, source(saved / "selected"), tiny_tokenizer)
    assert ids == [4, END, 1, 2, END]
    _, ids = import_source(tmp_path, source(saved / "splits", split="other"), tiny_tokenizer)
    assert ids == [4, END, 1, 2, END]
    with pytest.raises(
        InputError, match=r"it has several splits\. Allowed: split: other, split: train"
    ):
        list(source(saved / "splits").batches())
    with pytest.raises(InputError, match="there is no split 'tain'"):
        list(source(saved / "splits", split="tain").batches())


def test_arrow_files_of_both_kinds_are_imported(tmp_path, tiny_tokenizer):
    table = pa.table({"ids": pa.array([[1, 2], [3]], pa.list_(pa.int32(), -1))})
    for name, new in (("a", pa.ipc.new_stream), ("b", pa.ipc.new_file)):
        with new(str(tmp_path / f"{name}.arrow"), table.schema) as writer:
            writer.write_table(table)
    _, ids = import_source(tmp_path, source(tmp_path / "*.arrow", column="ids"), tiny_tokenizer)
    assert ids == [1, 2, END, 3, END] * 2


def test_hub_dataset_is_streamed_at_one_commit(tmp_path, tiny_tokenizer, monkeypatch):
    import datasets

    request = {}

    def load(hub_id, **more):
        request.update(id=hub_id, **more)
        return datasets.Dataset.from_dict({"input_ids": [[1], [2]]}).to_iterable_dataset()

    monkeypatch.setattr(
        resolver, "resolve_commit", lambda kind, name, revision: f"commit of {revision}"
    )
    monkeypatch.setattr(dataset_rows, "resolve_commit", resolver.resolve_commit)
    monkeypatch.setattr(datasets, "load_dataset", load)
    hub = DatasetsImport(kind="datasets", id="some/tokens", revision="v1")
    _, ids = import_source(tmp_path, hub, tiny_tokenizer)
    assert ids == [1, END, 2, END]
    assert request == {
        "id": "some/tokens",
        "name": None,
        "split": "train",
        "revision": "commit of v1",
        "streaming": True,
    }
    assert hub.identity()["commit"] == "commit of v1"
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: 1 / 0)
    with pytest.raises(InputError, match="datasets some/tokens: cannot be read"):
        list(hub.batches())


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"input_id": [[1]]}, "no column 'input_ids'. Did you mean 'input_id'"),
        ({"input_ids": [[1.0]]}, "not lists of integers"),
        ({"input_ids": [[1], [2, None]]}, "row 1: a token id is null"),
        ({"input_ids": [[1], [], [2, 387]]}, "row 2: token id 387 at position 1"),
    ],
)
def test_bad_rows_are_rejected(tmp_path, tiny_tokenizer, table, message):
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    with pytest.raises(InputError) as caught:
        import_source(tmp_path, source(tmp_path / "a.parquet"), tiny_tokenizer)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("suffix", "damage"), [("parquet", "truncated"), ("arrow", "truncated"), ("parquet", "a null")]
)
def test_bad_file_among_several_is_named(tmp_path, tiny_tokenizer, suffix, damage):
    tables = {name: pa.table({"input_ids": [[1, 2], [3]]}) for name in ("a", "b", "c")}
    if damage == "a null":
        tables["b"] = pa.table({"input_ids": [[1, None]]})
    for name, table in tables.items():
        path = tmp_path / "rows" / f"{name}.{suffix}"
        path.parent.mkdir(exist_ok=True)
        if suffix == "parquet":
            pq.write_table(table, path)
        else:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        if damage == "truncated" and name == "b":
            path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError) as caught:
        import_source(tmp_path, source(tmp_path / "rows"), tiny_tokenizer)
    assert f"b.{suffix}" in str(caught.value)
