"""The one loader of masked language models."""

import pytest
import torch

from detect.engine.masked_model import is_masked_model, load_masked_model, make_masked_model
from detect.generation.neighbour_proposals import find_neighbours
from inject.errors import InputError
from tests.detect.masked_models import tiny_masked_parts


def test_masked_model_is_loaded_from_a_folder(tmp_path):
    masked = make_masked_model(*tiny_masked_parts(), name="tiny")
    masked.model.save_pretrained(tmp_path)
    masked.tokenizer.save_pretrained(tmp_path)
    loaded = load_masked_model(str(tmp_path), device="cpu")
    assert find_neighbours(loaded, ["the river town"]) == find_neighbours(
        masked, ["the river town"]
    )
    assert loaded.context == masked.context
    assert is_masked_model(str(tmp_path))


def test_other_models_are_rejected_as_masked_models(tmp_path, tiny_model_path):
    with pytest.raises(InputError, match="not loadable as a masked language model"):
        load_masked_model(str(tiny_model_path), device="cpu")
    assert not is_masked_model(str(tiny_model_path))
    with pytest.raises(InputError):
        load_masked_model(str(tmp_path / "absent"), device="cpu")


def test_weights_are_float32_whatever_the_file_format(tmp_path):
    model, tokenizer = tiny_masked_parts()
    model.half().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = load_masked_model(str(tmp_path), device="cpu")
    assert {parameter.dtype for parameter in loaded.model.parameters()} == {torch.float32}
