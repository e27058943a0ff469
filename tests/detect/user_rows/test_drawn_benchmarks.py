"""Benchmarks whose members were drawn: files in the authors' format, read and checked."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from detect.user_rows.benchmarks import get_benchmark
from detect.user_rows.labelled_rows import rows_notes
from detect.user_rows.row_settings import RowSettings
from inject.errors import InputError

TYPES = {
    "condition": pa.string(),
    "membership": pa.int8(),
    "suffix_type": pa.string(),
    "n_suffix_tokens": pa.int16(),
    "duplication": pa.int8(),
    "input_ids": pa.list_(pa.int32()),
    "suffix_start": pa.int32(),
    "suffix_token_ids": pa.list_(pa.int32()),
}


def toaa_row(condition, member, ids, suffix):
    kind, *_, copies = condition.rsplit("_", 2 if "tok" in condition else 1)
    return {
        "condition": condition,
        "membership": int(member),
        "suffix_type": kind,
        "n_suffix_tokens": len(suffix),
        "duplication": int(copies.removesuffix("x")),
        "input_ids": [*ids, *suffix],
        "suffix_start": len(ids),
        "suffix_token_ids": suffix,
    }


ROWS = [
    toaa_row("random_8tok_16x", True, [0, 5, 6], [*range(8)]),
    toaa_row("random_8tok_16x", False, [0, 7, 8], [*range(8, 16)]),
    toaa_row("plain_1x", True, [0, 9, 10, 11], []),
    toaa_row("plain_1x", False, [0, 12, 13], []),
]


def write_toaa(path, rows):
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()}
    pq.write_table(pa.table(columns), path)
    return str(path)


def write_lines(path, rows):
    text = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return str(path)


def read(name, file, **options):
    return get_benchmark(name).read(file, RowSettings(**options))


def test_toaa_is_scored_by_its_suffix_and_without_one_as_a_whole(tmp_path):
    rows = read("toaa", write_toaa(tmp_path / "train-00000.parquet", ROWS))
    assert rows.labels == [True, False, True, False]
    assert rows.texts[0] == "0 5 6 | 0 1 2 3 4 5 6 7"
    assert rows.texts[2] == "0 9 10 11"
    assert rows.parts == ["condition random_8tok_16x"] * 2 + ["condition plain_1x"] * 2
    assert rows.highest_id is not None
    assert rows.highest_id.id == 15
    assert rows.highest_id.place.endswith("train-00000.parquet:row 2")


def test_toaa_is_also_read_from_json_lines(tmp_path):
    parquet = read("toaa", write_toaa(tmp_path / "t.parquet", ROWS))
    lines = read("toaa", write_lines(tmp_path / "t.jsonl", ROWS))
    assert (lines.texts, lines.labels) == (parquet.texts, parquet.labels)


def test_a_subset_of_toaa_is_a_condition(tmp_path):
    file = write_toaa(tmp_path / "t.parquet", ROWS)
    rows = read("toaa", file, subset="plain_1x")
    assert (rows.texts, rows.labels) == (["0 9 10 11", "0 12 13"], [True, False])
    with pytest.raises(InputError, match=r"no subset 'plain_2x'.*Allowed: plain_1x, random_8tok"):
        read("toaa", file, subset="plain_2x")


def test_limit_counts_the_rows_of_each_side(tmp_path):
    file = write_toaa(tmp_path / "t.parquet", [ROWS[0], *ROWS])
    rows = read("toaa", file, limit=1, subset="random_8tok_16x")
    assert (rows.labels, rows.limited) == ([True, False], True)


def test_limit_counts_each_part_so_that_all_keep_both_sides(tmp_path):
    interleaved = [ROWS[0], ROWS[2], ROWS[3], ROWS[1], *ROWS]
    toaa = read("toaa", write_toaa(tmp_path / "t.parquet", interleaved), limit=1)
    plain, suffixed = "condition plain_1x", "condition random_8tok_16x"
    assert sorted(zip(toaa.parts, toaa.labels, strict=True)) == [
        (plain, False), (plain, True), (suffixed, False), (suffixed, True),
    ]  # fmt: skip
    copies = [1] * 5 + [16] * 5 + [0] * 5
    rows = [{"text": f"text {at}", "duplicates": count} for at, count in enumerate(copies)]
    hubble = read("hubble", write_lines(tmp_path / "h.jsonl", rows), limit=3)
    assert hubble.parts == ["1 copies"] * 3 + ["16 copies"] * 3 + [""] * 3
    assert rows_notes(hubble)[0].startswith(
        "Only the first rows of each side and part were read (limit), 9 in all"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"membership": 2}, r"t\.jsonl:1: membership is 2. Allowed: 0, 1"),
        ({"membership": None}, "membership is None"),
        ({"suffix_type": "odd"}, "suffix_type is 'odd'"),
        ({"duplication": 2}, "duplication is 2. Allowed: 1, 4, 16"),
        ({"n_suffix_tokens": 3}, "n_suffix_tokens is 3"),
        ({"suffix_start": 11}, "start at 11, and the row has 11 ids"),
        ({"input_ids": "text"}, "is not a list of token ids"),
    ],
)
def test_rows_of_another_form_are_not_toaa(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        read("toaa", write_lines(tmp_path / "t.jsonl", [ROWS[0] | change, ROWS[1]]))


def test_toaa_requires_its_columns_and_both_sides(tmp_path):
    for name in TYPES.keys() - {"suffix_token_ids"}:
        row = {key: value for key, value in ROWS[0].items() if key != name}
        with pytest.raises(InputError, match=f"there is no column '{name}'"):
            read("toaa", write_lines(tmp_path / "t.jsonl", [row]))
    with pytest.raises(InputError, match="have no non-members"):
        read("toaa", write_toaa(tmp_path / "t.parquet", [ROWS[0]]))
    with pytest.raises(InputError, match="the columns of toaa are known"):
        read("toaa", write_toaa(tmp_path / "t.parquet", ROWS), ids_column="input_ids")


def test_copies_of_hubble_are_in_a_column_or_in_meta(tmp_path):
    rows = [{"text": f"text {copies}", "duplicates": copies} for copies in (0, 1, 16, 256)]
    of_column = read("hubble", write_lines(tmp_path / "a.jsonl.gz", rows))
    in_meta = [
        {"text": row["text"], "meta": json.dumps({"duplicates": row["duplicates"]})} for row in rows
    ]
    of_meta = read("hubble", write_lines(tmp_path / "b.jsonl.gz", in_meta))
    assert of_column == of_meta
    assert of_meta.labels == [False, True, True, True]
    assert of_meta.parts == ["", "1 copies", "16 copies", "256 copies"]
    assert of_meta.highest_id is None
    subset = read("hubble", str(tmp_path / "b.jsonl.gz"), subset="16")
    assert subset.texts == ["text 0", "text 16"]


@pytest.mark.parametrize(
    "row",
    [
        {"text": "a"},
        {"text": "a", "meta": "no json"},
        {"text": "a", "duplicates": -1},
        {"text": None, "duplicates": 1},
        {"text": "a", "duplicates": True},
    ],
)
def test_rows_without_a_number_of_copies_are_not_hubble(tmp_path, row):
    with pytest.raises(InputError, match=r"h\.jsonl:1: the row has the text"):
        read("hubble", write_lines(tmp_path / "h.jsonl", [row]))


def test_sides_of_checkmia_are_the_names_of_its_splits(tmp_path):
    for name, first in (("member", 1), ("nonmember", 2)):
        table = pa.table({"tokens": [[first, 3], [first, 4]], "text": ["not read", "not read"]})
        pq.write_table(table, tmp_path / f"{name}-00000-of-00001.parquet")
    rows = read("checkmia", str(tmp_path))
    assert rows.texts == ["1 3", "1 4", "2 3", "2 4"]
    assert rows.labels == [True, True, False, False]
    assert rows.parts is None
    other = write_lines(tmp_path / "train.jsonl", [{"tokens": [1]}])
    with pytest.raises(InputError, match="does not begin with that of a split"):
        read("checkmia", other)
    with pytest.raises(InputError, match="have no non-members"):
        read("checkmia", str(tmp_path / "member-00000-of-00001.parquet"))


def test_olmomia_has_labels(tmp_path):
    rows = [{"input": "seen before", "label": 1}, {"input": "seen later", "label": 0}]
    assert read("olmomia", write_lines(tmp_path / "o.jsonl", rows)).labels == [True, False]
    with pytest.raises(InputError, match="olmomia has labels"):
        read("olmomia", write_lines(tmp_path / "p.jsonl", [{"input": "seen"}]))
