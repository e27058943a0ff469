"""From a loaded model to the model in training, and from the trained model to its files.

The differences between modes are here, so that the loop is independent of them: the attention
kernel, the separation of documents, and adapters that are added, checked and merged.

Documents are kept apart by positions that restart in each; every window begins with one.
transformers turns them into a dense mask of [windows, 1, T, T]; here each document has a separate
causal attention, which also saves the products between documents. Models whose attention is not
simply causal (sliding windows) keep the dense mask. A model that ignores positions would mix
documents silently, so `require_separation` tests the model itself, once, before training.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Union

import torch
from transformers import PreTrainedModel

from inject.errors import InputError
from train.execution import ExecutionSettings, Kernel
from train.models.lora import (
    adapter_norms,
    add_adapters,
    require_trained,
    save_adapted,
)
from train.process_state import plain_transformers
from train.settings import TrainSettings
from train.window_inputs import document_positions

if TYPE_CHECKING:
    from peft import PeftModel
from typing import Any

from torch.utils.weak import WeakTensorKeyDictionary
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from train.models.shapes import FAMILIES

_MIN_RATIO = 20
"""How much closer a document in a window must be to the separate document than without a mask."""


NAME = "spikein_documents"
Bounds = list[list[tuple[int, int]]]
_known = WeakTensorKeyDictionary()


def use_kernel(model: PreTrainedModel, kernel: Kernel, *, separate: bool = False) -> None:
    """Choose how the model computes attention; `auto` leaves it unchanged (usually SDPA).

    Args:
        model: changed in place.
        kernel: the attention kernel.
        separate: whether documents will be kept apart.

    Raises:
        InputError: if the kernel is not installed, the model does not support it, or it cannot keep
            documents apart.
    """
    if kernel == "auto":
        return
    if kernel == "flash_attention_2" and separate:
        raise InputError(
            "flash_attention_2 takes no mask over several windows, so it cannot keep documents "
            "apart",
            where="training_runtime.attention",
            allowed="auto, sdpa, eager with train.separate_documents",
        )
    try:
        model.set_attn_implementation(kernel)
    except (ValueError, ImportError) as error:
        raise InputError(
            f"this model cannot use {kernel} ({str(error).splitlines()[0]})",
            where="training_runtime.attention",
            allowed="auto, sdpa, eager; flash_attention_2 on a GPU with the package flash-attn",
        ) from error


@torch.inference_mode()
def require_separation(model: PreTrainedModel) -> None:
    """Check that a document's logits in a packed window equal those of the separate document.

    Costs three passes over less than 20 tokens; the mode of the model is unchanged.

    Raises:
        InputError: if the model still lets packed documents see each other.
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


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A model that is ready for training; create one with `prepare`."""

    model: Union[PreTrainedModel, "PeftModel"]
    """The model that the loop trains: the model itself, or the model with adapters."""
    settings: TrainSettings
    new: Mapping[str, tuple[float, float]] | None
    """Norms of the new adapters; None if there are none."""

    def save(
        self,
        out: Path,
        *,
        weights: Mapping[str, torch.Tensor] | None = None,
        settled: bool = True,
    ) -> None:
        """Write the trained model; with adapters, merged, and themselves in `out/adapter`.

        Args:
            out: the folder of the trained model.
            weights: the whole state, if the model's own parameters are spread over processes.
            settled: whether training is over, so that adapters that have not moved are an error.

        Raises:
            AdapterUntrained: if no adapter moved.
        """
        if self.new is not None:
            state = self.model.state_dict() if weights is None else weights
            if settled:
                require_trained(self.new, adapter_norms(state), lr=self.settings.lr)
            save_adapted(self.model, out, weights=weights)
            return
        with plain_transformers():
            self.model.save_pretrained(out, state_dict=weights)


def prepare(
    model: PreTrainedModel, settings: TrainSettings, execution: ExecutionSettings, *, seed: int
) -> Prepared:
    """Make a model ready for its mode.

    Args:
        model: changed in place: its kernel, and for LoRA its weights are frozen.
        settings: how it will be trained.
        execution: which kernel, and whether activations are kept or computed again.
        seed: decides new adapters.

    Raises:
        InputError: for a kernel that is not installed, a model that cannot keep documents apart,
            and adapters for missing layers.
    """
    use_kernel(model, execution.attention, separate=settings.separate_documents)
    if settings.separate_documents:
        by_document = execution.attention in ("auto", "sdpa") and supports_documents(model)
        # A compiled model uses the mask: the number of documents differs from pass to pass.
        if by_document and not execution.compile:
            use_document_attention(model)
        require_separation(model)
    if execution.gradient_checkpointing:
        # The other kind requires inputs with gradients, which frozen embeddings do not have.
        model.activation_checkpointing_enable({"use_reentrant": False})
    adapters = settings.adapters
    if adapters is None:
        return Prepared(model=model, settings=settings, new=None)
    adapted = add_adapters(model, adapters, seed=seed)
    new = adapter_norms(adapted.state_dict())
    return Prepared(model=adapted, settings=settings, new=new)


def supports_documents(model: PreTrainedModel) -> bool:
    """Return whether a model's attention is plain causal attention in every layer."""
    config = model.config
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    return config.model_type in FAMILIES and kinds == {"full_attention"}


def use_document_attention(model: PreTrainedModel) -> None:
    """Let a model attend within documents, as its positions mark them."""
    AttentionInterface.register(NAME, document_attention)
    model.set_attn_implementation(NAME)


def document_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    position_ids: torch.Tensor | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Return the attention within each document, [windows, T, heads, width].

    Args:
        module: the attention layer.
        query: [windows, heads, T, width]; key and value likewise, with their own number of heads.
        key: as `query`.
        value: as `query`.
        attention_mask: None, since no mask is made for this function.
        position_ids: [windows, T], 0 at the start of each document; None for a single one.
        **options: scaling and dropout, as transformers' attention functions take them.
    """

    def attend(row: slice, span: slice) -> torch.Tensor:
        q, k, v = (states[row, :, span] for states in (query, key, value))
        return sdpa_attention_forward(module, q, k, v, None, **options)[0]

    bounds = _bounds(position_ids, len(query))
    if all(len(spans) == 1 for spans in bounds):
        return attend(slice(None), slice(None)), None
    windows = [
        torch.cat([attend(slice(row, row + 1), slice(*span)) for span in spans], dim=1)
        for row, spans in enumerate(bounds)
    ]
    return torch.cat(windows), None


def _bounds(position_ids: torch.Tensor | None, windows: int) -> Bounds:
    """Return start and end of each document, per window; once per pass, not per layer."""
    if position_ids is None:
        return [[(0, 0)]] * windows
    if position_ids not in _known:
        length = position_ids.shape[1]
        starts: list[list[int]] = [[] for _ in range(len(position_ids))]
        for row, start in (position_ids == 0).nonzero().tolist():
            starts[row].append(start)
        _known[position_ids] = [list(zip(row, [*row[1:], length], strict=True)) for row in starts]
    bounds: Bounds = _known[position_ids]
    return bounds if len(bounds) == windows else bounds * windows
