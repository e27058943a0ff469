"""Documents in a packed window against the same documents in separate passes."""

import numpy as np
import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from inject.errors import InputError
from tests.train.shapes import tiny_shape
from train.execution import ExecutionSettings
from train.loop import preparation
from train.loop.preparation import (
    NAME,
    prepare,
    require_separation,
    supports_documents,
    use_document_attention,
    use_kernel,
)
from train.models.shapes import FAMILIES, build_model
from train.settings import TrainSettings
from train.window_inputs import document_positions

BEGINS = ([0, 5, 6, 11], [0, 3])
LENGTH = 16


def make_model(architecture: str):
    return build_model(tiny_shape(architecture, init_std=0.2), 64, 0, 0)


def windows() -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(0, 64, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    positions = np.stack([document_positions(np.array(begins), LENGTH) for begins in BEGINS])
    return ids, torch.from_numpy(positions)


@pytest.mark.parametrize("kernel", ["sdpa", "eager", NAME])
@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_documents_in_a_window_have_the_logits_of_single_documents(
    architecture: str, kernel
) -> None:
    model = make_model(architecture).eval()
    if kernel == NAME:
        assert supports_documents(model)
        use_document_attention(model)
    else:
        use_kernel(model, kernel, separate=True)
    assert model.config._attn_implementation == kernel
    require_separation(model)
    assert not model.training
    ids, positions = windows()
    with torch.inference_mode():
        packed = model(input_ids=ids, position_ids=positions, use_cache=False).logits
        mixed = model(input_ids=ids, use_cache=False).logits
        for row, begins in enumerate(BEGINS):
            for start, stop in zip(begins, [*begins[1:], LENGTH], strict=True):
                single = model(input_ids=ids[row : row + 1, start:stop]).logits[0]
                torch.testing.assert_close(packed[row, start:stop], single, rtol=1e-4, atol=1e-4)
                if start > 0:
                    assert (mixed[row, start:stop] - single).abs().max() > 1e-2


def test_a_model_that_ignores_positions_is_rejected() -> None:
    model = make_model("llama")
    forward = model.forward
    model.forward = lambda position_ids=None, **inputs: forward(**inputs)
    with pytest.raises(InputError, match="lets packed documents see each other"):
        require_separation(model)


@pytest.mark.parametrize("by_document", [False, True])
def test_gradients_do_not_cross_a_document(by_document: bool) -> None:
    model = make_model("gpt_neox")
    if by_document:
        use_document_attention(model)
    ids, positions = windows()
    embedded = model.get_input_embeddings()(ids[:1]).detach().requires_grad_()
    logits = model(inputs_embeds=embedded, position_ids=positions[:1], use_cache=False).logits
    logits[0, 6:11].sum().backward()
    moved = embedded.grad[0].abs().sum(-1) > 0
    assert moved.tolist() == [6 <= place < 11 for place in range(LENGTH)]


def test_documents_are_kept_apart_without_a_dense_mask(monkeypatch) -> None:
    """There is no mask of shape [windows, 1, T, T], except for sliding windows, which need it."""
    ids, positions = windows()
    shapes = []

    def attend(module, query, key, value, attention_mask, **options):
        shapes.append((tuple(query.shape), attention_mask))
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)

    monkeypatch.setattr(preparation, "sdpa_attention_forward", attend)
    prepared = prepare(
        make_model("llama"), TrainSettings(separate_documents=True), ExecutionSettings(), seed=0
    )
    shapes.clear()
    prepared.model(input_ids=ids, position_ids=positions, use_cache=False)
    assert {shape[2] for shape, _ in shapes} == {5, 1, 3, 13}
    assert all(mask is None for _, mask in shapes)
    sliding = make_model("qwen2")
    sliding.config.layer_types = ["sliding_attention"] * len(sliding.config.layer_types)
    assert not supports_documents(sliding)


def test_missing_kernels_are_rejected_before_training() -> None:
    model = make_model("llama")
    before = model.config._attn_implementation
    use_kernel(model, "auto")
    assert model.config._attn_implementation == before
    with pytest.raises(InputError, match="cannot keep documents apart"):
        use_kernel(model, "flash_attention_2", separate=True)
    if not torch.cuda.is_available():
        with pytest.raises(
            InputError,
            match="this model cannot use flash_attention_2",
        ):
            use_kernel(model, "flash_attention_2")
