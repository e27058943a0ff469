"""The device that computes, as far as it affects numbers: the meaning of `auto` on it.

Number formats are resolved when a step is named, for the device that will run it, and the step runs
as resolved: a step named on a machine without a GPU computes in float32 on any machine. Torch is
not imported if no driver of an accelerator is installed, so that naming steps stays fast on CPUs.

`fastest` is bfloat16 if it speeds up matrix products: on GPUs that have it, and on
processors with instructions for it (avx512_bf16, amx_bf16): there a step of a 1 M model took 0.53
of the time of float32. Processors without them compute it in pieces: nine times slower.
"""

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

_BFLOAT16_FLAGS = frozenset({"avx512_bf16", "amx_bf16"})


class Device(NamedTuple):
    """The device that `auto` selects on a machine, and its capabilities."""

    kind: Literal["cpu", "cuda", "mps"]
    bfloat16: bool = False
    """Whether it multiplies matrices in bfloat16: a GPU, or a processor with the instructions."""

    def training_precision(self, precision: str) -> str:
        """Return the arithmetic of training that `precision` means on this device.

        Args:
            precision: `auto`, `fastest`, or a number format, returned unchanged. Training uses
                CUDA or the CPU; `auto` is float32 except on a GPU with bfloat16.
        """
        if precision not in ("auto", "fastest"):
            return precision
        kinds = ("cuda",) if precision == "auto" else ("cuda", "cpu")
        return "bfloat16" if self.kind in kinds and self.bfloat16 else "float32"

    def scoring_format(self, dtype: str, *, device_kind: str = "auto") -> str:
        """Return the number format of a scored model that `dtype` means on this device.

        Args:
            dtype: `auto`, or a number format, returned unchanged.
            device_kind: the requested device, such as `cuda:1`; `auto` is this one.

        Returns:
            `auto` on an accelerator, which means that of the saved weights; float32 for `auto`
            on a CPU.
        """
        kind = self.kind if device_kind == "auto" else device_kind
        return "float32" if dtype == "auto" and kind == "cpu" else dtype


@cache
def default_device() -> Device:
    """Return the device that `auto` selects in this process."""
    if "torch" not in sys.modules and not _has_driver():
        return _processor()
    import torch

    if torch.cuda.is_available():
        return Device("cuda", bfloat16=torch.cuda.is_bf16_supported())
    return Device("mps") if torch.backends.mps.is_available() else _processor()


def multiplies_bfloat16(processor: str) -> bool:
    """Return whether a processor has instructions for products of bfloat16 matrices.

    Args:
        processor: Linux's description of it (`/proc/cpuinfo`).
    """
    flags = next((line for line in processor.splitlines() if line.startswith("flags")), "")
    return not _BFLOAT16_FLAGS.isdisjoint(flags.split())


def cpu_info() -> str:
    """Return Linux's description of the processor, or an empty text."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _processor() -> Device:
    return Device("cpu", bfloat16=multiplies_bfloat16(cpu_info()))


def _has_driver() -> bool:
    """Return whether torch could find an accelerator; True if unknown."""
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
