"""A hub that fails, then answers: nothing is stored under an unknown commit."""

import pytest

from inject.corpus.background.registry import sources_identity
from inject.corpus.tokenizer_step import tokenizer_step
from inject.errors import SpikeinError, Unreachable
from inject.hub.resolver import UNRESOLVED, without_network
from spikein.executors import InProcess
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.store import Store
from tests.inject.hub.fake_hub import MAIN, FakeHub, forget_commits
from tests.spikein.samples import read, visible

SOURCE = "corpus.sources=[{kind: hub, id: owner/texts}]"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    hub = FakeHub(monkeypatch, tmp_path / "cache")
    hub.add("owner/texts")
    rows = [{"text": f"the river {number} and the bridge over it"} for number in range(50)]
    loaded = []

    def load_dataset(hub_id, *, revision, **_):
        loaded.append(revision)
        return rows

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    hub.loaded = loaded
    yield hub
    forget_commits()


def tokenizer():
    corpus = read(SOURCE, "model.tokenizer={vocab_size: 300}").corpus
    return tokenizer_step(300, corpus.sources, sources_identity(corpus.sources), seed=corpus.seed)


def run(step, store):
    return InProcess().run(Graph(goals=(step,)), store, Progress()).artifact(step)


def test_a_run_stops_before_it_starts_and_later_names_the_commit(hub, tmp_path):
    hub.reachable = False
    with pytest.raises(Unreachable, match="owner/texts"):
        tokenizer()
    hub.reachable = True
    artifact = run(tokenizer(), Store(tmp_path / "store"))
    assert hub.loaded == [MAIN]
    assert artifact.manifest.identity["settings"]["sources"][0]["content"]["commit"] == MAIN


def test_unresolved_steps_of_a_plan_never_reach_the_store(hub, tmp_path):
    hub.reachable = False
    with without_network() as notes:
        planned = tokenizer()
    assert list(notes) == ["background owner/texts"]
    assert UNRESOLVED in str(planned.settings)
    hub.reachable = True
    store = Store(tmp_path / "store")
    with pytest.raises(SpikeinError, match=r"hub repository whose commit is unknown"):
        run(planned, store)
    assert hub.loaded == []
    assert visible(store.root) == []
    assert tokenizer().digest != planned.digest
