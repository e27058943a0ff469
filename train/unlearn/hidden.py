"""Looking inside a model: its blocks, what one of them puts out, and the model cut after it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from inject.errors import InputError


def blocks_of(model: torch.nn.Module) -> tuple[torch.nn.Module, str]:
    """Return the module that holds the list of blocks, and the name of the list in it.

    Raises:
        InputError: no list of the model has as many members as it has blocks.
    """
    wanted = _config(model).num_hidden_layers
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, torch.nn.ModuleList) and len(child) == wanted:
                return module, name
    raise InputError(
        "the blocks of this model cannot be told from its other parts",
        where="model",
        allowed="a causal language model whose blocks are one list, as in Llama or GPT-NeoX",
    )


def block_list(model: torch.nn.Module) -> list[torch.nn.Module]:
    """Return the blocks of a model, in order."""
    holder, name = blocks_of(model)
    return list(getattr(holder, name))


@contextmanager
def first_blocks(model: torch.nn.Module, n: int) -> Iterator[None]:
    """Let a model compute its first blocks alone."""
    holder, name = blocks_of(model)
    every = getattr(holder, name)
    setattr(holder, name, torch.nn.ModuleList(list(every)[:n]))
    try:
        yield
    finally:
        setattr(holder, name, every)


@contextmanager
def block_output(model: torch.nn.Module, index: int) -> Iterator[list[torch.Tensor]]:
    """Yield a list that the output of a block is put into, [texts, length, hidden]."""
    found: list[torch.Tensor] = []

    def take(module: torch.nn.Module, inputs: Any, output: Any) -> None:
        found.append(output[0] if isinstance(output, tuple) else output)

    hook = block_list(model)[index].register_forward_hook(take)
    try:
        yield found
    finally:
        hook.remove()


def _config(model: torch.nn.Module) -> Any:
    """Return the configuration of a model, whatever wraps it."""
    found: Any = model
    while not hasattr(found, "config") or not hasattr(found.config, "num_hidden_layers"):
        found = found.module
    return found.config
