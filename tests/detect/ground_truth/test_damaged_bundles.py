"""Old, damaged and forged bundles: valid ones are read, all others are rejected by name."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from detect.ground_truth import bundle as module
from detect.ground_truth import packing
from detect.ground_truth.bundle import HEADER, is_bundle, read_bundle
from detect.token_statistics import (
    read_statistics,
    write_statistics,
)
from inject.digest import digest, file_digest
from inject.errors import InputError
from tests.detect.evidence_samples import statistics_of
from tests.detect.ground_truths import same

POOL, SCORES = "examples/pool/examples.parquet", "scores/0/scores.parquet"


def with_header(path: Path, /, **changes) -> Path:
    """Change the header and its digest, as a malicious author could."""
    values = {**json.loads((path / HEADER).read_text()), **changes}
    hashed_values = {
        name: value for name, value in values.items() if name not in ("content", "created")
    }
    (path / HEADER).write_text(json.dumps({**values, "content": digest(hashed_values)}))
    return path


def with_column(path: Path, name: str, column: str, change) -> None:
    """Change all values of a table's column, and the digests."""
    table = pq.read_table(path / name)
    values = pa.array([change(value) for value in table[column].to_pylist()])
    table = table.set_column(table.column_names.index(column), column, values)
    pq.write_table(table, path / name, compression="zstd", row_group_size=16)
    files = json.loads((path / HEADER).read_text())["files"]
    with_header(path, files={**files, name: file_digest(path / name)})


def test_previous_bundle_version_is_read_identically(described, store, bundle, copied):
    for folder in copied.glob("statistics/*"):
        shutil.copyfile(store / "statistics" / folder.name / "statistics.arrow",
                        folder / "statistics.arrow")  # fmt: skip
        (folder / "statistics.parquet").unlink()
    values = json.loads((copied / HEADER).read_text())
    files = {
        name: file_digest(copied / name)
        for listed in values["files"]
        for name in [listed.replace("statistics.parquet", "statistics.arrow")]
    }
    models = [{k: v for k, v in model.items() if k != "left_out"} for model in values["models"]]
    older = read_bundle(with_header(copied, version=4, files=files, models=models))
    for model, other in zip(read_bundle(bundle).models, older.models, strict=True):
        readable_rows = np.flatnonzero(~model.withheld).tolist()
        assert same(
            model.evidence.take(readable_rows).statistics["text"],
            other.evidence.take(readable_rows).statistics["text"],
        )


def test_changed_byte_is_detected_anywhere(copied):
    for path in sorted(copied.rglob("*.*")):
        whole = path.read_bytes()
        at = len(whole) // 2
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(InputError, match=path.name):
            read_bundle(copied)
        path.write_bytes(whole)
    read_bundle(copied)


def test_a_missing_file_is_named(copied):
    (copied / "scores/0/scores.parquet").unlink()
    with pytest.raises(InputError, match=r"lacks the file scores/0/scores\.parquet"):
        read_bundle(copied)


@pytest.mark.parametrize("name", ["../x.parquet", "/etc/x/y", "a/../x.parquet", "a\\b", ".a/b/c"])
def test_path_outside_the_bundle_is_rejected(copied, name):
    files = json.loads((copied / HEADER).read_text())["files"]
    with pytest.raises(InputError, match="leaves the bundle") as caught:
        read_bundle(with_header(copied, files={**files, name: "0"}))
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("name", [HEADER, SCORES])
def test_link_out_of_the_bundle_is_rejected(copied, tmp_path, name):
    cached = tmp_path / "datasets--me--truth"
    (cached / "blobs").mkdir(parents=True)
    (copied / name).rename(cached / "blobs/0")
    (copied / name).symlink_to(cached / "blobs/0")
    with pytest.raises(InputError, match=f"{name} is a link that leaves the bundle"):
        read_bundle(copied)
    # The cache of the hub library is made of such links.
    (cached / "snapshots").mkdir()
    read_bundle(copied.rename(cached / "snapshots/commit"))


def test_unlisted_file_is_rejected_before_it_is_read(copied):
    table = next(copied.glob("statistics/*/statistics.parquet"))
    table.with_name("statistics.arrow").write_bytes(b"")
    with pytest.raises(InputError, match=r"contains statistics/.*/statistics\.arrow, which bundle"):
        read_bundle(copied)


def test_token_table_with_wrong_types_is_named(tmp_path):
    write_statistics(tmp_path, ["a", "b"], [statistics_of([-1.0])] * 2)
    packing._pack(tmp_path / "statistics.arrow", tmp_path / "statistics.arrow", set())
    table = pq.read_table(tmp_path / "statistics.parquet")
    wrong = table.set_column(
        table.column_names.index("mean_log_prob"), "mean_log_prob", [["a", "b"]]
    )
    pq.write_table(wrong, tmp_path / "statistics.parquet")
    with pytest.raises(
        InputError, match=r"its column 'mean_log_prob' is of the type string.*list<"
    ):
        read_statistics(tmp_path)


@pytest.mark.parametrize("changes", [{"files": {}}, {"files": 3}, {"models": 3}, {"analysis": []}])
def test_header_without_ground_truth_is_rejected(copied, changes):
    with pytest.raises(InputError, match=r"lists no files|does not describe"):
        read_bundle(with_header(copied, **changes))


def test_artifact_without_listed_files_is_not_read(copied):
    models = json.loads((copied / HEADER).read_text())["models"]
    with pytest.raises(InputError, match=r"lists no file of \.\./elsewhere"):
        read_bundle(with_header(copied, models=[{**models[0], "scores": "../elsewhere"}]))


def test_other_bundle_version_is_rejected_with_a_hint(copied, tmp_path):
    with pytest.raises(InputError, match="version 6; this spikein reads 4 and 5") as caught:
        read_bundle(with_header(copied, version=6))
    assert "pack the run again" in str(caught.value)
    (tmp_path / "older.bundle").write_bytes(b"PK\x03\x04")
    assert is_bundle(tmp_path / "older.bundle")
    with pytest.raises(InputError, match="was a file before") as caught:
        read_bundle(tmp_path / "older.bundle")
    assert "pack the run again" in str(caught.value)


NAN = '{"format": "spikein ground truth", "version": 5, "seed": NaN}'


@pytest.mark.parametrize("text", ["", "[]", "3", '{"format": "x"}', "[" * 100_000, NAN])
def test_other_files_are_rejected_as_bundles(tmp_path, text):
    (tmp_path / HEADER).write_text(text)
    with pytest.raises(InputError, match="bundle"):
        read_bundle(tmp_path)
    assert not is_bundle(tmp_path / "absent")


def test_oversized_table_is_rejected_before_it_is_read(tmp_path, monkeypatch):
    """Ten million equal numbers occupy a few kB in the file."""
    many, wide = tmp_path / "many.parquet", tmp_path / "wide.parquet"
    pq.write_table(pa.table({"a": pa.array(np.zeros(10_000_001, np.int8))}), many)
    assert many.stat().st_size < 100_000
    pq.write_table(pa.table({"a": [list(range(90))], "b": [list(range(11))]}), wide)
    module._check_sizes(tmp_path, [wide.name])
    monkeypatch.setattr(module, "_MOST_BYTES", 800)
    for path, message in ((many, "has 10,000,001 rows"), (wide, r"1 rows, and 1,\d+ bytes")):
        with pytest.raises(InputError, match=message):
            module._check_sizes(tmp_path, [path.name])


@pytest.mark.parametrize("column", ["text", "paraphrases"])
def test_repeated_text_is_counted_before_it_is_unpacked(copied, column):
    """Dictionary encoding stores a repeated text once, regardless of the declared size."""
    text = "x" * 4_000_000
    with_column(copied, POOL, column, lambda _: text if column == "text" else [text, text])
    with pytest.raises(InputError, match="unpacks to more than 200 times its size"):
        read_bundle(copied)


@pytest.mark.parametrize(
    ("name", "column", "value", "problem"),
    [
        (
            POOL,
            "example_id",
            "0" * 16,
            "examples.parquet: has the example 0000000000000000 32 times",
        ),
        (POOL, "side", "both", "has the side 'both'. Allowed: member and nonmember"),
        (POOL, "fields", "{", "its tables cannot be read: JSONDecodeError"),
        (SCORES, "row", -1, r"scores.parquet: row -1 \(.*, loss\) is not the row of its example"),
        (SCORES, "score", np.inf, "has an infinite score"),
    ],
)
def test_contradicting_tables_are_rejected(copied, name, column, value, problem):
    with_column(copied, name, column, lambda _: value)
    with pytest.raises(InputError, match=problem):
        read_bundle(copied)
