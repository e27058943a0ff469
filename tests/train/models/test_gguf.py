import json
import shutil
from functools import cache
from pathlib import Path

import pytest
import torch
from gguf import GGUFReader
from transformers import AutoModelForCausalLM, AutoTokenizer

import spikein
from inject.errors import InputError
from inject.hub.resolver import describe_repository
from tests.inject.hub.fake_hub import FakeHub
from tests.train.models.gguf_files import write_gguf
from train.models.gguf import gguf_folder
from train.models.model_sizes import known_sizes
from train.models.pretrained import find_model, load_causal_model, model_identity
from train.settings import ModelSettings

TEXT = "The river was by the town.\n\n  A teacher from 1987"


@pytest.fixture(scope="module")
def gguf(tmp_path_factory, tiny_tokenizer) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", tiny_tokenizer)


def check_parity(file: Path) -> None:
    place = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    expected = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
    reference_tokenizer = AutoTokenizer.from_pretrained(**place)
    own_tokenizer = AutoTokenizer.from_pretrained(find_model(str(file)).path)
    ids = reference_tokenizer(TEXT, return_tensors="pt")["input_ids"]
    assert torch.equal(ids, own_tokenizer(TEXT, return_tensors="pt")["input_ids"])
    with torch.inference_mode():
        logits = load_causal_model(str(file))(input_ids=ids).logits
        assert torch.equal(logits, expected(input_ids=ids).logits)


def test_logits_match_the_transformers_loader(gguf: Path) -> None:
    check_parity(gguf)


@pytest.mark.data
@pytest.mark.slow
def test_logits_of_a_real_model_match_the_transformers_loader(smollm2: Path, monkeypatch) -> None:
    # Both loaders parse the header, 5 s for 49,152 tokens, for each part that they load.
    monkeypatch.setattr("gguf.GGUFReader", cache(GGUFReader))
    check_parity(smollm2)


def test_identity_depends_on_the_content_and_not_the_path(gguf: Path, tmp_path: Path) -> None:
    identity = model_identity(str(gguf))
    assert set(identity["versions"]) == {"transformers", "gguf"}
    moved = Path(shutil.copy(gguf, tmp_path / "other.gguf"))
    assert model_identity(str(moved)) == identity
    data = bytearray(moved.read_bytes())
    data[-1] ^= 1
    moved.write_bytes(data)
    assert model_identity(str(moved)) != identity


def test_a_damaged_conversion_is_made_again(gguf: Path, caplog) -> None:
    folder = find_model(str(gguf)).path
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    from train.models import gguf as module

    module._convert_once.cache_clear()
    assert gguf_folder(str(gguf)) == folder
    assert "damaged" in caplog.text
    assert weights.read_bytes() == whole
    config = json.loads((folder / "config.json").read_text())
    assert "quantization_config" not in config


def test_neighbouring_files_change_nothing(gguf: Path, tmp_path, monkeypatch) -> None:
    """The tokenizer comes from the GGUF file: neighbouring files are not part of the identity."""
    expected = (find_model(str(gguf)).path / "tokenizer_config.json").read_bytes()
    file = Path(shutil.copy(gguf, tmp_path / "tiny.gguf"))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "LlamaTokenizerFast"}')
    monkeypatch.setenv("SPIKEIN_CACHE", str(tmp_path / "cache"))
    folder = gguf_folder(str(file))
    assert folder.is_relative_to(tmp_path / "cache")
    assert (folder / "tokenizer_config.json").read_bytes() == expected
    assert str(tmp_path) not in (folder / "config.json").read_text()


def test_sizes_are_known_before_training(gguf: Path) -> None:
    sizes = known_sizes(ModelSettings(pretrained=str(gguf)))
    assert sizes is not None
    assert (sizes.shape.hidden, sizes.shape.kv_heads) == (64, 2)


def test_a_file_on_the_hub_is_fetched_by_its_address(gguf, tmp_path, monkeypatch) -> None:
    hub = FakeHub(monkeypatch, tmp_path)
    hub.add("owner/name", {"q4/tiny.gguf": gguf.read_bytes(), "README.md": b""})
    address = "hf://owner/name/q4/tiny.gguf"
    assert model_identity(address) == model_identity(str(gguf))
    assert find_model(address).path == find_model(str(gguf)).path
    with pytest.raises(InputError, match=r"no other\.gguf.*Allowed: q4/tiny\.gguf"):
        find_model("hf://owner/name/other.gguf")
    with pytest.raises(InputError, match="is not the address of a GGUF file"):
        find_model("hf://owner/tiny.gguf")
    with pytest.raises(InputError, match="revision 'main' does not apply to a GGUF file"):
        model_identity(address, revision="main")
    describe_repository.cache_clear()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "nosuch"}, r"architecture nosuch is not supported.*llama.*safetensors"),
        ({"leave_out": "tokenizer"}, "has no tokenizer"),
        ({"parts": 3}, r"one of 3 parts.*llama-gguf-split --merge"),
        ({"rows": 320}, r"320 rows and its tokenizer [0-9,]+ tokens"),
    ],
)
def test_unusable_files_are_reported(tmp_path, tiny_tokenizer, changes, message) -> None:
    file = write_gguf(tmp_path / "bad.gguf", tiny_tokenizer, **changes)
    with pytest.raises(InputError, match=f"(?s){message}"):
        find_model(str(file))


@pytest.mark.parametrize("stop", [0, 3, 2000, -100])
def test_incomplete_files_are_reported(tmp_path, gguf: Path, stop: int) -> None:
    file = tmp_path / "cut.gguf"
    file.write_bytes(gguf.read_bytes()[:stop])
    with pytest.raises(InputError, match=r"whole GGUF file|does not begin with GGUF"):
        find_model(str(file))
    with pytest.raises(InputError, match="no such GGUF file"):
        find_model(str(tmp_path / "none.gguf"))


def test_texts_are_scored_under_a_gguf_model(gguf: Path) -> None:
    texts = [
        "The river was by the town and it was winter.",
        "A letter from the school on the road.",
    ]
    by_file = spikein.score_texts(str(gguf), texts, detectors=["loss", "min_k"])
    by_folder = spikein.score_texts(find_model(str(gguf)).path, texts, detectors=["loss", "min_k"])
    assert by_file.scores["score"].equals(by_folder.scores["score"])
