"""One resolver for datasets, background, tokenizers and models."""

import logging
import time

import pytest

from inject.corpus.background.hub import HubSource
from inject.corpus.named_tokenizer import tokenizer_identity
from inject.errors import InputError, Unreachable
from inject.examples.contaminant import Contaminant, contaminant_identity
from inject.formats.huggingface import DatasetsImport
from inject.hub.resolver import UNRESOLVED, resolve_commit, without_network
from inject.hub.snapshot import MODEL_FILES, fetch_snapshot
from tests.inject.hub.fake_hub import MAIN, NEXT, forget_commits
from train.models.pretrained import model_identity

ASK = {
    "dataset": lambda: contaminant_identity(Contaminant(dataset="boolq", members=1, nonmembers=1)),
    "background": lambda: HubSource(kind="hub", id="google/boolq").identity(),
    "corpus": lambda: DatasetsImport(kind="datasets", id="google/boolq").identity(),
    "tokenizer": lambda: tokenizer_identity("google/boolq"),
    "model": lambda: model_identity("google/boolq"),
}


@pytest.fixture
def boolq(hub):
    hub.add("google/boolq", {"config.json": {}, "model.safetensors": b"w"})
    return hub


@pytest.mark.parametrize("kind", ASK)
def test_all_kinds_of_ids_are_resolved_alike(boolq, kind):
    boolq.reachable = False
    with pytest.raises(Unreachable, match=r"google/boolq: .*hub cannot be reached"):
        ASK[kind]()
    with without_network() as notes:
        assert UNRESOLVED in str(ASK[kind]())
    assert len(notes) == 1
    # A failure is not remembered: once the hub answers, its answer counts.
    boolq.reachable, boolq.asked = True, []
    assert MAIN in str(ASK[kind]())
    assert boolq.asked == [("google/boolq", None)]
    # A branch that moves while a process runs does not affect that process.
    boolq.main = NEXT
    assert MAIN in str(ASK[kind]())
    forget_commits()
    assert NEXT in str(ASK[kind]())
    forget_commits()
    boolq.files.clear()
    with without_network() as notes, pytest.raises(InputError, match="google/boolq: neither"):
        ASK[kind]()
    assert notes == {}


def test_full_commit_needs_no_request(hub):
    hub.reachable = False
    assert resolve_commit("dataset", "owner/name", "c" * 40) == "c" * 40
    assert hub.asked == []


def test_local_cache_is_used_and_reported_without_the_hub(boolq, caplog):
    folder, _ = fetch_snapshot("google/boolq", None, MODEL_FILES)
    forget_commits()
    boolq.reachable = False
    with caplog.at_level(logging.WARNING):
        snapshot = fetch_snapshot("google/boolq", None, MODEL_FILES)
    assert snapshot == (folder, MAIN)
    assert f"taken is commit {MAIN}" in caplog.text
    assert model_identity("google/boolq") == {"hub": "google/boolq", "commit": MAIN}


def test_cached_tokenizer_is_not_a_model(boolq):
    fetch_snapshot("google/boolq", None, ("*.json",))
    forget_commits()
    boolq.reachable = False
    with pytest.raises(
        Unreachable,
        match=r"not in the cache, and the hub cannot be reached.*Give a local folder",
    ):
        model_identity("google/boolq")


def test_unresponsive_hub_is_reported_within_seconds(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    begin = time.monotonic()
    with pytest.raises(Unreachable, match=r"owner/name: .*'main'.*Connect"):
        resolve_commit("model", "owner/name", None)
    assert time.monotonic() - begin < 10
