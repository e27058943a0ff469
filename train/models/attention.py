"""How attention is computed: by which kernel, and whether packed documents see each other.

Documents are kept apart by positions that begin anew in each: transformers then makes a
block-diagonal mask. A model that ignores them would mix documents without a word, so
`require_separation` asks the model itself, once, before training.
"""

import torch
from transformers import PreTrainedModel

from inject.errors import InputError
from train.execution import Kernel
from train.window_inputs import document_positions

_MIN_RATIO = 20
"""How much nearer a document in a window must be to the document alone than without a mask."""


def use_kernel(model: PreTrainedModel, kernel: Kernel, *, separate: bool = False) -> None:
    """Choose how the model computes attention; `auto` leaves it as it is (mostly SDPA).

    Args:
        model: changed in place.
        kernel: which one.
        separate: whether documents will be kept apart.

    Raises:
        InputError: when the kernel is not installed, the model does not know it, or it cannot
            keep documents apart.
    """
    if kernel == "auto":
        return
    if kernel == "flash_attention_2":
        if separate:
            raise InputError(
                "flash_attention_2 takes no mask over several windows, so it cannot keep "
                "documents apart",
                where="execution.kernel",
                allowed="auto, sdpa, eager with train.separate_documents",
            )
        _require_flash_attention()
    try:
        model.set_attn_implementation(kernel)
    except (ValueError, ImportError) as error:
        raise InputError(
            f"this model cannot use {kernel} ({str(error).splitlines()[0]})",
            where="execution.kernel",
            allowed="auto, sdpa, eager, flash_attention_2",
        ) from error


def _require_flash_attention() -> None:
    from transformers.utils import is_flash_attn_2_available

    if not torch.cuda.is_available():
        raise InputError(
            "flash_attention_2 runs on GPUs alone, and there is none here",
            where="execution.kernel",
            allowed="auto, sdpa, eager",
        )
    if not is_flash_attn_2_available():
        raise InputError(
            "the package flash-attn is not installed",
            where="execution.kernel",
            allowed="auto, sdpa, eager",
            hint="Install flash-attn for this GPU and this version of torch; sdpa uses torch's own "
            "flash attention where it can.",
        )


@torch.inference_mode()
def require_separation(model: PreTrainedModel) -> None:
    """Check that a document's logits in a packed window are those of the document alone.

    Costs three passes over less than 20 tokens; the mode of the model stays as it is.

    Raises:
        InputError: when the model lets packed documents see each other all the same.
    """
    device = next(model.parameters()).device
    rows = model.get_input_embeddings().weight.shape[0]
    ids = (torch.arange(11, device=device) * 7 + 1)[None] % rows
    begin = 5
    begins = torch.tensor([0, begin]).numpy()
    positions = torch.from_numpy(document_positions(begins, ids.shape[1])).to(device)[None]
    training = model.training
    model.eval()
    alone = model(input_ids=ids[:, begin:], use_cache=False).logits
    mixed = model(input_ids=ids, use_cache=False).logits[:, begin:]
    apart = model(input_ids=ids, position_ids=positions, use_cache=False).logits[:, begin:]
    model.train(training)
    seen, left = (mixed - alone).abs().max(), (apart - alone).abs().max()
    if left * _MIN_RATIO > seen:
        raise InputError(
            f"this model ({model.config.model_type}) lets packed documents see each other whatever "
            "their positions",
            where="train.separate_documents",
            hint="Set it to false, or use a model of one of the families llama, olmo, olmo2, "
            "gpt_neox, qwen2.",
        )
