"""`hf://` in an experiment file stands for files, which are fetched before anything is read."""

from pathlib import Path

import pytest

from inject.errors import InputErrors
from inject.public_data.catalogue import data_sets
from spikein.config.load import check_document
from spikein.config.yaml_document import YamlDocument
from tests.hub_mirror import add_data_sets
from tests.hub_server import connect, serving


@pytest.fixture
def hub(monkeypatch, tmp_path: Path, data_folder: Path):
    with serving() as server:
        connect(monkeypatch, server, tmp_path / "hub")
        monkeypatch.setenv("SPIKEIN_CACHE", str(tmp_path / "cache"))
        add_data_sets(server, data_sets(["tofu"]), data_folder)
        yield server


def experiment(path: str, data: str = "") -> YamlDocument:
    rows = {"dataset": "rows", "path": path, "members": 4, "nonmembers": 4}
    values = {
        "name": "by-address",
        "variables": {"data": data},
        "model": {"shape": "llama-1m", "tokenizer": {"vocab_size": 512}},
        "base": {"tokens": 10_000, "lr": 1e-3},
        "corpus": {"tokens": 10_000, "sources": [{"kind": "docstrings"}]},
        "contaminants": [rows],
        "copies": {"fixed": 1},
        "train": {"mode": "continue", "lr": 1e-3, "context": 64, "batch_tokens": 256},
        "detect": {"detectors": ["loss"]},
    }
    return YamlDocument(values=values, places={}, name="the experiment")


def path_of(document: YamlDocument) -> Path:
    path = check_document(document).experiment.contaminants[0].path
    assert path is not None
    return Path(path)


def test_an_address_becomes_a_file_of_that_commit(hub):
    [tofu] = data_sets(["tofu"])
    commit = tofu.files[0].commit
    path = path_of(experiment(f"hf://datasets/locuslab/TOFU@{commit}/forget10.json"))
    assert commit in path.parts
    files = hub.repositories["datasets", "locuslab/TOFU"].commits[commit]
    assert path.read_bytes() == files["forget10.json"]


def test_the_layout_is_cached_for_the_user_and_needs_no_further_requests(hub, tmp_path: Path):
    document = experiment("${data}/detect/tofu/forget10.json.gz", data="hf://presets")
    path = path_of(document)
    assert path == tmp_path / "cache/data/detect/tofu/forget10.json.gz"
    n_requests = len(hub.requests)
    assert path_of(document) == path
    assert len(hub.requests) == n_requests


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("hf://presets", "no file that the presets read"),
        ("hf://presets/detect/tofu/forget11.json.gz", "Did you mean 'detect/tofu/forget10.json.gz"),
        ("hf://presets/bench/gpqa/dataset.zip", "spikein data fetch gpqa --to"),
        ("hf://datasets/locuslab/TOFU/forget11.json", "Did you mean 'forget10.json'"),
        ("hf://locuslab/TOFU/forget10.json", "hf://datasets/OWNER/NAME"),
    ],
)
def test_a_wrong_address_is_reported_with_the_other_problems_of_the_file(
    hub, path: str, message: str
):
    document = experiment(path)
    broken = YamlDocument(
        values={**document.values, "seeds": "x"}, places={}, name="the experiment"
    )
    with pytest.raises(InputErrors) as caught:
        check_document(broken)
    assert message in str(caught.value)
    assert "contaminants.0.path" in str(caught.value)
    assert "seeds" in str(caught.value)
