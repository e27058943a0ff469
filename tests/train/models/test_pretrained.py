import json
import shutil
import time
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


def test_a_saved_model_comes_back_as_it_was_in_float32(folder: Path) -> None:
    AutoModelForCausalLM.from_pretrained(folder).to(torch.bfloat16).save_pretrained(folder)
    saved = load_file(folder / "model.safetensors")
    before = torch.get_rng_state()
    model = load_causal_model(str(folder))
    assert model.dtype == torch.float32
    assert torch.equal(torch.get_rng_state(), before)
    for name, weight in saved.items():
        assert torch.equal(model.state_dict()[name], weight.float())


def test_a_missing_folder_names_its_neighbour(folder: Path) -> None:
    with pytest.raises(InputError, match=r"no such model folder\. Did you mean 'model'"):
        find_model(str(folder.parent / "modle"))
    with pytest.raises(InputError, match="a model is a folder"):
        find_model(str(folder / "config.json"))


def test_a_folder_without_model_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match=r"no config\.json"):
        load_causal_model(str(folder))


def test_pickled_weights_are_refused_and_why(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="no weights"):
        load_causal_model(str(folder))
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'echo'\ntR.")
    with pytest.raises(InputError, match="reading a pickle can run any code"):
        load_causal_model(str(folder))


def test_damaged_weights_are_refused(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(InputError, match="damaged"):
        load_causal_model(str(folder))


def test_weights_that_are_missing_are_not_made_up(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"lack 1 of the model's weights.*up_proj"):
        load_causal_model(str(folder))


def test_code_of_the_repository_is_not_run_unless_trusted(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "code.C"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text("raise SystemExit('this must not run')\n")
    with pytest.raises(InputError, match=r"Set model\.trust_remote_code"):
        load_causal_model(str(folder))


def test_identity_is_that_of_the_content(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "elsewhere")
    assert model_identity(str(folder)) == model_identity(str(copy))
    files = model_identity(str(folder))["files"]
    assert files["model.safetensors"] == file_digest(folder / "model.safetensors")
    assert {"config.json", "tokenizer.json"} <= set(files)
    (copy / "config.json").write_text("{}")
    assert model_identity(str(folder)) != model_identity(str(copy))


def test_a_hub_that_cannot_be_reached_is_said_within_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import HfApi, constants

    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr(HfApi, "model_info", unreachable)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    started = time.perf_counter()
    with pytest.raises(InputError, match=r"hub cannot be reached .*Name or.*Give a local folder"):
        load_causal_model("nobody/nothing")
    assert time.perf_counter() - started < 5


def test_what_is_no_hub_id_is_refused() -> None:
    with pytest.raises(InputError, match=r"neither a folder here nor a hub id|cannot be reached"):
        find_model("two words")


def test_a_file_that_is_there_is_no_model_and_the_hub_is_not_asked(tmp_path, monkeypatch):
    (tmp_path / "weights.txt").write_text("x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="this is a file; a model is a folder"):
        find_model("weights.txt")
