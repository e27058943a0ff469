"""Input of a loss: the texts of one pass with the model's predictions, row by row.

All rows of a pass (forget, retain, alternative) go through the model in one forward pass. Position
t predicts token t + 1; if that token is padding or carries no loss, its log-probability is 0 and
its mask false. Cost: one cross-entropy over the existing logits; no second array of the
vocabulary's size is created.

The divergence between two models is the sum over the vocabulary of p (log p - log q), per position.
Its gradient for the logits of q, softmax(q) - p, is stored while the value is computed, in blocks
of positions that fit into a processor's cache, so that no other array of its size is created.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch
import torch.nn.functional as F

from train.window_inputs import IGNORED

Role = Literal["forget", "retain", "alternative"]
"""`forget`: texts to forget; `retain`: texts to keep, one paired with each forget text;
`alternative`: the forget text's prompt with another answer (`train.unlearn.methods.dpo`)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FedTexts:
    """The texts of one role, and the model's predictions."""

    ids: torch.Tensor
    """[texts, length]; padded on the right, which no earlier token sees."""
    labels: torch.Tensor
    """[texts, length]; the ids, and `IGNORED` (-100) for tokens without a loss."""
    logits: torch.Tensor | None = None
    """[texts, length, vocabulary], of the model in training."""
    hidden: torch.Tensor | None = None
    """[texts, length, hidden]: the output of a block, for methods that use hidden states."""
    original_log_probability: torch.Tensor | None = None
    """[texts]: under the original model, summed over the labels; for methods that require it."""

    @cached_property
    def targets(self) -> torch.Tensor:
        """The label of the next token at each position, [texts, length]; the last has none."""
        return F.pad(self.labels[:, 1:], (0, 1), value=IGNORED)

    @cached_property
    def mask(self) -> torch.Tensor:
        """Mask of positions whose next token carries a loss, [texts, length]."""
        return self.targets.ne(IGNORED)

    @cached_property
    def counts(self) -> torch.Tensor:
        """Number of each text's tokens with a loss, [texts]; at least 1, to allow division."""
        return self.mask.sum(1).clamp(min=1)

    @cached_property
    def token_log_probabilities(self) -> torch.Tensor:
        """Log-probability of the next token at each position, [texts, length]; 0 without a loss."""
        return token_log_probabilities(self.known_logits(), self.targets)

    @property
    def log_probability(self) -> torch.Tensor:
        """Log-probability of each text, summed over its labels, [texts]."""
        return self.token_log_probabilities.sum(1)

    @property
    def mean_log_probability(self) -> torch.Tensor:
        """Log-probability of each text's labels, the mean over them, [texts]."""
        return self.log_probability / self.counts

    @property
    def loss(self) -> torch.Tensor:
        """Negative log-likelihood per token, the mean over each text's labels, [texts]."""
        return -self.mean_log_probability

    def known_logits(self) -> torch.Tensor:
        """Return `logits`, [texts, length, vocabulary].

        Raises:
            ValueError: if the method uses a hidden layer (`hidden_layer`).
        """
        if self.logits is None:
            raise ValueError("the method looks at a hidden layer, so there are no logits")
        return self.logits

    def known_hidden(self) -> torch.Tensor:
        """Return `hidden`, [texts, length, hidden].

        Raises:
            ValueError: if the method uses logits.
        """
        if self.hidden is None:
            raise ValueError("the method looks at logits; it has no hidden_layer")
        return self.hidden

    def known_original(self) -> torch.Tensor:
        """Return `original_log_probability`, for methods that require it.

        Raises:
            ValueError: if the method does not (`reference`).
        """
        if self.original_log_probability is None:
            raise ValueError("the method requires no reference log-probabilities")
        return self.original_log_probability

    def reduced(self, summed: torch.Tensor, reduction: str) -> torch.Tensor:
        """Return a sum over labels unchanged (`sum`), or per label (`mean`)."""
        return summed if reduction == "sum" else summed / self.counts


@dataclass(frozen=True, kw_only=True, eq=False)
class UnlearningBatch:
    """The texts of one pass: text i of `retain` and `alternative` is paired with text i of
    `forget`."""

    forget: FedTexts
    retain: FedTexts | None = None
    """None if there is no retain set, or the method does not use it."""
    alternative: FedTexts | None = None
    """None except for methods that require it."""
    settings: Any = None
    """Settings of the method."""
    ask_original: Callable[[torch.Tensor], torch.Tensor] | None = None
    """From ids [texts, length] to the original model's logits; for methods that require it."""
    constants: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """The method's random draws before training, such as RMU's direction."""

    def kept(self) -> FedTexts:
        """Return the retain texts, for methods that always have them."""
        if self.retain is None:
            raise ValueError("the method has no retain set")
        return self.retain

    def with_retain(self, lost: torch.Tensor) -> torch.Tensor:
        """Return the loss of each text plus the weighted usual loss of its retain text.

        Without retain texts it is `lost` unchanged, [texts].
        """
        if self.retain is None:
            return lost
        return lost + self.settings.retain_weight * self.retain.loss

    def original(self, texts: FedTexts) -> torch.Tensor:
        """Return the original model's logits (or hidden states) of some texts, without gradients.

        One more forward pass. The method must declare it (`original`).
        """
        if self.ask_original is None:
            raise ValueError("the method does not require the original model (original)")
        with torch.no_grad():
            return self.ask_original(texts.ids)


def token_log_probabilities(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the log-probability of each target, [texts, length]; 0 if it is `IGNORED`.

    Args:
        logits: [texts, length, vocabulary].
        targets: [texts, length].
    """
    lost = F.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return -lost.view(targets.shape)


_BLOCK = {"cpu": 1 << 18}
_DEVICE_BLOCK = 1 << 24
"""Numbers of a block: 1 MiB of float32 on the CPU, 64 MiB elsewhere."""


def kl_divergence(
    p_logits: torch.Tensor, q_logits: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Return KL(p || q) in nats, at each position; only q has a gradient.

    Args:
        p_logits: of the reference model, [texts, length, vocabulary].
        q_logits: of the model in training, [texts, length, vocabulary].
        mask: positions that count, [texts, length]; the divergence at the others is 0.
    """
    return _Divergence.apply(p_logits, q_logits, mask)


class _Divergence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, p_logits: torch.Tensor, q_logits: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        vocabulary = q_logits.shape[-1]
        p_rows, q_rows = p_logits.reshape(-1, vocabulary), q_logits.reshape(-1, vocabulary)
        counted = mask.flatten()
        # Read once: on a GPU each read of the mask would wait for the device.
        some = counted.tolist()
        divergence = torch.zeros(len(q_rows), dtype=torch.float32, device=q_rows.device)
        gradient = torch.empty_like(q_rows)
        n = max(_BLOCK.get(q_rows.device.type, _DEVICE_BLOCK) // vocabulary, 1)
        for start in range(0, len(q_rows), n):
            rows = slice(start, start + n)
            if all(some[rows]):
                divergence[rows], gradient[rows] = _block(p_rows[rows], q_rows[rows])
                continue
            gradient[rows] = 0
            if any(some[rows]):
                places = start + counted[rows].nonzero()[:, 0]
                divergence[places], change = _block(p_rows[places], q_rows[places])
                gradient[places] = change.to(gradient.dtype)
        ctx.save_for_backward(gradient.view(q_logits.shape))
        return divergence.view(mask.shape)

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
