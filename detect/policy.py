"""The choices that every score depends on and that papers leave unsaid, in one recorded place.

Two runs with one policy are comparable; `ScoringPolicy.record()` is stored with statistics
and scores. Nothing here changes with batch size, device or order.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from inject.errors import InputError

StartToken = Literal["auto", "always", "never"]
ScoreFirst = Literal["drop", "start_token"]
LongText = Literal["window", "truncate", "error"]

Adapters = Literal["all_linear", "peft"]
"""How a target is tuned by low-rank adapters: on all linear layers but the head, without weight
decay; or as Zhang et al. 2025 do, on the layers that are PEFT's default for the architecture, with
a weight decay of 0.0005."""


@dataclass(frozen=True, kw_only=True)
class ScoringPolicy:
    """How a text becomes scored positions.

    Raises:
        InputError: for `score_first=start_token` with `bos=never`, a context below 2, or an inverse
            temperature that is not above 0, or given twice.
    """

    bos: StartToken = "auto"
    """Start token: `auto` as the tokenizer does, `always` (added where it is not), `never`
    (no special token of any kind is added)."""
    score_first: ScoreFirst = "drop"
    """`drop`: the first id has no history and is not scored (a start token, or else x_1);
    `start_token`: x_1 is scored after a start token, which is added where there is none."""
    long: LongText = "window"
    """A text longer than the context: `window` (stride half; each token scored once, with
    the longer history), `truncate` (the first `context` tokens), `error`."""
    context: int | None = None
    """Tokens a window may hold; None: the model's own maximum."""
    inverse_temperatures: tuple[float, ...] = ()
    """β at which statistics of softmax(β · logits) are made besides those of the model itself."""

    def __post_init__(self) -> None:
        if self.score_first == "start_token" and self.bos == "never":
            raise InputError(
                "score_first=start_token scores the first token after a start token, "
                "and bos=never forbids one",
                allowed="score_first=start_token with bos=auto or bos=always",
            )
        if self.context is not None and self.context < 2:
            raise InputError(
                f"a context of {self.context} tokens leaves no token to score",
                where="context",
                allowed="2 or more",
            )
        betas = self.inverse_temperatures
        if not all(0 < beta < math.inf for beta in betas) or len(set(betas)) < len(betas):
            raise InputError(
                f"inverse temperatures cannot be {', '.join(map(str, betas))}",
                where="inverse_temperatures",
                allowed="numbers above 0, each once",
            )

    def record(self) -> dict[str, Any]:
        """Return the policy as plain JSON values, to be stored with what it produced."""
        return {**asdict(self), "inverse_temperatures": list(self.inverse_temperatures)}

    def text_record(self) -> dict[str, Any]:
        """Return what of the record bears on log-probabilities and gradients of a text.

        Inverse temperatures are columns of the token statistics alone.
        """
        record = self.record()
        return {name: record[name] for name in ("bos", "score_first", "long", "context")}
