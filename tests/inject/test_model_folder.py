"""Which files of a saved model count, and that none of them leads out of the folder."""

import json
import os
from pathlib import Path

import pytest

from inject.corpus.named_tokenizer import tokenizer_identity
from inject.corpus.tokenizer import load_tokenizer
from inject.digest import file_digest
from inject.errors import InputError
from inject.formats.huggingface import DatasetsImport
from inject.model_folder import UNREAD, resolve_inside
from inject.reading.change_guard import content_digest, unchanged
from train.models.pretrained import find_model, load_causal_model, model_identity


@pytest.fixture
def saved(tmp_path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama", "vocab_size": 7}')
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "tokenizer.json").write_text("{}")
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "added_tokens.json",
        "adapter_config.json",
        "modeling_own.py",
        "own/more.py",
        "words.tiktoken",
        "model.safetensors",
        "config.json",
    ],
)
def test_model_identity_covers_all_files_it_is_loaded_from(saved, name):
    (saved / name).parent.mkdir(exist_ok=True)
    (saved / name).write_text('{"a": 1}')
    before = model_identity(str(saved))
    (saved / name).write_text('{"a": 2}')
    assert model_identity(str(saved)) != before


@pytest.mark.parametrize("name", ["README.md", ".gitattributes", "step-5/model.safetensors"])
def test_unread_files_do_not_affect_identity(saved, name):
    before = model_identity(str(saved))
    (saved / name).parent.mkdir(exist_ok=True)
    (saved / name).write_text("x")
    assert model_identity(str(saved)) == before
    assert all(UNREAD.values())


def test_pickled_weights_affect_identity_if_code_could_read_them(saved):
    before = model_identity(str(saved))
    (saved / "extra.bin").write_bytes(b"1")
    assert model_identity(str(saved)) == before
    (saved / "modeling_own.py").write_text("x = 1")
    with_code = model_identity(str(saved))
    (saved / "extra.bin").write_bytes(b"2")
    assert model_identity(str(saved)) != with_code


@pytest.mark.parametrize(
    "name",
    [
        "added_tokens.json",
        "vocab.json",
        "merges.txt",
        "tokenizer.model",
        "words.tiktoken",
        "tokenization_own.py",
        "sentencepiece.bpe.vocab",
    ],
)
def test_tokenizer_identity_covers_all_files_that_change_ids(saved, name):
    before = tokenizer_identity(str(saved))
    (saved / name).write_text('{"x": 1}')
    after = tokenizer_identity(str(saved))
    assert after != before
    (saved / name).write_text('{"x": 2}')
    assert tokenizer_identity(str(saved)) != after


def test_tokenizer_identity_excludes_weights_and_chat_templates(saved):
    before = tokenizer_identity(str(saved))
    (saved / "model.safetensors").write_bytes(b"others")
    (saved / "chat_template.jinja").write_text("{{ x }}")
    (saved / "config.json").write_text('{"model_type": "llama", "vocab_size": 8}')
    assert tokenizer_identity(str(saved)) == before
    (saved / "config.json").write_text('{"model_type": "bert"}')
    assert tokenizer_identity(str(saved)) != before


@pytest.mark.parametrize("index", ["model.safetensors.index.json", "pytorch_model.bin.index.json"])
def test_weight_index_that_leaves_the_folder_is_rejected(saved, index):
    (saved.parent / "outside.safetensors").write_bytes(b"x")
    (saved / index).write_text(
        json.dumps({"weight_map": {"lm_head.weight": "../outside.safetensors"}})
    )
    for load in (find_model, model_identity, load_causal_model):
        with pytest.raises(InputError, match=r"index\.json: names .*outside its folder"):
            load(str(saved))


def test_other_files_that_name_outside_files_are_rejected(saved):
    (saved / "config.json").write_text('{"transformers_weights": "../outside.safetensors"}')
    with pytest.raises(InputError, match=r"config\.json: transformers_weights: names"):
        find_model(str(saved))
    (saved / "config.json").write_text("{}")
    (saved / "tokenizer_config.json").write_text('{"merges_file": "/etc/passwd"}')
    with pytest.raises(InputError, match=r"tokenizer_config\.json: merges_file: names"):
        load_tokenizer(str(saved))


def test_saved_dataset_names_only_files_in_its_folder(tmp_path):
    import datasets

    rows = datasets.Dataset.from_dict({"input_ids": [[1, 2, 3]]})
    rows.save_to_disk(tmp_path / "rows")
    source = DatasetsImport(kind="datasets", path=str(tmp_path / "rows"))
    assert len(list(source.batches())) == 1
    state = tmp_path / "rows" / "state.json"
    values = json.loads(state.read_text())
    name = values["_data_files"][0]["filename"]
    (tmp_path / "rows" / name).rename(tmp_path / name)
    values["_data_files"][0]["filename"] = f"../{name}"
    state.write_text(json.dumps(values))
    with pytest.raises(InputError, match=r"state\.json: names '\.\./data"):
        list(source.batches())


@pytest.mark.parametrize("name", ["", "/a", "../a", "a/../../b", "C:\\a", "..\\a", "\\\\host\\a"])
def test_names_that_leave_a_folder_are_rejected(tmp_path, name):
    with pytest.raises(InputError, match="outside its folder"):
        resolve_inside(tmp_path, name, source="file")


# --- digests of files ------------------------------------------------------------------------


def test_digest_detects_an_edit_with_restored_size_and_time(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"one")
    for _ in range(3):
        assert content_digest(file) == file_digest(file)
    before = file.stat()
    file.write_bytes(b"two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert content_digest(file) == file_digest(file)


def test_file_changed_while_read_is_rejected_and_named(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"one")

    def identity() -> dict[str, object]:
        return {"files": [{"name": file.name, "sha256": content_digest(file)}]}

    named = identity()
    with unchanged("corpus.sources", identity, named):
        file.read_bytes()
    with (
        pytest.raises(InputError, match=r"corpus\.sources: a\.jsonl changed after it was hashed"),
        unchanged("corpus.sources", identity, named),
    ):
        file.write_bytes(b"two")
