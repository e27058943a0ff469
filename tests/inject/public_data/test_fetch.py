"""Public datasets come completely from a local hub, through all conversions, or fail."""

import errno
import gzip
import hashlib
import io
import json
import re
from pathlib import Path

import pytest

from inject.errors import InputError, InputErrors
from inject.examples.datasets.gpqa import GpqaOptions
from inject.examples.datasets.registry import get_dataset
from inject.examples.datasets.source import DatasetSource
from inject.public_data import fetch as fetch_module
from inject.public_data.catalogue import data_sets
from inject.public_data.fetch import MANIFEST, FileState, fetch
from tests.hub_mirror import add_data_sets
from tests.hub_server import TOKEN, Fault, connect, serving

BOOLQ = "data/validation-00000-of-00001.parquet"


@pytest.fixture
def hub(monkeypatch, tmp_path: Path, data_folder: Path):
    """A hub with BoolQ, TOFU, GPQA and Wikipedia, at the commits of the catalogue."""
    with serving() as server:
        connect(monkeypatch, server, tmp_path / "cache")
        add_data_sets(server, data_sets(["boolq", "tofu", "gpqa", "wikipedia"]), data_folder)
        yield server


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(".lock")
    }


def test_fetch_is_reproducible_and_a_second_call_sends_no_request(hub, tmp_path: Path):
    sets = data_sets(["boolq", "tofu", "wikipedia"])
    first, second = tmp_path / "first", tmp_path / "second"
    states = fetch(sets, first)
    assert {state.state for state in states} == {"fetched"}
    fetch(sets, second)
    assert contents(first) == contents(second)
    assert set(contents(first)) == {file.path for data_set in sets for file in data_set.files} | {
        MANIFEST
    }
    n_requests = len(hub.requests)
    again = fetch(sets, first)
    assert {state.state for state in again} == {"checked"}
    assert [state.rows for state in again] == [state.rows for state in states]
    assert len(hub.requests) == n_requests
    entry = json.loads((first / MANIFEST).read_text())["files"]["bench/boolq/dev.jsonl.gz"]
    assert entry["commit"] == sets[0].files[0].commit
    assert entry["sources"][0]["checked_against_hub"] is True
    served = hub.repositories["datasets", "google/boolq"].commits[entry["commit"]][BOOLQ]
    assert entry["sources"][0]["sha256"] == hashlib.sha256(served).hexdigest()


def test_only_the_beginning_of_a_large_file_is_read(hub, tmp_path: Path):
    [wikipedia] = data_sets(["wikipedia"])
    [file] = wikipedia.files
    whole = hub.repositories["datasets", file.hub].commits[file.commit]
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(whole[file.sources[0]]))
    longer, target = pa.concat_tables([table] * 8), io.BytesIO()
    pq.write_table(longer, target, row_group_size=len(table), compression="none")
    whole[file.sources[0]] = target.getvalue()
    hub.sent = 0
    [state] = fetch([wikipedia], tmp_path / "data")
    assert (state.rows, state.note) == (400, "the first 400 rows")
    assert hub.sent < len(target.getvalue()) / 4
    rows = gzip.decompress((tmp_path / "data" / file.path).read_bytes()).splitlines()
    assert [json.loads(row)["text"] for row in rows] == table["text"].to_pylist()[:400]


def test_protected_dataset_is_readable_but_never_plain_text(hub, tmp_path: Path, monkeypatch):
    gpqa = data_sets(["gpqa"])
    with pytest.raises(InputErrors, match=r"HF_TOKEN is not set.*huggingface.co/datasets/Id"):
        fetch(gpqa, tmp_path)
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    with pytest.raises(InputErrors, match=r"HF_TOKEN gives no access"):
        fetch(gpqa, tmp_path)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    fetch(gpqa, tmp_path)
    commit = gpqa[0].files[0].commit
    line = hub.repositories["datasets", "Idavidrein/gpqa"].commits[commit]["gpqa_main.csv"]
    question = line.splitlines()[1].split(b",")[0]
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or question not in path.read_bytes(), path
    archive = tmp_path / "bench/gpqa/dataset.zip"
    source = DatasetSource(path=str(archive), options=GpqaOptions().model_dump(), seed=0)
    rows = list(get_dataset("gpqa").rows(source))
    assert (len(rows), rows[0].fields["question"]) == (448, question.decode())


def test_changed_file_is_named_user_file_is_kept_and_lost_file_is_fetched_again(
    hub, tmp_path: Path
):
    sets = data_sets(["boolq", "tofu"])
    own_file = tmp_path / "detect/tofu/forget10.json.gz"
    own_file.parent.mkdir(parents=True)
    own_file.write_bytes(b"my own")
    states = fetch(sets, tmp_path)
    assert [state.state for state in states] == ["fetched", "your own", "fetched"]
    boolq = tmp_path / "bench/boolq/dev.jsonl.gz"
    whole = boolq.read_bytes()
    boolq.write_bytes(whole[:-1] + b"x")
    with pytest.raises(InputErrors, match=r"boolq/dev.jsonl.gz: was changed since it was fetched"):
        fetch(sets, tmp_path)
    assert own_file.read_bytes() == b"my own"
    boolq.unlink()
    assert [state.state for state in fetch(sets, tmp_path)] == ["fetched", "your own", "checked"]
    assert boolq.read_bytes() == whole


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault(altered=True), "checksum mismatch for .* differs from the hub's"),
        (Fault(status=404), r"download from the hub failed \(.*404 "),
        (Fault(status=403), r"download from the hub failed \(.*403 "),
        (Fault(status=500), r"download from the hub failed \(.*500 "),
        (Fault(cut=5000, times=1), ""),
    ],
    ids=["altered", "404", "403", "500", "cut once"],
)
def test_failed_download_leaves_no_partial_file(hub, tmp_path: Path, fault: Fault, message: str):
    boolq = data_sets(["boolq", "tofu"])
    hub.faults[BOOLQ] = fault
    if message:
        with pytest.raises(InputErrors, match=message):
            fetch(boolq, tmp_path)
        # What came before and after is there.
        assert sorted(path.name for path in tmp_path.rglob("*.gz")) == [
            "forget10.json.gz",
            "retain90.json.gz",
        ]
        del hub.faults[BOOLQ]
    fetch(boolq, tmp_path)
    assert (tmp_path / "bench/boolq/dev.jsonl.gz").is_file()
    hidden = [path for path in tmp_path.rglob(".*") if not path.name.endswith(".lock")]
    assert [path for path in hidden if path.is_file()] == []


@pytest.mark.parametrize("place", ["huggingface_hub.snapshot_download", "fetch.replacing"])
def test_full_disk_is_not_an_unreachable_hub(hub, tmp_path: Path, monkeypatch, place: str):
    full = OSError(errno.ENOSPC, "No space left on device")

    def fails(*_: object, **__: object) -> None:
        raise full

    name = place if place.startswith("hugging") else f"inject.public_data.{place}"
    with monkeypatch.context() as patched:
        patched.setattr(name, fails)
        with pytest.raises(OSError, match="No space left") as caught:
            fetch(data_sets(["boolq"]), tmp_path)
    assert caught.value is full
    assert not list(tmp_path.rglob("dev*"))
    assert [state.state for state in fetch(data_sets(["boolq"]), tmp_path)] == ["fetched"]


def test_killed_fetch_resumes_with_the_next_file(hub, tmp_path: Path, monkeypatch):
    sets, done = data_sets(["boolq", "tofu"]), []

    def killed(state: FileState) -> None:
        done.append(state.path)
        if len(done) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(sets, tmp_path, on_file=killed)
    left = tmp_path / fetch_module._HIDDEN / "half"
    left.parent.mkdir()
    left.write_bytes(b"of a download")
    assert [state.state for state in fetch(sets, tmp_path)] == ["checked", "checked", "fetched"]
    assert not left.parent.exists()


def test_cache_serves_offline_and_missing_files_are_named(hub, tmp_path: Path, monkeypatch):
    fetch(data_sets(["boolq"]), tmp_path / "earlier")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    n_requests = len(hub.requests)
    with pytest.raises(InputErrors) as caught:
        fetch(data_sets(["boolq", "tofu", "wikipedia"]), tmp_path / "data")
    for expected in (
        "1 of 4 files",
        "tofu (https://huggingface.co/datasets/locuslab/TOFU), wikipedia (https://",
        "the hub cannot be reached",
        "copy the folder: it is complete",
    ):
        assert expected in str(caught.value)
    assert len(hub.requests) == n_requests
    path = "bench/boolq/dev.jsonl.gz"
    assert (tmp_path / "data" / path).read_bytes() == (tmp_path / "earlier" / path).read_bytes()


def test_source_that_differs_from_the_catalogue_is_rejected(hub, tmp_path: Path, monkeypatch):
    [boolq] = data_sets(["boolq"])
    [file] = boolq.files
    repository = hub.repositories["datasets", "google/boolq"]
    contents_at_commit = repository.commits[file.commit]
    (tmp_path / "folder" / file.path).mkdir(parents=True)
    with pytest.raises(InputErrors, match="is a folder where a file belongs"):
        fetch([boolq], tmp_path / "folder")
    other = hub.repositories["datasets", "wikimedia/wikipedia"]
    [wiki] = [files for commit in other.commits.values() for files in commit.values()]
    contents_at_commit[BOOLQ] = wiki
    with pytest.raises(InputErrors, match="has no column 'question', 'answer', 'passage'"):
        fetch([boolq], tmp_path)
    del contents_at_commit[BOOLQ]
    contents_at_commit["data/train.parquet"] = wiki
    connect(monkeypatch, hub, tmp_path / "empty")
    missing = f"datasets/google/boolq@{file.commit}: the dataset has no '{BOOLQ}'.*train.parquet"
    with pytest.raises(InputErrors, match=missing):
        fetch([boolq], tmp_path)
    assert not [path for path in tmp_path.rglob("*.gz") if path.is_file()]


def test_bad_folders_and_manifests_are_rejected(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below"):
        with pytest.raises(InputError, match="no folder can be made there"):
            fetch(data_sets(["boolq"]), folder)
    for content in ("", "[]", "{}", '{"version": 1, "files": {"a": {}}}', '{"version": 2}'):
        (tmp_path / MANIFEST).write_text(content)
        with pytest.raises(InputError, match="is not the list of files that `spikein data fetch`"):
            fetch(data_sets(["boolq"]), tmp_path)


def test_catalogue_lists_files_once_at_a_full_commit():
    files = [file for data_set in data_sets() for file in data_set.files]
    assert len({file.path for file in files}) == len(files)
    for file in files:
        assert re.fullmatch("[0-9a-f]{40}", file.commit)
        assert not {"..", "/"} & set(Path(file.path).parts)
