"""Model FLOPs utilisation: the operations that training needs, over those the devices could make.

Counted as `train.models.shapes.flops_per_token` says, so recomputed activations earn nothing
(Chowdhery et al. 2022, PaLM, appendix B). Known where the model's family is one of ours and the
device is in `train.cost.PEAKS`, and arithmetic is in bfloat16, whose peak that is; NaN everywhere
else.
"""

import torch
from transformers import PreTrainedModel

from train.cost import PEAKS
from train.models.model_sizes import sizes_of_config
from train.models.shapes import flops_per_token


def operations_per_token(model: PreTrainedModel, context: int) -> float:
    """Return the floating-point operations of one training token; NaN for unknown families."""
    config = model.config.get_text_config().to_dict()
    sizes = sizes_of_config(config, source="")
    if sizes is None:
        return float("nan")
    return flops_per_token(sizes.shape, sizes.vocabulary, context)


def peak_operations(device: torch.device, *, bfloat16: bool) -> float:
    """Return a device's dense bfloat16 operations a second; NaN where it is not known."""
    if device.type != "cuda" or not bfloat16:
        return float("nan")
    return peak_of(torch.cuda.get_device_name(device))


def peak_of(name: str) -> float:
    """Return the peak of a GPU by the name that its driver gives, such as `NVIDIA H200`."""
    words = name.lower().replace("-", " ").split()
    return next((peak for gpu, peak in PEAKS.items() if gpu in words), float("nan"))
