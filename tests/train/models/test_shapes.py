from pathlib import Path

import pytest
import torch

from inject.errors import InputError
from train.models.shapes import (
    FAMILIES,
    Shape,
    build_model,
    flops_per_token,
    load_shape,
    parameter_count,
)

EMBEDDING = "model.embed_tokens.weight"
MODELS = Path(__file__).resolve().parents[3] / "configs" / "models"

# Vocabulary and number of parameters of the published checkpoints.
PUBLISHED = {
    "llama-160m": (32_000, 162_417_408),
    "llama-1b": (32_000, 1_100_048_384),
    "llama-7b": (32_000, 6_738_415_616),
    "llama2-7b": (32_000, 6_738_415_616),
    "llama2-13b": (32_000, 13_015_864_320),
    "olmo-1b": (50_304, 1_176_764_416),
    "olmo-7b": (50_304, 6_888_095_744),
    "olmo2-1b": (100_352, 1_484_916_736),
    "olmo2-7b": (100_352, 7_298_617_344),
    "pythia-160m": (50_304, 162_322_944),
    "pythia-1b": (50_304, 1_011_781_632),
    "pythia-2.8b": (50_304, 2_775_208_960),
    "pythia-6.9b": (50_432, 6_857_302_016),
    "qwen2-0.5b": (151_936, 494_032_768),
    "qwen2-1.5b": (151_936, 1_543_714_304),
    "qwen2-7b": (152_064, 7_615_616_512),
}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_published_shapes_have_the_published_number_of_parameters(name: str) -> None:
    vocabulary, parameters = PUBLISHED[name]
    assert parameter_count(load_shape(MODELS / f"{name}.yaml"), vocabulary) == parameters


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_count_is_that_of_the_model_built(path: Path) -> None:
    shape = load_shape(path)
    with torch.device("meta"):
        model = build_model(shape, 4096, 0, 0)
    assert parameter_count(shape, 4096) == model.num_parameters()
    assert model.config.max_position_embeddings == shape.context
    assert model.config.rope_parameters["rope_theta"] == shape.rope_theta


def test_operations_are_six_a_weight_and_twelve_a_layer_for_attention() -> None:
    seven = load_shape(MODELS / "llama-7b.yaml")
    weights = 6_738_415_616 - 32_000 * 4096
    assert flops_per_token(seven, 32_000, 2048) == 6 * weights + 12 * 32 * 4096 * 2048
    tied = seven.model_copy(update={"tie_embeddings": True})
    assert flops_per_token(tied, 32_000, 2048) == flops_per_token(seven, 32_000, 2048)


def small(**changes: object) -> Shape:
    sizes = {"hidden": 16, "layers": 2, "heads": 2, "intermediate": 24, "context": 32}
    return Shape.model_validate({"architecture": "llama", **sizes, **changes})


@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_a_small_model_has_the_parameters_counted(architecture: str) -> None:
    grouped = {"kv_heads": 1} if architecture != "gpt_neox" else {}
    for changes in ({}, {"tie_embeddings": True}, grouped):
        shape = small(architecture=architecture, **changes)
        model = build_model(shape, 64, 0, seed=0)
        assert parameter_count(shape, 64) == sum(one.numel() for one in model.parameters())


@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_weights_depend_on_the_seed_alone(architecture: str) -> None:
    shape = small(architecture=architecture)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = build_model(shape, 64, 0, seed=0).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    again = build_model(shape, 64, 0, seed=0).state_dict()
    other = build_model(shape, 64, 0, seed=1).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    embedding = "gpt_neox.embed_in.weight" if architecture == "gpt_neox" else EMBEDDING
    assert not torch.equal(first[embedding], other[embedding])
    assert first[embedding].std().item() == pytest.approx(0.02, rel=0.1)


def test_an_end_token_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(InputError, match="end token 64"):
        build_model(small(), 64, 64, 0)


def test_all_problems_of_a_shape_file_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "shape.yaml"
    path.write_text("architecture: lama\nhiden: 64\nlayers: 0\nheads: 2\nintermediate: 8\n")
    with pytest.raises(InputError) as caught:
        load_shape(path)
    message = str(caught.value)
    for part in ("architecture: ", "hiden: unknown key. Did you mean 'hidden'", "layers: ",
                 "hidden: ", "context: ", str(path)):  # fmt: skip
        assert part in message


def test_a_missing_shape_names_its_neighbours() -> None:
    with pytest.raises(InputError, match=r"Did you mean 'llama-1m\.yaml'"):
        load_shape(MODELS / "lama-1m.yaml")


def test_sizes_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="multiple of heads"):
        small(hidden=18)
    with pytest.raises(ValueError, match="multiple of kv_heads"):
        small(hidden=12, heads=3, kv_heads=2)


def test_what_a_family_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="leave kv_heads out"):
        small(architecture="gpt_neox", kv_heads=1)
    with pytest.raises(ValueError, match="a quarter of each head's numbers"):
        small(architecture="gpt_neox", hidden=24, heads=2)
    with pytest.raises(ValueError, match="olmo has a fixed norm_eps"):
        small(architecture="olmo", norm_eps=1e-6)
