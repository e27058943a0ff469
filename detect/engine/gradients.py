"""Texts → norms of the gradient of their mean loss, one text at a time.

The loss is −mean ℓ over the scored tokens, the same tokens after the same history as in the token
statistics: windows of a long text add their gradients. If the target is an adapter on a frozen
model, only the adapter's parameters count. Cost: a forward and a backward pass per text, some three
times a plain pass, and memory for one gradient of the trained parameters. Norms are summed in
float64, in the model's own number format.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from detect.engine.encoding import encode, windows
from detect.engine.open_target import open_target
from detect.engine.target import Target
from detect.settings import DetectSettings, ScoringPolicy
from detect.target_identity import MeasuredCost, write_cost
from detect.text_measures import ORDERS, GradientNorms, Order, write_norms
from detect.token_statistics import EMPTY_TEXT, ONE_TOKEN
from inject.errors import InputError
from inject.examples.example import read_examples
from inject.keyed import I64
from inject.step import StepContext

_ADAPTER = "lora_"


def build(context: StepContext) -> None:
    """Compute the norms of every example, and write them."""
    rows = read_examples(context.inputs["examples"])
    norms = gradient_norms(
        open_target(context),
        [row.text for row in rows],
        DetectSettings.model_validate(context.execution["detect"]).policy(),
        progress=lambda done, total: context.report(done, total, unit="texts"),
    )
    write_norms(context.out, [row.example_id for row in rows], norms)
    read = [norm.tokens_in for norm in norms if norm.tokens_in]
    write_cost(context.out, MeasuredCost(passes=len(read), tokens_in=sum(read)))


def gradient_norms(
    target: Target,
    texts: Sequence[str],
    policy: ScoringPolicy,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[GradientNorms]:
    """Return the norms of each text, in the order given.

    Args:
        target: model and tokenizer.
        texts: any texts; an empty one, or one of a single token, gets a reason.
        policy: start token, first token, long texts.
        progress: called with (texts done, texts in all).

    Raises:
        InputError: a text beyond the context under `long=error`, a required start token that the
            tokenizer lacks, or a text whose gradient exceeds the memory.
    """
    context = target.context if policy.context is None else policy.context
    norms = []
    with _enable_gradients(target.model) as parameters:
        encoded = encode(target.tokenizer, texts, policy)
        for row, (text, (ids, _)) in enumerate(zip(texts, encoded, strict=True), start=1):
            cut = windows(len(ids), context, policy, place=f"text {row}") if text else []
            if cut:
                pieces = [(ids[span.start : span.stop], span.first - span.start) for span in cut]
                norms.append(_norms(target, parameters, pieces))
            else:
                norms.append(GradientNorms(reason=ONE_TOKEN if text else EMPTY_TEXT))
            progress(row, len(texts))
    return norms


@contextmanager
def _enable_gradients(model: Any) -> Iterator[list[torch.nn.Parameter]]:
    """Enable gradients only for trained parameters; restore the model afterwards."""
    named = list(model.named_parameters())
    before = [parameter.requires_grad for _, parameter in named]
    adapters = [parameter for name, parameter in named if _ADAPTER in name]
    trained = adapters or [parameter for _, parameter in named]
    try:
        for _, parameter in named:
            parameter.requires_grad_(False)
        for parameter in trained:
            parameter.requires_grad_(True)
        with torch.enable_grad():
            yield trained
    finally:
        model.zero_grad(set_to_none=True)
        for (_, parameter), required in zip(named, before, strict=True):
            parameter.requires_grad_(required)


def _norms(
    target: Target, parameters: Sequence[torch.nn.Parameter], pieces: Sequence[tuple[I64, int]]
) -> GradientNorms:
    total = sum(len(ids) - first for ids, first in pieces)
    inputs = []
    target.model.zero_grad(set_to_none=True)
    try:
        for ids, first in pieces:
            inputs.append(_add_gradient(target, ids, first, total))
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise InputError(
            f"the gradient of one text of {max(len(ids) for ids, _ in pieces)} tokens exceeds the "
            f"memory of {target.device}",
            where=target.name,
            hint="Give a smaller context, a 16-bit dtype, or another device; or leave out the "
            "detectors that need gradients.",
        ) from error
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    squares = sum(float(gradient.double().square().sum()) for gradient in gradients)
    return GradientNorms(
        whole=squares**0.5,
        tensors=tuple(float(np.mean([_norm([tensor], p) for tensor in gradients])) for p in ORDERS),
        embeddings=tuple(_norm(inputs, p) for p in ORDERS),
        tokens_in=total,
    )


def _add_gradient(target: Target, ids: I64, first: int, total: int) -> torch.Tensor:
    """Add the gradient of one window's share of the loss; return that of its input embeddings."""
    row = torch.from_numpy(ids).to(target.device)[None]
    embedded: list[torch.Tensor] = []

    def keep(module: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor:
        # A separate leaf if the embedding is frozen.
        if not output.requires_grad:
            output = output.detach().requires_grad_(True)
        output.retain_grad()
        embedded.append(output)
        return output

    hook = target.model.get_input_embeddings().register_forward_hook(keep)
    try:
        logits = target.model(input_ids=row, use_cache=False).logits[0, first - 1 : -1]
    finally:
        hook.remove()
    log_probability = torch.log_softmax(logits.to(_summed_in(logits)), dim=-1)
    chosen = log_probability.gather(-1, row[0, first:, None])
    torch.autograd.backward(-chosen.sum() / total)
    gradient = embedded[0].grad
    if gradient is None:
        raise TypeError("the input embeddings have no gradient")
    return gradient


def _summed_in(logits: torch.Tensor) -> torch.dtype:
    return torch.float64 if logits.dtype == torch.float64 else torch.float32


def _norm(tensors: Sequence[torch.Tensor], order: Order) -> float:
    """Return the p-norm of all entries of some tensors."""
    if order == "inf":
        return max(float(tensor.abs().max()) for tensor in tensors)
    if order == "1":
        return sum(float(tensor.double().abs().sum()) for tensor in tensors)
    return float(sum(float(tensor.double().square().sum()) for tensor in tensors) ** 0.5)
