"""Texts → ids → windows: the scored tokens and their history.

Ids are what the target's own tokenizer returns under the policy; a special token spelled out in a
text counts as letters, as in the training stream. A text that fits the context is one window. A
longer one is cut into windows of `context` ids at a stride of half of it; each token is scored
once, in the first window that contains it, which gives it the longer history (at least
half the context, once past the first window).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from detect.settings import ScoringPolicy
from inject.corpus.tokenizer import EncodedText, encode_texts, encode_with_offsets
from inject.errors import InputError

_PROBE = "a"


@dataclass(frozen=True, kw_only=True)
class Window:
    """Ids [start, stop) of one text, of which [first, stop) are scored; start < first < stop."""

    start: int
    first: int
    stop: int


def encode(tokenizer: Any, texts: Sequence[str], policy: ScoringPolicy) -> list[EncodedText]:
    """Return each text's ids, start token included, and their positions in the text.

    A tokenizer that does not report positions gives −1 throughout.

    Raises:
        InputError: the policy needs a start token and the tokenizer has none.
    """
    prefix = np.array(_added_start(tokenizer, policy), dtype=np.int64)
    added = policy.bos != "never"
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        encoded = [
            EncodedText(ids, np.full((len(ids), 2), -1, np.int32))
            for ids in encode_texts(tokenizer, texts, added=added)
        ]
    else:
        encoded = encode_with_offsets(tokenizer, texts, added=added)
    none = np.full((len(prefix), 2), -1, np.int32)
    result = []
    for ids, offsets in encoded:
        # Such as the mark that some tokenizers put before a text.
        offsets[offsets[:, 0] >= offsets[:, 1]] = -1
        result.append(EncodedText(np.concatenate([prefix, ids]), np.concatenate([none, offsets])))
    return result


def encode_rows(
    tokenizer: Any, rows: Sequence[str | list[int]], policy: ScoringPolicy
) -> list[EncodedText]:
    """Return the ids of texts by `encode`; rows that are ids stay as they are, without offsets."""
    texts = [row for row in rows if isinstance(row, str)]
    encoded = iter(encode(tokenizer, texts, policy) if texts else ())
    return [
        next(encoded)
        if isinstance(row, str)
        else EncodedText(np.array(row, np.int64), np.full((len(row), 2), -1, np.int32))
        for row in rows
    ]


def adds_start_token(tokenizer: Any) -> bool:
    """Return whether a tokenizer itself puts its start token before a text."""
    start = tokenizer.bos_token_id
    own = tokenizer(_PROBE, return_attention_mask=False)["input_ids"]
    return start is not None and bool(own[:1] == [start])


def windows(length: int, context: int | None, policy: ScoringPolicy, *, place: str) -> list[Window]:
    """Return the windows that score ids 1 … length − 1 of a text, each exactly once.

    Args:
        length: number of ids, start token included.
        context: maximum ids per window; None if the model sets no limit.
        policy: `long` decides the treatment of texts beyond the context.
        place: names the text in errors.

    Raises:
        InputError: if the text is longer than the context under `long=error`.
    """
    if length < 2:
        return []
    if context is None or length <= context:
        return [Window(start=0, first=1, stop=length)]
    if policy.long == "error":
        raise InputError(
            f"{length} tokens are more than the context of {context}",
            where=place,
            allowed="long=window or long=truncate for texts beyond the context",
        )
    spans = [Window(start=0, first=1, stop=context)]
    if policy.long == "truncate":
        return spans
    stride = max(1, context // 2)
    while spans[-1].stop < length:
        start = spans[-1].start + stride
        spans.append(Window(start=start, first=spans[-1].stop, stop=min(start + context, length)))
    return spans


def _added_start(tokenizer: Any, policy: ScoringPolicy) -> list[int]:
    """Return the start token to put before the tokenizer's own output, or nothing."""
    if policy.bos != "always" and policy.score_first != "start_token":
        return []
    start = tokenizer.bos_token_id
    setting = "bos=always" if policy.bos == "always" else "score_first=start_token"
    if start is None:
        raise InputError(
            f"{setting} needs a start token, and this model's tokenizer has none",
            allowed="bos=auto or bos=never, with score_first=drop",
        )
    return [] if adds_start_token(tokenizer) else [start]
