from pathlib import Path

import pytest
import torch

from inject.errors import InputError
from tests.train.shapes import tiny_shape
from train.models.shapes import Shape, build_model, load_shape, parameter_count

MODELS = Path(__file__).resolve().parents[3] / "configs" / "models"


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.yaml")), ids=lambda path: path.stem)
def test_parameter_count_matches_the_built_model(path: Path) -> None:
    shape = load_shape(path)
    with torch.device("meta"):
        model = build_model(shape, 4096, 0, 0)
    assert parameter_count(shape, 4096) == model.num_parameters()
    assert model.config.max_position_embeddings == shape.context
    assert model.config.rope_parameters["rope_theta"] == shape.rope_theta


def small(**changes: object) -> Shape:
    return tiny_shape(**{"hidden": 16, "init_std": 0.02, **changes})


def test_weights_depend_only_on_the_seed() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = build_model(small(), 64, 0, seed=0).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    again = build_model(small(), 64, 0, seed=0).state_dict()
    other = build_model(small(), 64, 0, seed=1).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    embedding = "model.embed_tokens.weight"
    assert not torch.equal(first[embedding], other[embedding])
    assert first[embedding].std().item() == pytest.approx(0.02, rel=0.1)


def test_an_end_token_outside_the_vocabulary_is_rejected() -> None:
    with pytest.raises(InputError, match="end token 64"):
        build_model(small(), 64, 64, 0)


def test_all_problems_of_a_shape_file_are_reported_together(tmp_path: Path) -> None:
    path = tmp_path / "shape.yaml"
    path.write_text("architecture: lama\nhiden: 64\nlayers: 0\nheads: 2\nintermediate: 8\n")
    with pytest.raises(InputError) as caught:
        load_shape(path)
    message = str(caught.value)
    for part in ("architecture: ", "hiden: unknown key. Did you mean 'hidden'", "layers: ",
                 "hidden: ", "context: ", str(path)):  # fmt: skip
        assert part in message


def test_a_missing_shape_suggests_similar_names() -> None:
    with pytest.raises(InputError, match=r"Did you mean 'llama-1m\.yaml'"):
        load_shape(MODELS / "lama-1m.yaml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden": 18}, "multiple of heads"),
        ({"hidden": 12, "heads": 3, "kv_heads": 2}, "multiple of kv_heads"),
        ({"architecture": "gpt_neox", "kv_heads": 1}, "remove kv_heads"),
        ({"architecture": "gpt_neox", "hidden": 24}, "a quarter of each head's numbers"),
        ({"architecture": "olmo", "norm_eps": 1e-6}, "olmo has a fixed norm_eps"),
    ],
)
def test_impossible_sizes_of_a_family_are_rejected(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**changes)


def test_a_shape_file_must_be_a_mapping(tmp_path: Path) -> None:
    (tmp_path / "shape.yaml").write_text("- llama\n")
    with pytest.raises(InputError, match="a mapping of keys to values, got list"):
        load_shape(tmp_path / "shape.yaml")
