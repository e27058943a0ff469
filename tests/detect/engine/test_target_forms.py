"""Forms of a target: an adapter over its base, quantised, spread over devices."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from detect.engine.forward_pass import token_statistics
from detect.engine.target import Target, load_target, make_target
from detect.settings import ScoringPolicy
from inject.errors import InputError
from tests.conftest import make_texts
from train.models.lora import add_adapters, save_adapted
from train.models.pretrained import find_model, load_causal_model, model_identity
from train.settings import LoraSettings

TEXTS = make_texts(4, words=20)


@pytest.fixture(scope="module")
def folders(tmp_path_factory, tiny_model_path) -> Path:
    """`base`, `merged` and `adapter` of one adapted model."""
    root = tmp_path_factory.mktemp("adapted")
    shutil.copytree(tiny_model_path, root / "base")
    adapted = add_adapters(load_causal_model(str(root / "base")), LoraSettings(rank=3), seed=1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if ".lora_B." in name:
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.3)
    save_adapted(adapted, root / "merged")
    shutil.move(root / "merged" / "adapter", root / "adapter")
    for file in root.glob("base/tokenizer*"):
        shutil.copy(file, root / "merged")
    change(root / "adapter", base_model_name_or_path=str(root / "base"))
    return root


def change(folder: Path, **values) -> None:
    path = folder / "adapter_config.json"
    content = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def scores(target: Target) -> np.ndarray:
    rows = token_statistics(target, TEXTS, ScoringPolicy())
    return np.concatenate([row.log_probability for row in rows])


@pytest.fixture
def adapter(folders, tmp_path) -> Path:
    return Path(shutil.copytree(folders / "adapter", tmp_path / "adapter"))


def test_an_adapter_scores_as_the_merged_model(folders):
    added = load_target(str(folders / "adapter"), device="cpu")
    merged = load_target(str(folders / "merged"), device="cpu")
    base = load_target(str(folders / "base"), device="cpu")
    assert np.abs(scores(added) - scores(merged)).max() < 1e-5
    assert np.abs(scores(added) - scores(base)).max() > 0.05
    assert added.head is not None


def test_separate_adapter_scores_like_a_merged_one(folders):
    """The form of an adapter over a quantised base."""
    from train.models.adapter_folder import find_adapter, with_adapter

    path = folders / "adapter"
    adapter = find_adapter(path, "adapter")
    assert adapter is not None
    model = with_adapter(load_causal_model(adapter.base), adapter, "adapter", merge=False)
    tokenizer = load_target(adapter.base, device="cpu").tokenizer
    separate = make_target(model, tokenizer, name="beside")
    assert np.abs(scores(separate) - scores(load_target(str(path), device="cpu"))).max() < 1e-5


def test_identity_covers_adapter_and_base(folders, adapter, tmp_path):
    first = model_identity(str(adapter))
    assert first["base"] == model_identity(str(folders / "base"))
    moved = shutil.copytree(folders / "base", tmp_path / "elsewhere")
    change(adapter, base_model_name_or_path=str(moved))
    assert model_identity(str(adapter)) == first
    change(adapter, lora_alpha=99)
    scaled = model_identity(str(adapter))
    assert (scaled["base"], scaled == first) == (first["base"], False)
    weights = load_file(moved / "model.safetensors")
    save_file({name: tensor * 1.5 for name, tensor in weights.items()}, moved / "model.safetensors")
    assert model_identity(str(adapter))["base"] != first["base"]


def test_unusable_adapters_are_rejected(adapter, folders):
    sound = (adapter / "adapter_config.json").read_text()
    for values, message in (
        ({"base_model_name_or_path": None}, "does not name its base model"),
        (
            {"base_model_name_or_path": "/no/such/base"},
            "base cannot be used: .*no such model folder.*base_model_name_or_path",
        ),
        ({"peft_type": "IA3"}, "of the kind 'IA3'.*LoRA"),
        ({"modules_to_save": ["lm_head"]}, "replaces whole layers"),
        ({"base_model_name_or_path": str(folders / "adapter")}, "base is an adapter itself"),
    ):
        (adapter / "adapter_config.json").write_text(sound)
        change(adapter, **values)
        with pytest.raises(InputError, match=message):
            find_model(str(adapter))


def test_adapters_with_damaged_weights_are_rejected(adapter):
    weights = adapter / "adapter_model.safetensors"
    matrices = load_file(weights)
    name = next(iter(matrices))

    def assert_rejected(message: str) -> None:
        with pytest.raises(InputError, match=message):
            load_causal_model(str(adapter))

    save_file({key: matrix for key, matrix in matrices.items() if key != name}, weights)
    assert_rejected("does not fit its base .*needs")
    save_file({**matrices, name.replace("layers.0", "layers.77"): matrices[name].clone()}, weights)
    assert_rejected("does not fit its base .*has no place for")
    save_file({**matrices, name: matrices[name][:, :3].contiguous()}, weights)
    assert_rejected("does not fit its base")
    save_file({**matrices, name: matrices[name] * float("nan")}, weights)
    assert_rejected("NaN or infinity")
    weights.write_bytes(b"nothing")
    assert_rejected("weights are damaged")
    weights.unlink()
    (adapter / "adapter_model.bin").touch()
    assert_rejected("no weights in adapter_model.safetensors .*pickled")
    (adapter / "adapter_config.json").write_text("[]")
    assert_rejected("contains no settings")


def test_quantisation_without_its_library_names_the_library(folders, monkeypatch):
    monkeypatch.setattr("train.models.pretrained.find_spec", lambda name: None)
    with pytest.raises(InputError, match="8bit needs bitsandbytes, which is not installed"):
        load_target(str(folders / "base"), device="cpu", dtype="8bit")


@pytest.mark.skipif(
    importlib.util.find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed"
)
@pytest.mark.parametrize("dtype", ["8bit", "4bit"])
@pytest.mark.parametrize("name", ["merged", "adapter"])
def test_quantised_scores_are_close_and_independent_of_the_batch(folders, name, dtype):
    whole = scores(load_target(str(folders / "merged"), device="cpu"))
    target = load_target(str(folders / name), device="cpu", dtype=dtype)
    assert target.model.is_quantized
    values = scores(target)
    assert 1e-6 < np.abs(values - whole).max() < 1.0
    alone = [token_statistics(target, [text], ScoringPolicy())[0].log_probability for text in TEXTS]
    assert np.abs(values - np.concatenate(alone)).max() < 1e-4


def test_8_bit_texts_are_batches_of_one(tiny_model_path, monkeypatch):
    target = load_target(str(tiny_model_path), device="cpu")
    monkeypatch.setattr(target.model, "is_loaded_in_8bit", True, raising=False)
    rows: list[int] = []
    forward = target.model.base_model.forward

    def count_call(*args, **kwargs):
        rows.append(len(kwargs["input_ids"]))
        return forward(*args, **kwargs)

    monkeypatch.setattr(target.model.base_model, "forward", count_call)
    token_statistics(target, TEXTS, ScoringPolicy())
    assert rows[-len(TEXTS) :] == [1] * len(TEXTS)


def test_device_map_gives_the_same_scores(folders):
    plain = load_target(str(folders / "base"), device="cpu")
    spread = load_target(str(folders / "base"), device_map="auto")
    assert np.abs(scores(plain) - scores(spread)).max() < 1e-4
    with pytest.raises(InputError, match="device cpu and a map"):
        load_target(str(folders / "base"), device="cpu", device_map="auto")


def test_offloaded_layers_give_the_same_scores(folders, tmp_path):
    """Layers that do not fit are on the disk; accelerate moves inputs to a layer's device."""
    places = {"model.embed_tokens": "cpu", "model.layers.0": "disk", "model.rotary_emb": "cpu",
              "model.layers.1": "cpu", "model.norm": "cpu"}  # fmt: skip
    plain = load_target(str(folders / "base"), device="cpu")
    expected = scores(plain)
    for head, split in (("cpu", True), ("disk", False)):
        from accelerate import dispatch_model

        model = load_causal_model(str(folders / "base"))
        dispatch_model(
            model, {**places, "lm_head": head}, offload_dir=str(tmp_path / head), main_device="cpu"
        )
        target = make_target(model, plain.tokenizer, name="spread", device=torch.device("cpu"))
        assert (target.head is not None) == split
        assert np.abs(scores(target) - expected).max() < 1e-4
