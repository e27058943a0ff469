"""Models in 8 or 4 bits, through bitsandbytes where it is installed.

Quantised weights are other numbers, so that scores differ from the model's own. The output layer
and the norms keep 16 bits; products are computed in bfloat16 (4 bits) or float16 (8 bits).
"""

from importlib.util import find_spec
from typing import Any

from inject.errors import InputError

QUANTISED = ("8bit", "4bit")


def quantisation_config(bits: str, name: str) -> Any:
    """Return the settings of transformers' loader.

    Args:
        bits: one of `QUANTISED`.
        name: the model, for the message.

    Raises:
        InputError: bitsandbytes is not installed.
    """
    if find_spec("bitsandbytes") is None:
        raise InputError(
            f"a model in {bits} needs bitsandbytes, which is not installed",
            where=name,
            allowed="auto, float32, bfloat16, float16 without it",
            hint="pip install bitsandbytes",
        )
    import torch
    from transformers import BitsAndBytesConfig

    if bits == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
    )
