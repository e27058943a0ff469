"""The mean negative log-likelihood without an array of all logits.

A language model's loss needs [tokens, vocabulary] logits, their softmax and its gradient: at a
vocabulary of 49,152 that is more than all activations of a small model. Here a few rows at a time
become logits, loss and gradients, and only the gradients of hidden states and output weights
remain. The same three products of matrices are computed; tokens without a label are skipped.
Precision follows autocast: products in its format, softmax and sums in float32.

Cost: at 1,024 tokens and 49,152 entries 0.2 of the plain loss's peak memory
(`python -m scripts.bench.training --loss`).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from transformers import PreTrainedModel

from train.window_inputs import IGNORED

_CHUNK_ROWS = {"cpu": 256, "cuda": 1024}
"""Fewest rows per chunk: fewer would read the output weights too often."""
_CHUNK_BYTES = 1 << 25
"""Bytes of a chunk's float32 logits, if more than the fewest rows fit."""
_PROBE_TOKENS = 9
_TOLERANCE = 1e-4


class _MeanLoss(torch.autograd.Function):
    """The sum of negative log-likelihoods over a divisor; gradients are computed along with it."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        targets: torch.Tensor,
        divisor: torch.Tensor,
    ) -> torch.Tensor:
        """Return the quotient, a scalar in float32.

        Args:
            ctx: stores the gradients.
            hidden: [tokens, width].
            weight: [vocabulary, width].
            bias: [vocabulary], or None.
            targets: [tokens]; none is ignored.
            divisor: a scalar in float32.
        """
        product = hidden.dtype
        if torch.is_autocast_enabled(hidden.device.type):
            product = torch.get_autocast_dtype(hidden.device.type)
        rows, matrix = hidden.to(product), weight.to(product)
        of_hidden, of_weight, of_bias, *_ = ctx.needs_input_grad
        hidden_grad = torch.empty_like(hidden) if of_hidden else None
        # Created by the first product: filling it with zeros first would write it twice.
        weight_grad = None
        if of_weight and not len(rows):
            weight_grad = torch.zeros_like(weight, dtype=torch.float32)
        bias_grad = None if bias is None or not of_bias else torch.zeros_like(bias)
        total = hidden.new_zeros((), dtype=torch.float32)
        size = _chunk_rows(hidden.device, len(weight))
        with torch.autocast(hidden.device.type, enabled=False):
            for start in range(0, len(rows), size):
                part, labels = rows[start : start + size], targets[start : start + size, None]
                summed, gradient = _chunk(part, matrix, bias, labels, divisor)
                total += summed
                if bias_grad is not None:
                    bias_grad += gradient.sum(0)
                gradient = gradient.to(product)
                if hidden_grad is not None:
                    hidden_grad[start : start + size] = gradient @ matrix
                if of_weight and weight_grad is None:
                    weight_grad = (gradient.T @ part).float()
                elif weight_grad is not None and product == torch.float32:
                    weight_grad.addmm_(gradient.T, part)
                elif weight_grad is not None:
                    weight_grad += gradient.T @ part
                # Before the next chunk is created, not after.
                del gradient
        ctx.gradients = hidden_grad, weight_grad, bias_grad
        ctx.formats = weight.dtype, None if bias is None else bias.dtype
        return total / divisor

    @staticmethod
    def backward(ctx: Any, *outer: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients times the outer one, which is usually 1."""
        [factor] = outer
        same = factor.device.type == "cpu" and float(factor) == 1.0
        hidden, weight, bias = ctx.gradients
        ctx.gradients = None
        formats = hidden.dtype if hidden is not None else None, *ctx.formats
        scaled = [
            None if gradient is None else (gradient if same else gradient.mul_(factor)).to(form)
            for gradient, form in zip((hidden, weight, bias), formats, strict=True)
        ]
        return *scaled, None, None


def _chunk(
    part: torch.Tensor,
    matrix: torch.Tensor,
    bias: torch.Tensor | None,
    targets: torch.Tensor,
    divisor: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the summed loss of some rows, and the quotient's gradient of their logits."""
    logits = (part @ matrix.T).float()
    if bias is not None:
        logits += bias
    # In place from here on: the logits become their own gradient, softmax minus target.
    logits -= logits.amax(-1, keepdim=True)
    own = logits.gather(-1, targets)
    sums = logits.exp_().sum(-1, keepdim=True)
    summed = (sums.log() - own).sum()
    logits /= sums * divisor
    return summed, logits.scatter_add_(-1, targets, -(1 / divisor).expand(targets.shape))


@torch.compiler.disable
def causal_loss(
    hidden: torch.Tensor,
    head: torch.nn.Linear,
    labels: torch.Tensor,
    items: torch.Tensor | int | None = None,
) -> torch.Tensor:
    """Return the loss of predicting each next label, as transformers' `ForCausalLMLoss`.

    Args:
        hidden: the last hidden states, [windows, context, width].
        head: the output layer.
        labels: [windows, context]; those equal to `IGNORED` carry no loss.
        items: divisor of the sum; None for the number of labels.
    """
    targets = labels[..., 1:].to(hidden.device).flatten()
    flat = hidden[..., :-1, :].flatten(end_dim=-2)
    counted = targets != IGNORED
    if not bool(counted.all()):
        flat, targets = flat[counted], targets[counted]
    divisor = torch.as_tensor(
        len(targets) if items is None else items, dtype=torch.float32, device=flat.device
    )
    return _MeanLoss.apply(flat, head.weight, head.bias, targets, divisor)


def _chunk_rows(device: torch.device, vocabulary: int) -> int:
    fewest = _CHUNK_ROWS.get(device.type, _CHUNK_ROWS["cuda"])
    return max(fewest, _CHUNK_BYTES // (4 * vocabulary))


@contextmanager
def chunked_loss(model: PreTrainedModel) -> Iterator[bool]:
    """Let a model compute its loss from labels in chunks; its `logits` then are the loss.

    The output layer does so in its own `forward`, in which DeepSpeed has gathered its weights. A
    model that changes its logits after that layer keeps its own loss: a comparison on a few tokens
    detects it.

    Yields:
        Whether the loss is computed in chunks.
    """
    head = model.get_output_embeddings()
    if type(head) is not torch.nn.Linear:
        yield False
        return
    batch: dict[str, Any] = {}

    def take_labels(_: Any, __: Any, inputs: Mapping[str, Any]) -> None:
        batch.clear()
        batch.update(labels=inputs.get("labels"), items=inputs.get("num_items_in_batch"))

    def forward(hidden: torch.Tensor) -> torch.Tensor:
        if batch.get("labels") is None:
            return torch.nn.functional.linear(hidden, head.weight, head.bias)
        return causal_loss(hidden, head, batch["labels"], batch["items"])

    own_loss = model.loss_function
    expected = _probe(model)
    hook = model.register_forward_pre_hook(take_labels, with_kwargs=True)
    head.__dict__["forward"] = forward
    model.loss_function = lambda logits, **_: logits
    try:
        actual = _probe(model)
        same = actual is not None and expected is not None and abs(actual - expected) < _TOLERANCE
        if not same:
            _undo(model, head, own_loss)
        yield same
    finally:
        hook.remove()
        _undo(model, head, own_loss)


def _undo(model: PreTrainedModel, head: torch.nn.Linear, own_loss: Any) -> None:
    head.__dict__.pop("forward", None)
    model.loss_function = own_loss


@torch.no_grad()
def _probe(model: PreTrainedModel) -> float | None:
    """Return the model's loss on a few tokens; None if it is not a number."""
    weight = model.get_input_embeddings().weight
    ids = (torch.arange(_PROBE_TOKENS, device=weight.device) * 7 + 1)[None] % len(weight)
    training = model.training
    model.eval()
    try:
        loss = model(input_ids=ids, labels=ids, use_cache=False).loss
    except (RuntimeError, ValueError, IndexError, TypeError):
        return None
    finally:
        model.train(training)
    return float(loss) if loss.numel() == 1 else None
