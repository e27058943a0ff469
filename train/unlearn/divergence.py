"""The divergence between two models' predictions, with no array of its size but its gradient.

KL(p || q) = sum over the vocabulary of p (log p - log q), a position. The gradient for the logits
of q is softmax(q) - p; it is written down while the value is computed, in blocks of positions that
stay in a processor's cache. Positions that do not count (padding) are skipped.
"""

from typing import Any

import torch

_BLOCK = {"cpu": 1 << 18}
_DEVICE_BLOCK = 1 << 24
"""Numbers of a block: 1 MiB of float32 on the CPU, 64 MiB elsewhere."""


def kl_divergence(
    p_logits: torch.Tensor, q_logits: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Return KL(p || q) in nats, at each position; only q has a gradient.

    Args:
        p_logits: of the model that is held on to, [texts, length, vocabulary].
        q_logits: of the model in training, [texts, length, vocabulary].
        mask: which positions count, [texts, length]; the divergence at the others is 0.
    """
    found: torch.Tensor = _Divergence.apply(p_logits, q_logits, mask)
    return found


class _Divergence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, p_logits: torch.Tensor, q_logits: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        vocabulary = q_logits.shape[-1]
        p_rows, q_rows = p_logits.reshape(-1, vocabulary), q_logits.reshape(-1, vocabulary)
        counted = mask.flatten()
        # Read once: on a GPU each look at the mask would wait for it.
        some = counted.tolist()
        found = torch.zeros(len(q_rows), dtype=torch.float32, device=q_rows.device)
        gradient = torch.empty_like(q_rows)
        n = max(_BLOCK.get(q_rows.device.type, _DEVICE_BLOCK) // vocabulary, 1)
        for start in range(0, len(q_rows), n):
            rows = slice(start, start + n)
            if all(some[rows]):
                found[rows], gradient[rows] = _block(p_rows[rows], q_rows[rows])
                continue
            gradient[rows] = 0
            if any(some[rows]):
                places = start + counted[rows].nonzero()[:, 0]
                found[places], change = _block(p_rows[places], q_rows[places])
                gradient[places] = change.to(gradient.dtype)
        ctx.save_for_backward(gradient.view(q_logits.shape))
        return found.view(mask.shape)

    @staticmethod
    def backward(ctx: Any, *passed: torch.Tensor) -> tuple[None, torch.Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return None, gradient * passed[0].to(gradient.dtype)[..., None], None


def _block(p_logits: torch.Tensor, q_logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the divergence of some positions, and its gradient."""
    log_p = p_logits.float().log_softmax(1)
    log_q = q_logits.float().log_softmax(1)
    p = log_p.exp()
    value = torch.linalg.vecdot(p, log_p.sub_(log_q))
    return value, log_q.exp_().sub_(p)
