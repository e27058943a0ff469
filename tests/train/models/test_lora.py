import json
from pathlib import Path

import pytest
import torch

from inject.errors import InputError
from tests.train.shapes import tiny_shape
from train.models.lora import (
    AdapterUntrained,
    adapter_norms,
    add_adapters,
    default_targets,
    linear_layers,
    require_trained,
    save_adapted,
)
from train.models.pretrained import load_causal_model
from train.models.shapes import FAMILIES, build_model
from train.settings import LoraSettings

SETTINGS = LoraSettings(rank=2, alpha=8)


def make_model(architecture: str = "llama"):
    return build_model(tiny_shape(architecture, hidden=16), 64, 0, 0)


def stepped(model, *, lr: float) -> None:
    """Update all trainable weights towards arbitrary tokens."""
    ids = torch.arange(32).reshape(2, 16) % 64
    optimiser = torch.optim.SGD(
        [weight for weight in model.parameters() if weight.requires_grad], lr=lr
    )
    for _ in range(2):
        model(input_ids=ids, labels=ids).loss.backward()
        optimiser.step()
        optimiser.zero_grad()


@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_only_adapters_are_trained_and_the_model_starts_unchanged(architecture: str) -> None:
    model = make_model(architecture)
    ids = torch.arange(16)[None]
    with torch.inference_mode():
        before = model(ids).logits
    adapted = add_adapters(model, SETTINGS, seed=0)
    with torch.inference_mode():
        assert torch.equal(adapted(ids).logits, before)
    trainable = {name for name, weight in adapted.named_parameters() if weight.requires_grad}
    assert trainable
    assert all(".lora_" in name for name in trainable)
    # Two matrices for each adapted projection of the two layers.
    assert len(trainable) == 2 * 2 * len(FAMILIES[architecture].adapted)


def test_new_adapters_depend_only_on_the_seed() -> None:
    def weights(seed: int) -> dict[str, torch.Tensor]:
        torch.manual_seed(seed + 100)
        state = torch.get_rng_state()
        adapted = add_adapters(make_model(), SETTINGS, seed=seed)
        assert torch.equal(torch.get_rng_state(), state)
        return {name: weight for name, weight in adapted.named_parameters() if "lora_A" in name}

    first, again, other = weights(0), weights(0), weights(1)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)


def test_merged_model_matches_the_adapted_one(tmp_path: Path, tiny_model_path) -> None:
    model = load_causal_model(str(tiny_model_path))
    untouched = {name: weight.clone() for name, weight in model.state_dict().items()}
    adapted = add_adapters(model, SETTINGS, seed=0)
    new = adapter_norms(adapted.state_dict())
    stepped(adapted, lr=5.0)
    require_trained(new, adapter_norms(adapted.state_dict()), lr=5.0)
    adapted.eval()
    ids = torch.arange(16)[None]
    with torch.inference_mode():
        expected = adapted(ids).logits
    save_adapted(adapted, tmp_path)
    merged = load_causal_model(str(tmp_path))
    with torch.inference_mode():
        torch.testing.assert_close(merged(ids).logits, expected, rtol=1e-4, atol=1e-5)
        assert not torch.allclose(load_causal_model(str(tiny_model_path))(ids).logits, expected)
    changed = {
        n for n, weight in merged.state_dict().items() if not torch.equal(weight, untouched[n])
    }
    assert changed == {name for name in untouched if "self_attn" in name}

    # A model partitioned over processes has empty weights, and its full state is passed in.
    whole = {name: weight.clone() for name, weight in adapted.state_dict().items()}
    for weight in adapted.parameters():
        weight.data.zero_()
    save_adapted(adapted, tmp_path / "gathered", weights=whole)
    for name, weight in load_causal_model(str(tmp_path / "gathered")).state_dict().items():
        assert torch.equal(weight, merged.state_dict()[name])

    from peft import PeftModel

    again = PeftModel.from_pretrained(
        load_causal_model(str(tiny_model_path)), str(tmp_path / "adapter")
    ).eval()
    with torch.inference_mode():
        torch.testing.assert_close(again(ids).logits, expected, rtol=1e-4, atol=1e-5)
    files = {path.name for path in (tmp_path / "adapter").iterdir()}
    assert files == {"adapter_config.json", "adapter_model.safetensors"}
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert config["target_modules"] == ["k_proj", "o_proj", "q_proj", "v_proj"]
    assert str(tiny_model_path) not in json.dumps(config)


def test_transposed_matrices_are_merged(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_embd=16, n_layer=2, n_head=2)).eval()
    adapted = add_adapters(model, SETTINGS, seed=0)
    stepped(adapted, lr=1.0)
    adapted.eval()
    ids = torch.arange(16)[None]
    with torch.inference_mode():
        expected = adapted(ids).logits
        save_adapted(adapted, tmp_path)
        logits = load_causal_model(str(tmp_path))(ids).logits
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)


def test_unchanged_adapters_are_an_error() -> None:
    adapted = add_adapters(make_model(), SETTINGS, seed=0)
    new = adapter_norms(adapted.state_dict())
    assert len(new) == 8
    assert all(up == 0 < down for down, up in new.values())
    with pytest.raises(AdapterUntrained, match="all 8 adapted layers"):
        require_trained(new, adapter_norms(adapted.state_dict()), lr=1e-4)
    # Weight decay shrinks one matrix and leaves the update at zero: no training took place.
    shrunk = {name: (down / 2, up) for name, (down, up) in new.items()}
    with pytest.raises(AdapterUntrained):
        require_trained(new, shrunk, lr=1e-4)


def test_an_untrained_layer_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    new = adapter_norms(add_adapters(make_model(), SETTINGS, seed=0).state_dict())
    first, *others = new
    moved = {name: (new[name][0], 1.0) for name in others} | {first: new[first]}
    require_trained(new, moved, lr=1e-4)
    assert "1 of 8" in caplog.text
    assert first in caplog.text


def test_layers_are_found_by_name() -> None:
    model = make_model("gpt_neox")
    assert default_targets(model) == ("query_key_value", "dense")
    with pytest.raises(InputError, match=r"'q_proj'") as caught:
        add_adapters(model, LoraSettings(target_modules=("q_proj",)), seed=0)
    assert caught.value.allowed == ", ".join(linear_layers(model))
    adapted = add_adapters(
        make_model(), LoraSettings(rank=2, target_modules=("down_proj", "q_proj")), seed=0
    )
    names = {name.rsplit(".", 1)[-1] for name in adapter_norms(adapted.state_dict())}
    assert names == {"down_proj", "q_proj"}
