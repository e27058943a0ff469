import json
from pathlib import Path

import pytest
import yaml

from inject.builtin_files import SHAPES
from tests.train.shapes import tiny_shape
from train.models.model_sizes import PUBLISHED, known_sizes, position_count, sizes_of_config
from train.models.shapes import FAMILIES, Shape, build_model, load_shape, parameter_count
from train.settings import ModelSettings


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_published_models_match_their_shape_files(name: str) -> None:
    sizes = known_sizes(ModelSettings(pretrained=name))
    assert sizes is not None
    text = SHAPES.find(PUBLISHED[name][0]).read_text()
    assert f"{parameter_count(sizes.shape, sizes.vocabulary):,} parameters" in text
    assert sizes.shape == Shape.model_validate(yaml.safe_load(text))


def test_unknown_models_have_no_sizes_and_need_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("used the network"))
    assert known_sizes(ModelSettings(pretrained="nobody/unheard-of")) is None
    assert sizes_of_config({"model_type": "gpt2"}, source="x") is None
    plain, deduped = (
        known_sizes(ModelSettings(pretrained=f"EleutherAI/pythia-2.8b{end}"))
        for end in ("", "-deduped")
    )
    assert plain == deduped is not None


def test_a_shape_needs_its_vocabulary() -> None:
    path = "llama-1m"
    trained = ModelSettings.model_validate({"shape": path, "tokenizer": {"vocab_size": 512}})
    sizes = known_sizes(trained)
    assert sizes is not None
    assert (sizes.shape, sizes.vocabulary) == (load_shape(path), 512)
    assert known_sizes(ModelSettings(shape=path, tokenizer="gpt2")) is None


@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_sizes_are_read_from_a_saved_model(architecture: str, tmp_path: Path) -> None:
    shape = tiny_shape(
        architecture,
        init_std=0.02,
        kv_heads=None if architecture == "gpt_neox" else 1,
        rope_theta=5000.0,
        tie_embeddings=True,
        norm_eps=1e-5 if architecture == "olmo" else 1e-6,
    )
    model = build_model(shape, 96, 0, 0)
    model.save_pretrained(tmp_path)
    sizes = known_sizes(ModelSettings(pretrained=str(tmp_path)))
    assert sizes is not None
    assert sizes == (shape, 96, str(tmp_path))
    assert position_count(ModelSettings(pretrained=str(tmp_path))) == shape.context
    assert parameter_count(sizes.shape, 96) == model.num_parameters()
    # Before version 5 the base of the rotary positions was a top-level key.
    config = json.loads((tmp_path / "config.json").read_text())
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    again = sizes_of_config(config, source="old")
    assert again is not None
    assert again.shape == shape


@pytest.mark.parametrize(
    "config", [{"n_positions": 1024}, {"text_config": {"max_position_embeddings": 1024}}]
)
def test_position_counts_are_known_without_sizes(config, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert position_count(ModelSettings(pretrained=str(tmp_path))) == 1024
