import logging

import pytest
import torch

from detect.engine.target import load_target
from inject.errors import InputError
from tests.detect.models import FAMILIES, random_target


@pytest.mark.parametrize("family", [*FAMILIES, "phi"])
def test_body_and_head_are_separated_if_they_reproduce_the_logits(family, tiny_tokenizer):
    target = random_target(family, tiny_tokenizer)
    assert target.head is not None
    assert (target.head.bias is not None) == (family == "phi")


def test_transformed_logits_use_the_model_itself_with_one_notice(tiny_tokenizer, caplog):
    with caplog.at_level(logging.WARNING):
        target = random_target("gemma2", tiny_tokenizer)
        assert target.head is None
        assert target.head is None
    assert caplog.text.count("final_logit_softcapping") == 1


def test_probe_detects_operations_after_the_head(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer)
    forward = target.model.forward

    def scaled(*args, **kwargs):
        output = forward(*args, **kwargs)
        output.logits = output.logits * 1.1
        return output

    target.model.forward = scaled
    assert target.head is None


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_model_has_the_requested_number_format(tiny_model_path, dtype):
    target = load_target(str(tiny_model_path), device="cpu", dtype=dtype)
    assert target.model.dtype == getattr(torch, dtype)


def test_unknown_device_is_rejected(tiny_model_path):
    with pytest.raises(InputError, match="not a device"):
        load_target(str(tiny_model_path), device="abacus")
