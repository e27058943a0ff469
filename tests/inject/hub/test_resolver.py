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


@pytest.mark.parametrize("what", ASK)
def test_all_ids_are_resolved_in_one_way(boolq, what):
    boolq.reachable = False
    with pytest.raises(Unreachable, match=r"google/boolq: .*hub cannot be reached"):
        ASK[what]()
    with without_network() as notes:
        assert UNRESOLVED in str(ASK[what]())
    assert len(notes) == 1
    # A failure is not remembered: once the hub answers, its answer counts.
    boolq.reachable, boolq.asked = True, []
    assert MAIN in str(ASK[what]())
    assert boolq.asked == [("google/boolq", None)]
    # A branch that moves while a process works moves nothing in it.
    boolq.main = NEXT
    assert MAIN in str(ASK[what]())
    forget_commits()
    assert NEXT in str(ASK[what]())
    forget_commits()
    boolq.files.clear()
    with without_network() as notes, pytest.raises(InputError, match="google/boolq: neither"):
        ASK[what]()
    assert notes == {}


def test_a_full_commit_needs_no_answer(hub):
    hub.reachable = False
    assert resolve_commit("dataset", "owner/name", "c" * 40) == "c" * 40
    assert hub.asked == []


def test_without_the_hub_the_cache_on_this_machine_is_used_and_said(boolq, caplog):
    folder, _ = fetch_snapshot("google/boolq", None, MODEL_FILES)
    forget_commits()
    boolq.reachable = False
    with caplog.at_level(logging.WARNING):
        found = fetch_snapshot("google/boolq", None, MODEL_FILES)
    assert found == (folder, MAIN)
    assert f"taken is commit {MAIN}" in caplog.text
    assert model_identity("google/boolq") == {"hub": "google/boolq", "commit": MAIN}


def test_a_tokenizer_in_the_cache_is_no_model(boolq):
    fetch_snapshot("google/boolq", None, ("*.json",))
    forget_commits()
    boolq.reachable = False
    with pytest.raises(
        Unreachable,
        match=r"not in the cache, and the hub cannot be reached.*Give a local folder",
    ):
        model_identity("google/boolq")


def test_a_hub_that_does_not_answer_is_said_within_seconds(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    begin = time.monotonic()
    with pytest.raises(Unreachable, match=r"owner/name: .*'main'.*Connect"):
        resolve_commit("model", "owner/name", None)
    assert time.monotonic() - begin < 10
