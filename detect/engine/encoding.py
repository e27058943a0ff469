"""Texts → ids → windows: which tokens are scored, after which history.

Ids are what the target's own tokenizer returns under the policy; a special token's literal
text inside a text is handled as that tokenizer does by default. A text that fits the context
is one window. A longer one is cut into windows of `context` ids at a stride of half of it;
each token is scored once, in the first window that holds it, which is the one that gives it
the longer history (at least half the context, once past the first window).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from detect.policy import ScoringPolicy
from inject.errors import InputError

_PROBE = "a"
_NOWHERE = (-1, -1)


@dataclass(frozen=True, kw_only=True)
class Window:
    """Ids [start, stop) of one text, of which [first, stop) are scored; start < first < stop."""

    start: int
    first: int
    stop: int


class EncodedText(NamedTuple):
    """One text as its tokenizer returns it."""

    ids: npt.NDArray[np.int64]
    """With the start token that the policy asks for, [n]."""
    offsets: npt.NDArray[np.int32]
    """Characters [start, stop) that each id stands for, [n, 2]; −1 where it stands for none."""


def encode(tokenizer: Any, texts: Sequence[str], policy: ScoringPolicy) -> list[EncodedText]:
    """Return each text's ids, and where they stand in it.

    Offsets are the tokenizer's own; one without an offset mapping gives none (−1 throughout).

    Raises:
        InputError: the policy needs a start token and the tokenizer has none.
    """
    prefix = _added_start(tokenizer, policy)
    if not texts:
        return []
    has_offsets = bool(getattr(tokenizer, "is_fast", False))
    encoded = tokenizer(
        list(texts),
        add_special_tokens=policy.bos != "never",
        padding=False,
        truncation=False,
        return_attention_mask=False,
        return_offsets_mapping=has_offsets,
        verbose=False,
    )
    none = [_NOWHERE] * len(prefix)
    result = []
    for row, found in enumerate(encoded["input_ids"]):
        ids = np.array([*prefix, *found], dtype=np.int64)
        if has_offsets:
            pairs = [*none, *encoded["offset_mapping"][row]]
            offsets = np.array(pairs, dtype=np.int32).reshape(-1, 2)
            offsets[offsets[:, 0] >= offsets[:, 1]] = _NOWHERE
        else:
            offsets = np.full((len(ids), 2), -1, np.int32)
        result.append(EncodedText(ids, offsets))
    return result


def adds_start_token(tokenizer: Any) -> bool:
    """Return whether a tokenizer puts its start token before a text by itself."""
    start = tokenizer.bos_token_id
    own = tokenizer(_PROBE, return_attention_mask=False)["input_ids"]
    return start is not None and bool(own[:1] == [start])


def windows(length: int, context: int | None, policy: ScoringPolicy, *, where: str) -> list[Window]:
    """Return the windows that score ids 1 … length − 1 of a text, each exactly once.

    Args:
        length: number of ids, start token included.
        context: ids a window may hold; None where the model sets no limit.
        policy: its `long` decides about texts beyond the context.
        where: names the text in errors.

    Raises:
        InputError: the text is longer than the context under `long=error`.
    """
    if length < 2:
        return []
    if context is None or length <= context:
        return [Window(start=0, first=1, stop=length)]
    if policy.long == "error":
        raise InputError(
            f"{length} tokens are more than the context of {context}",
            where=where,
            allowed="long=window or long=truncate for texts beyond the context",
        )
    found = [Window(start=0, first=1, stop=context)]
    if policy.long == "truncate":
        return found
    stride = max(1, context // 2)
    while found[-1].stop < length:
        start = found[-1].start + stride
        found.append(Window(start=start, first=found[-1].stop, stop=min(start + context, length)))
    return found


def _added_start(tokenizer: Any, policy: ScoringPolicy) -> list[int]:
    """Return the start token to put before the tokenizer's own output, or nothing."""
    if policy.bos != "always" and policy.score_first != "start_token":
        return []
    start = tokenizer.bos_token_id
    asked = "bos=always" if policy.bos == "always" else "score_first=start_token"
    if start is None:
        raise InputError(
            f"{asked} needs a start token, and this model's tokenizer has none",
            allowed="bos=auto or bos=never, with score_first=drop",
        )
    return [] if adds_start_token(tokenizer) else [start]
