"""Addresses of the hub resolve to local files of one commit, fetched once."""

from pathlib import Path

import pytest

from inject.errors import InputError, Unreachable
from inject.hub.address import HubAddress, fetch_address, parse_address
from tests.hub_server import connect, serving

ROWS = b'{"text": "one"}\n{"text": "two"}\n'


@pytest.fixture
def hub(monkeypatch, tmp_path: Path):
    with serving() as server:
        connect(monkeypatch, server, tmp_path / "cache")
        yield server


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rows.jsonl", None),
        ("hf:/x", None),
        ("hf://datasets/o/n", HubAddress("o/n", None, "")),
        ("hf://datasets/o/n@v1/a/b.csv", HubAddress("o/n", "v1", "a/b.csv")),
        ("hf://datasets/o/n@refs%2Fpr%2F1/a*", HubAddress("o/n", "refs/pr/1", "a*")),
    ],
)
def test_address_is_parsed(text: str, expected: HubAddress | None):
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "hf://", "hf://datasets", "hf://datasets/o", "hf://datasets/o/", "hf://models/o/n/x",
        "hf://o/n", "hf://datasets/o@v/n", "hf://datasets/o/n@/x", "hf://datasets/o/n/../m/x",
    ],
)  # fmt: skip
def test_malformed_address_is_rejected(text: str):
    with pytest.raises(InputError, match="hf://datasets/OWNER/NAME") as caught:
        parse_address(text)
    assert caught.value.where == text


def test_files_folders_and_globs_of_one_commit_are_fetched_once(hub, tmp_path: Path):
    files = {"data/a.jsonl": ROWS, "data/deep/b.jsonl": ROWS, "c.csv": b"text\nx\n", "d.bin": b"0"}
    old = hub.add("o/n", files)
    hub.add("o/n", {"c.csv": b"text\ny\n"})

    def fetched(text: str) -> tuple[Path, str]:
        address = parse_address(text)
        assert address is not None
        path, commit = fetch_address(address)
        return path, commit

    file, commit = fetched(f"hf://datasets/o/n@{old}/data/a.jsonl")
    assert (file.read_bytes(), commit) == (ROWS, old)
    n_requests = len(hub.requests)
    assert fetched(f"hf://datasets/o/n@{old}/data/a.jsonl") == (file, commit)
    assert len(hub.requests) == n_requests, "a cached file of a commit sends no request"
    glob, _ = fetched(f"hf://datasets/o/n@{old}/data/**/*.jsonl")
    from inject.reading.rows import source_files

    assert [path.name for path in source_files(str(glob))] == ["a.jsonl", "b.jsonl"]
    folder, _ = fetched(f"hf://datasets/o/n@{old}")
    assert {path.name for path in source_files(str(folder))} == {"a.jsonl", "b.jsonl", "c.csv"}
    newest, commit = fetched("hf://datasets/o/n/c.csv")
    assert (newest.read_bytes(), commit != old) == (b"text\ny\n", True)


def test_missing_or_unreachable_address_is_named(hub, monkeypatch):
    hub.add("o/n", {"data/rows.jsonl": ROWS})

    def rejection(text: str, kind: type[InputError] = InputError) -> str:
        address = parse_address(text)
        assert address is not None
        with pytest.raises(kind) as caught:
            fetch_address(address)
        return str(caught.value)

    wrong = rejection("hf://datasets/o/n/data/row.jsonl")
    assert "Did you mean 'data/rows.jsonl'?" in wrong
    assert "hf://datasets/o/n" in wrong
    assert "no revision 'v9'" in rejection("hf://datasets/o/n@v9/data/rows.jsonl")
    assert "nor a dataset on the hub" in rejection("hf://datasets/o/m/data/rows.jsonl")
    hub.add("o/gated", {"rows.jsonl": ROWS}, gated=True)
    assert "conditions are accepted" in rejection("hf://datasets/o/gated/rows.jsonl")
    commit = next(iter(hub.repositories["datasets", "o/n"].commits))
    from huggingface_hub import constants

    from tests.inject.hub.fake_hub import forget_commits

    forget_commits()

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    out_of_reach = rejection(f"hf://datasets/o/n@{commit}/data/rows.jsonl", Unreachable)
    assert "not in the cache" in out_of_reach
