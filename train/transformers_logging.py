"""Transformers without its progress bars, and without DeepSpeed where nobody asked for it."""

from collections.abc import Iterator
from contextlib import contextmanager

import accelerate.utils.other
from transformers.utils import logging


@contextmanager
def plain_transformers(*, deepspeed: bool = False) -> Iterator[None]:
    """Hide progress bars, and keep Accelerate from importing an installed DeepSpeed.

    Args:
        deepspeed: it was asked for, and may be imported.

    Accelerate imports it merely to ask whether a model is wrapped by it: three seconds, a
    warning on the standard output, and a failure where its CUDA toolkit is missing.
    """
    shown = logging.is_progress_bar_enabled()
    available = accelerate.utils.other.is_deepspeed_available
    logging.disable_progress_bar()
    if not deepspeed:
        accelerate.utils.other.is_deepspeed_available = lambda: False
    try:
        yield
    finally:
        accelerate.utils.other.is_deepspeed_available = available
        if shown:
            logging.enable_progress_bar()
