"""`spikein detect --examples hf://…`: rows of the hub are read like those of a file."""

import csv
import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inject.errors import InputError
from tests.conftest import make_texts
from tests.detect.evidence_samples import scores_record
from tests.hub_server import connect, serving

ROWS = [{"text": text, "label": at % 2} for at, text in enumerate(make_texts(12, words=9))]


def files() -> dict[str, bytes]:
    """The rows in every format, and other files."""
    lines = "".join(f"{json.dumps(row)}\n" for row in ROWS)
    parquet, table = io.BytesIO(), io.StringIO()
    pq.write_table(pa.Table.from_pylist(ROWS), parquet)
    writer = csv.DictWriter(table, ["text", "label"], delimiter=";")
    writer.writeheader()
    writer.writerows(ROWS)
    return {
        "README.md": b"# Rows",
        "rows.jsonl": lines.encode(),
        "rows.jsonl.gz": gzip.compress(lines.encode()),
        "rows.json": json.dumps(ROWS).encode(),
        "rows.csv": table.getvalue().encode(),
        "further.csv": b"text,label\nnobody scores this,0\n",
        "data/test-00000-of-00001.parquet": parquet.getvalue(),
    }


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with serving() as server:
        connect(monkeypatch, server, tmp_path / "cache")
        yield server


def test_hub_rows_equal_those_of_a_file_at_one_commit(hub, detect, tmp_path):
    """The commit is in the output; fetched files are not requested again."""
    commit = hub.add("me/rows", files())
    expected = detect(ROWS, "blind").scores
    for name in ("rows.jsonl", "rows.jsonl.gz", "rows.json", "rows.csv", "data", "data/test-*"):
        result = detect(f"hf://datasets/me/rows@main/{name}", "blind", limit=12)
        assert result.scores.equals(expected), name
        assert any(f"Read at commit {commit}: " in note for note in result.notes)
    assert scores_record(tmp_path / "scores.parquet")["examples"]["commit"] == commit
    hub.add("me/rows", {"rows.jsonl": b'{"text": "newer"}\n'})
    pinned = f"hf://datasets/me/rows@{commit}"
    n_requests = len(hub.requests)
    held_out = {"held_out": f"{pinned}/further.csv", "frequency": f"{pinned}/rows.json"}
    assert detect(f"{pinned}/rows.jsonl", "blind", **held_out).scores.equals(expected)
    assert {path for _, path in hub.requests[n_requests:] if "/resolve/" in path} == {
        f"/datasets/me/rows/resolve/{commit}/further.csv"
    }
    assert scores_record(tmp_path / "scores.parquet")["held_out"] == held_out["held_out"]


def test_unavailable_hub_files_are_named(hub, detect, monkeypatch):
    hub.add("me/rows", files())
    hub.add("me/gated", {"rows.jsonl": b'{"text": "a"}\n'}, gated=True)
    for address, message in (
        ("hf://datasets/me/gated/rows.jsonl", "conditions are accepted.*`hf auth login`"),
        ("hf://me/rows", "is not an address of a data ?set.*hf://datasets/OWNER/NAME"),
        ("https://a.b/rows.csv", "is an address outside the hub. Allowed: a file, .* Download it"),
        ("me/rows", "A dataset of the hub is written hf://datasets/me/rows"),
    ):
        with pytest.raises(InputError, match=message):
            detect(address, "blind")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="cannot be reached"):
        detect("hf://datasets/me/other/rows.jsonl", "blind")
