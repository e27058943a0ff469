"""The length filter: which rows are too short or too long, and what becomes of them.

Applied to the whole pool before sides are drawn, so both sides are treated alike. A row
that is cut gets the id of its shortened text; its spans are clipped. The tokenizer runs
once over all texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from inject.corpus.tokenizer import encode_texts
from inject.errors import InputError
from inject.examples.example import Example, Span, example_id

LongPolicy = Literal["error", "truncate", "drop", "split"]


@dataclass(frozen=True, kw_only=True)
class LengthRules:
    """What decides whether a row is used."""

    context: int
    """Tokens in a training window."""
    room: int
    """Tokens of it that a text may take, the rest being separators."""
    min_tokens: int
    """Rows with fewer tokens are dropped."""
    policy: LongPolicy
    """What becomes of rows with more tokens than `room`: `error`, `truncate` (cut the text to the
    room), `drop`, or `split` (keep whole: a copy spans several windows)."""

    @property
    def limit(self) -> str:
        """The limit on long rows, for messages."""
        separators = f" less {self.context - self.room} for separators"
        return f"{self.context:,}{separators if self.room < self.context else ''}"


@dataclass(frozen=True, kw_only=True)
class LengthFiltered:
    """The rows that remain, and how many were dropped or changed."""

    examples: tuple[Example, ...]
    too_short: int
    too_long: int
    """Rows longer than the room there is, whatever the policy did with them."""


def filter_by_length(
    examples: Sequence[Example], tokenizer: Any, rules: LengthRules
) -> LengthFiltered:
    """Drop rows with too few tokens, and treat rows with too many as the policy says.

    Args:
        examples: rows of one dataset.
        tokenizer: a fast tokenizer.
        rules: the limits and the policy.

    Raises:
        InputError: for a long row under the policy `error`, naming it and the policies.
    """
    lengths = [len(ids) for ids in encode_texts(tokenizer, [row.text for row in examples])]
    remaining: dict[str, Example] = {}
    too_short = too_long = 0
    for row, length in zip(examples, lengths, strict=True):
        if length < rules.min_tokens:
            too_short += 1
            continue
        if length > rules.room:
            too_long += 1
            if rules.policy == "error":
                raise InputError(
                    f"row {row.source_id} has {length:,} tokens, more than the context of "
                    f"{rules.limit} (policy pool.long_examples: error)",
                    where=f"contaminants.{row.dataset}",
                    allowed="pool.long_examples: error, truncate, drop, split",
                    hint="Choose one of the other policies, or raise train.context.",
                )
            if rules.policy == "drop":
                continue
            if rules.policy == "truncate":
                row = _cut(row, tokenizer, rules.room)
        remaining.setdefault(row.example_id, row)
    return LengthFiltered(
        examples=tuple(remaining.values()), too_short=too_short, too_long=too_long
    )


def length_error(
    error: InputError, filtered: LengthFiltered, *, name: str, rules: LengthRules
) -> InputError:
    """Return the error for too few rows, which says how many were dropped for their length.

    Args:
        error: raised because too few rows remain.
        filtered: the rows that remain.
        name: of the dataset; where no row remains, the error does not know it.
        rules: as given to `filter_by_length`.
    """
    dropped = {
        f"shorter than pool.min_tokens ({rules.min_tokens:,})": filtered.too_short,
        f"longer than train.context, {rules.limit} (pool.long_examples: drop)": (
            filtered.too_long if rules.policy == "drop" else 0
        ),
    }
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items() if count)
    if not reasons:
        return error
    return InputError(
        f"{error.problem.rstrip('.')}; {sum(dropped.values()):,} other rows were dropped for their "
        f"length: {reasons}",
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
