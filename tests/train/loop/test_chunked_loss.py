"""The loss in chunks against that of transformers, from the same weights."""

import pytest
import torch

from tests.train.shapes import tiny_shape
from train.loop import chunked_loss as module
from train.loop.chunked_loss import chunked_loss
from train.models.lora import add_adapters
from train.models.shapes import FAMILIES, build_model
from train.settings import LoraSettings
from train.window_inputs import IGNORED


def batch(ignored: float) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 300, (3, 16), generator=random)
    labels = ids.masked_fill(torch.rand(ids.shape, generator=random) < ignored, IGNORED)
    return ids, labels


def loss_and_gradients(model, items, ignored, *, precision=torch.float32):
    ids, labels = batch(ignored)
    model.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
        loss = model(input_ids=ids, labels=labels, use_cache=False, num_items_in_batch=items).loss
    (3 * loss).backward()
    return loss.detach(), {
        name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None
    }


@pytest.mark.parametrize("architecture", sorted(FAMILIES))
@pytest.mark.parametrize(("items", "ignored"), [(None, 0.0), (torch.tensor(7), 0.6), (None, 1.0)])
def test_chunked_loss_and_gradients_equal_the_plain_ones(monkeypatch, architecture, items, ignored):
    monkeypatch.setattr(module, "_chunk_rows", lambda device, vocabulary: 20)
    model = build_model(tiny_shape(architecture, init_std=0.2), 300, 0, 0)
    expected, plain = loss_and_gradients(model, items, ignored)
    with chunked_loss(model) as chunked:
        assert chunked
        loss, gradients = loss_and_gradients(model, items, ignored)
        ids, _ = batch(0)
        logits = model(input_ids=ids, use_cache=False).logits
    assert torch.equal(logits, model(input_ids=ids, use_cache=False).logits)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6, equal_nan=True)
    if ignored == 1.0:
        return
    assert gradients.keys() == plain.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, plain[name], rtol=1e-4, atol=1e-5)


def test_bfloat16_products_have_the_precision_of_autocast():
    model = build_model(tiny_shape("llama", init_std=0.2), 300, 0, 0)
    _, exact = loss_and_gradients(model, None, 0.0)
    expected, plain = loss_and_gradients(model, None, 0.0, precision=torch.bfloat16)
    with chunked_loss(model):
        loss, gradients = loss_and_gradients(model, None, 0.0, precision=torch.bfloat16)
    torch.testing.assert_close(loss, expected, rtol=1e-3, atol=0)
    for name, gradient in gradients.items():
        assert gradient.dtype == torch.float32
        error, own = ((computed - exact[name]).norm() for computed in (gradient, plain[name]))
        assert error <= 1.5 * own + 1e-6


def test_frozen_output_weights_get_no_gradient():
    model = build_model(tiny_shape("llama"), 300, 0, 0)
    adapted = add_adapters(model, LoraSettings(), seed=0)
    expected, plain = loss_and_gradients(adapted, None, 0.3)
    with chunked_loss(adapted.get_base_model()) as chunked:
        assert chunked
        loss, gradients = loss_and_gradients(adapted, None, 0.3)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=0)
    assert gradients.keys() == plain.keys()
    assert all("lora" in name for name in gradients)


def test_a_model_that_changes_its_logits_keeps_its_own_loss():
    model = build_model(tiny_shape("llama", init_std=0.2), 300, 0, 0)
    plain = model.forward

    def halved(**inputs):
        labels = inputs.pop("labels", None)
        output = plain(**inputs)
        output.logits = output.logits / 2
        if labels is not None:
            output.loss = model.loss_function(output.logits, labels, vocab_size=300)
        return output

    model.forward = halved
    expected, _ = loss_and_gradients(model, None, 0.0)
    with chunked_loss(model) as chunked:
        assert not chunked
        loss, _ = loss_and_gradients(model, None, 0.0)
    assert torch.equal(loss, expected)
