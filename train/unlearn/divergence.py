"""The divergence between two models' predictions, without a second array of its size.

KL(p || q) = sum over the vocabulary of p (log p - log q), a position. The gradient for the logits
of q is softmax(q) - p; it is written down while the value is computed, in blocks of positions, so
that beside the two logits one array of their size exists, the gradient, and no other.
"""

from typing import Any

import torch

_BLOCK = 1 << 22
"""Numbers of a block: 16 MiB of float32."""


def kl_divergence(p_logits: torch.Tensor, q_logits: torch.Tensor) -> torch.Tensor:
    """Return KL(p || q) in nats, a position; only q has a gradient.

    Args:
        p_logits: of the model that is held on to, [positions, vocabulary].
        q_logits: of the model in training, [positions, vocabulary].
    """
    found: torch.Tensor = _Divergence.apply(p_logits, q_logits)
    return found


class _Divergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, p_logits: torch.Tensor, q_logits: torch.Tensor) -> torch.Tensor:
        found = torch.zeros(len(p_logits), dtype=torch.float32, device=p_logits.device)
        gradient = torch.empty_like(q_logits)
        n = max(_BLOCK // max(p_logits.shape[1], 1), 1)
        for start in range(0, len(p_logits), n):
            rows = slice(start, start + n)
            log_p = p_logits[rows].float().log_softmax(1)
            log_q = q_logits[rows].float().log_softmax(1)
            p = log_p.exp()
            found[rows] = (p * log_p.sub_(log_q)).sum(1)
            gradient[rows] = log_q.exp_().sub_(p)
        ctx.save_for_backward(gradient)
        return found

    @staticmethod
    def backward(ctx: Any, *passed: torch.Tensor) -> tuple[None, torch.Tensor]:
        (gradient,) = ctx.saved_tensors
        return None, gradient * passed[0].to(gradient.dtype)[:, None]
