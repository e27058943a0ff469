"""Which number formats `auto` stands for on a machine: all of it that decides a number.

Formats are resolved when a step is named, for the machine that will run it, and what runs is what
was resolved: a step named where no GPU is computes in float32 wherever it runs later. No torch is
imported where no driver of an accelerator is installed, so that naming steps stays fast on CPUs.
"""

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

Device = Literal["cpu", "cuda", "mps"]


class Hardware(NamedTuple):
    """The device that `auto` takes, and what it can do."""

    device: Device
    bfloat16: bool = False
    """Whether the GPU computes in bfloat16."""

    def training_precision(self, asked: str) -> str:
        """Return the arithmetic of training that `asked` stands for here.

        Args:
            asked: `auto`, or a number format, which stands for itself. Training uses CUDA or the
                CPU; elsewhere than on a GPU with bfloat16, `auto` is float32.
        """
        if asked != "auto":
            return asked
        return "bfloat16" if self.device == "cuda" and self.bfloat16 else "float32"

    def scoring_format(self, asked: str, *, device: str = "auto") -> str:
        """Return the number format of a scored model that `asked` stands for here.

        Args:
            asked: `auto`, or a number format, which stands for itself.
            device: where the model is asked; `auto` takes this hardware's.

        Returns:
            `auto` on an accelerator, where it is the checkpoint's own format, which the checkpoint
            decides; float32 for `auto` on a CPU.
        """
        where = self.device if device == "auto" else device
        return "float32" if asked == "auto" and where == "cpu" else asked


@cache
def this_machine() -> Hardware:
    """Return the hardware of this machine, as this process may use it."""
    if "torch" not in sys.modules and not _has_driver():
        return Hardware("cpu")
    import torch

    if torch.cuda.is_available():
        return Hardware("cuda", bfloat16=torch.cuda.is_bf16_supported())
    return Hardware("mps" if torch.backends.mps.is_available() else "cpu")


def _has_driver() -> bool:
    """Return whether torch could find an accelerator; True where that cannot be excluded."""
    if not sys.platform.startswith("linux"):
        return True
    # torch computes on AMD's GPUs through this device, on NVIDIA's through this library.
    if Path("/dev/kfd").exists():
        return True
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
