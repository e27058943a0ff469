"""The length filter: which rows are too short or too long, and what becomes of them.

Applied to the whole pool before sides are drawn, so both sides are treated alike. A row
that is cut gets the id of its shortened text; its spans are clipped. The tokenizer runs
once over all texts.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from inject.corpus.tokenizer import encode_texts, encode_with_offsets
from inject.errors import InputError
from inject.examples.example import Example, Loss, RowLoss, Span, example_id
from inject.examples.load import ANSWER

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


class LengthFiltered(NamedTuple):
    """The rows that remain, and what became of the others."""

    examples: tuple[Example, ...]
    losses: tuple[RowLoss, ...]
    """Rows that were dropped or cut."""
    split: int
    """Rows longer than the room there is that are kept whole."""


def filter_by_length(
    examples: Sequence[Example],
    tokenizer: Any,
    rules: LengthRules,
    *,
    besides: Sequence[Example] = (),
) -> LengthFiltered:
    """Drop rows with too few tokens, and treat rows with too many as the policy says.

    Args:
        examples: rows of one dataset.
        tokenizer: a fast tokenizer.
        rules: the limits and the policy.
        besides: rows that stay in place of others that are equal to them once cut.

    Raises:
        InputError: for a long row under the policy `error`, naming it and the policies.
    """
    lengths = [len(ids) for ids in encode_texts(tokenizer, [row.text for row in examples])]
    remaining = {row.example_id: row for row in besides}
    losses: list[RowLoss] = []
    split = 0
    for row, length in zip(examples, lengths, strict=True):
        name = row.dataset, row.source_id
        if length < rules.min_tokens:
            losses.append(RowLoss(*name, Loss.TOO_SHORT))
            continue
        fits = length <= rules.room or rules.policy == "split"
        if not fits and rules.policy == "error":
            raise InputError(
                f"row {row.source_id} has {length:,} tokens, more than the context of "
                f"{rules.limit} (policy pool.long_examples: error)",
                where=f"contaminants.{row.dataset}",
                allowed="pool.long_examples: error, truncate, drop, split",
                hint="Choose one of the other policies, or raise train.context.",
            )
        split += fits and length > rules.room
        kept = row if fits else None
        if not fits and rules.policy == "truncate":
            kept = _cut(row, tokenizer, rules.room)
        if kept is None:
            losses.append(RowLoss(*name, Loss.TOO_LONG))
            continue
        same = remaining.setdefault(kept.example_id, kept)
        if same is not kept:
            like = f"{same.dataset} {same.source_id}"
            losses.append(RowLoss(*name, Loss.EQUAL_ONCE_CUT, like))
        elif kept.spans.get(ANSWER) != row.spans.get(ANSWER):
            losses.append(RowLoss(*name, Loss.CUT_BEFORE_ANSWER))
        elif not fits:
            losses.append(RowLoss(*name, Loss.CUT))
    return LengthFiltered(
        examples=tuple(remaining.values())[len(besides) :], losses=tuple(losses), split=split
    )


def length_error(
    error: InputError, losses: Sequence[RowLoss], *, name: str, rules: LengthRules
) -> InputError:
    """Return the error for too few rows, which says how many were dropped for their length.

    Args:
        error: raised because too few rows remain.
        losses: what became of rows.
        name: of the dataset; where no row remains, the error does not know it.
        rules: as given to `filter_by_length`.
    """
    lost = Counter(loss.loss for loss in losses)
    dropped = {
        f"shorter than pool.min_tokens ({rules.min_tokens:,})": lost[Loss.TOO_SHORT],
        f"longer than train.context, {rules.limit} (pool.long_examples: {rules.policy})": lost[
            Loss.TOO_LONG
        ],
        f"{Loss.EQUAL_ONCE_CUT} (pool.long_examples: truncate)": lost[Loss.EQUAL_ONCE_CUT],
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


def _cut(row: Example, tokenizer: Any, room: int) -> Example | None:
    """Cut a row's text behind the last token that fits, so that it has 1 to `room` tokens.

    None where it cannot be cut: not even its first character fits.
    """
    [(_, offsets)] = encode_with_offsets(tokenizer, [row.text])
    # A cut can change how the last word splits, so the result is counted again.
    texts = (row.text[: offsets[keep - 1][1]] for keep in range(room, 0, -1))
    text = next((one for one in texts if 0 < len(encode_texts(tokenizer, [one])[0]) <= room), None)
    if text is None:
        return None
    spans = {
        name: Span(span.start, min(span.stop, len(text)))
        for name, span in row.spans.items()
        if span.start < len(text)
    }
    return replace(row, text=text, spans=spans, example_id=example_id(text))
