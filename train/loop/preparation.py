"""From a loaded model to the one that is trained, and from the trained one to its files.

What the modes do differently is here, so that the loop knows none of them: which kernel computes
attention, whether documents are kept apart, adapters that are put on, checked and merged.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Union

import torch
from transformers import PreTrainedModel

from train.execution import ExecutionSettings
from train.models.attention import require_separation, use_kernel
from train.models.lora import (
    AdapterNorms,
    adapter_norms,
    add_adapters,
    require_trained,
    save_adapted,
)
from train.settings import TrainSettings
from train.transformers_logging import plain_transformers

if TYPE_CHECKING:
    from peft import PeftModel


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A model that is ready to be trained; make one with `prepare`."""

    model: Union[PreTrainedModel, "PeftModel"]
    """What the loop trains: the model itself, or the model with adapters on it."""
    settings: TrainSettings
    new: Mapping[str, AdapterNorms] | None
    """Norms of the new adapters; None where there are none."""

    def save(
        self,
        out: Path,
        *,
        weights: Mapping[str, torch.Tensor] | None = None,
        settled: bool = True,
    ) -> None:
        """Write the trained model; with adapters, merged, and themselves in `out/adapter`.

        Args:
            out: the folder of the checkpoint.
            weights: the whole state, where the model's own parameters are spread over processes.
            settled: whether training is over, so that adapters that have not moved are an error.

        Raises:
            AdapterUntrained: when no adapter moved.
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
        InputError: for a kernel that is not there, a model that cannot keep documents apart, and
            adapters for layers that it has not.
    """
    use_kernel(model, execution.kernel, separate=settings.separate_documents)
    if settings.separate_documents:
        require_separation(model)
    if execution.checkpointing:
        # The other kind needs inputs with gradients, which frozen embeddings do not give.
        model.activation_checkpointing_enable({"use_reentrant": False})
    adapters = settings.adapters
    if adapters is None:
        return Prepared(model=model, settings=settings, new=None)
    adapted = add_adapters(model, adapters, seed=seed)
    new = adapter_norms(adapted.state_dict())
    return Prepared(model=adapted, settings=settings, new=new)
