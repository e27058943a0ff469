import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from inject.digest import file_digest
from inject.errors import InputError
from train.models.pretrained import find_model, load_causal_model, model_identity


@pytest.fixture
def folder(tmp_path: Path, tiny_model_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model_path, tmp_path / "model"))


def test_a_saved_model_is_loaded_unchanged_in_float32(folder: Path) -> None:
    AutoModelForCausalLM.from_pretrained(folder).to(torch.bfloat16).save_pretrained(folder)
    saved = load_file(folder / "model.safetensors")
    before = torch.get_rng_state()
    model = load_causal_model(str(folder))
    assert model.dtype == torch.float32
    assert torch.equal(torch.get_rng_state(), before)
    for name, weight in saved.items():
        assert torch.equal(model.state_dict()[name], weight.float())


def test_invalid_model_folders_are_named(folder: Path, monkeypatch) -> None:
    with pytest.raises(InputError, match=r"no such model folder\. Did you mean 'model'"):
        find_model(str(folder.parent / "modle"))
    with pytest.raises(InputError, match=r"the model's name is empty\. Allowed: a folder"):
        find_model("")
    monkeypatch.chdir(folder)
    for name in ("config.json", str(folder / "config.json")):
        with pytest.raises(InputError, match="this is a file; a model is a folder"):
            find_model(name)


def cut(weights: Path) -> None:
    weights.write_bytes(weights.read_bytes()[:1000])


def pickle(weights: Path) -> None:
    weights.unlink()
    weights.with_name("pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'echo'\ntR.")


def leave_one_out(weights: Path) -> None:
    tensors = load_file(weights)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, weights, metadata={"format": "pt"})


def bring_code(weights: Path) -> None:
    config = json.loads((weights.parent / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "code.C"}}
    (weights.parent / "config.json").write_text(json.dumps(config))
    (weights.parent / "code.py").write_text("raise SystemExit('this must not run')\n")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda weights: weights.with_name("config.json").unlink(), r"no config\.json"),
        (Path.unlink, "no weights"),
        (pickle, "reading a pickle can run any code"),
        (cut, "damaged"),
        # Missing weights are not initialised randomly.
        (leave_one_out, r"lack 1 of the model's weights.*up_proj"),
        (bring_code, "Set trust_remote_code"),
    ],
)
def test_unloadable_models_are_rejected_with_a_reason(folder: Path, damage, message: str) -> None:
    damage(folder / "model.safetensors")
    with pytest.raises(InputError, match=message):
        load_causal_model(str(folder))


def test_identity_depends_only_on_the_content(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "elsewhere")
    assert model_identity(str(folder)) == model_identity(str(copy))
    files = model_identity(str(folder))["files"]
    assert files["model.safetensors"] == file_digest(folder / "model.safetensors")
    assert {"config.json", "tokenizer.json"} <= set(files)
    (copy / "config.json").write_text("{}")
    assert model_identity(str(folder)) != model_identity(str(copy))
