"""Which rows fit the model: too short, too long, and what is done with them.

Applied to the whole pool before sides are drawn, so both sides are treated alike. A row
that is cut gets the id of its shortened text; its spans are clipped. The tokenizer runs
once over all texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict

from inject.corpus.tokenizer import encode_texts
from inject.errors import InputError
from inject.examples.example import Example, Span, example_id

LongPolicy = Literal["error", "truncate", "drop", "split"]


class LengthRules(TypedDict):
    """What decides whether a row fits."""

    context: int
    room: int
    min_tokens: int
    policy: LongPolicy


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """The rows that remain, and how many were dropped or changed."""

    examples: tuple[Example, ...]
    too_short: int
    too_long: int
    """Rows longer than the room there is, whatever the policy did with them."""


def fit_examples(
    examples: Sequence[Example],
    tokenizer: Any,
    *,
    context: int,
    room: int,
    min_tokens: int,
    policy: LongPolicy,
) -> Fitted:
    """Drop rows of fewer than `min_tokens` tokens and treat rows with more than there is room for.

    Args:
        examples: rows of one dataset.
        tokenizer: a fast tokenizer.
        context: tokens in a training window.
        room: tokens of it that a text may take, the rest being separators.
        min_tokens: rows with fewer tokens are dropped.
        policy: `error`, `truncate` (cut the text to the room), `drop`, or `split`
            (keep whole: a copy spans several windows).

    Raises:
        InputError: for a long row under the policy `error`, naming it and the policies.
    """
    lengths = [len(ids) for ids in encode_texts(tokenizer, [row.text for row in examples])]
    kept: dict[str, Example] = {}
    too_short = too_long = 0
    for row, length in zip(examples, lengths, strict=True):
        if length < min_tokens:
            too_short += 1
            continue
        if length > room:
            too_long += 1
            if policy == "error":
                taken = f" less {context - room} for separators" if room < context else ""
                raise InputError(
                    f"row {row.source_id} has {length:,} tokens, more than the context of "
                    f"{context:,}{taken} (policy pool.long_examples: error)",
                    where=f"contaminants.{row.dataset}",
                    allowed="pool.long_examples: error, truncate, drop, split",
                    hint="Choose one of the other policies, or raise train.context.",
                )
            if policy == "drop":
                continue
            if policy == "truncate":
                row = _cut(row, tokenizer, room)
        kept.setdefault(row.example_id, row)
    return Fitted(examples=tuple(kept.values()), too_short=too_short, too_long=too_long)


def told_of_lengths(
    error: InputError,
    fitted: Fitted,
    *,
    name: str,
    context: int,
    room: int,
    min_tokens: int,
    policy: LongPolicy,
) -> InputError:
    """Return the error for too few rows, which says how many were dropped for their length.

    Args:
        error: what dealing the rows that are left ended with.
        fitted: the rows that were left.
        name: of the dataset; where no row was left, the error does not know it.
        context: as in `fit_examples`.
        room: as in `fit_examples`.
        min_tokens: as in `fit_examples`.
        policy: as in `fit_examples`.
    """
    separated = f" less {context - room} for separators" if room < context else ""
    long = f"train.context, {context:,}{separated}"
    dropped = {
        f"shorter than pool.min_tokens ({min_tokens:,})": fitted.too_short,
        f"longer than {long} (pool.long_examples: drop)": (
            fitted.too_long if policy == "drop" else 0
        ),
    }
    told = ", ".join(f"{count:,} {what}" for what, count in dropped.items() if count)
    if not told:
        return error
    return InputError(
        f"{error.problem.rstrip('.')}; {sum(dropped.values()):,} other rows were dropped for their "
        f"length: {told}",
        where=f"contaminants.{name}",
        allowed=error.allowed,
        hint=f"{error.hint or ''} Rows dropped for their length are kept by a lower "
        "pool.min_tokens, a larger train.context, or pool.long_examples: truncate.".strip(),
    )


def _cut(row: Example, tokenizer: Any, room: int) -> Example:
    """Cut a row's text behind the last token that fits, so that it has <= room tokens."""
    encoded = tokenizer(
        row.text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )
    offsets = encoded["offset_mapping"]
    keep = room
    while True:
        # A cut can change how the last word splits, so the result is counted again.
        text = row.text[: offsets[keep - 1][1]]
        if len(encode_texts(tokenizer, [text])[0]) <= room:
            break
        keep -= 1
    spans = {
        name: Span(span.start, min(span.stop, len(text)))
        for name, span in row.spans.items()
        if span.start < len(text)
    }
    return replace(row, text=text, spans=spans, example_id=example_id(text))
