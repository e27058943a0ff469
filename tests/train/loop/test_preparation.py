"""Documents in a packed window against the same documents alone."""

import numpy as np
import pytest
import torch

from inject.errors import InputError
from tests.train.shapes import tiny_shape
from train.loop.preparation import require_separation, use_kernel
from train.models.shapes import FAMILIES, build_model
from train.window_inputs import document_positions

BEGINS = ([0, 5, 6, 11], [0, 3])
LENGTH = 16


def built(architecture: str):
    return build_model(tiny_shape(architecture, init_std=0.2), 64, 0, 0)


def windows() -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(0, 64, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    positions = np.stack([document_positions(np.array(one), LENGTH) for one in BEGINS])
    return ids, torch.from_numpy(positions)


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_a_document_in_a_window_has_the_logits_it_has_alone(architecture: str, kernel) -> None:
    model = built(architecture).eval()
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
                alone = model(input_ids=ids[row : row + 1, start:stop]).logits[0]
                torch.testing.assert_close(packed[row, start:stop], alone, rtol=1e-4, atol=1e-4)
                if start > 0:
                    assert (mixed[row, start:stop] - alone).abs().max() > 1e-2


def test_a_model_that_ignores_positions_is_refused() -> None:
    model = built("llama")
    forward = model.forward
    model.forward = lambda position_ids=None, **inputs: forward(**inputs)
    with pytest.raises(InputError, match="lets packed documents see each other"):
        require_separation(model)


def test_gradients_do_not_cross_a_document() -> None:
    model = built("gpt_neox")
    ids, positions = windows()
    embedded = model.get_input_embeddings()(ids[:1]).detach().requires_grad_()
    logits = model(inputs_embeds=embedded, position_ids=positions[:1], use_cache=False).logits
    logits[0, 6:11].sum().backward()
    moved = embedded.grad[0].abs().sum(-1) > 0
    assert moved.tolist() == [6 <= place < 11 for place in range(LENGTH)]


def test_kernels_that_are_not_there_are_refused_before_training() -> None:
    model = built("llama")
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
