"""From a contaminant to its examples: read, render, drop what cannot be an example, count.

Invariants: texts are distinct (the first of equal ones stays), so example ids are; every span
cuts exactly its field out of the text; sides and splits are left to the pool. The result is a
function of the contaminant's identity and the seed. Holds all examples in memory.

The length filter drops rows that are too short, and cuts or drops those that are too long. It is
applied to the whole pool before sides are drawn, so both sides are treated alike. A row that is cut
gets the id of its shortened text; its spans are clipped. The tokenizer runs once over all texts.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from inject.corpus.tokenizer import encode_texts, encode_with_offsets
from inject.errors import InputError
from inject.examples.contaminant import Contaminant, checked_options, hub_commits, templates
from inject.examples.datasets.registry import get_dataset
from inject.examples.datasets.source import DatasetSource
from inject.examples.example import DroppedRow, DropReason, Example, Row, Span, example_id
from inject.examples.template import Rendered, Template, parse_template, unknown_placeholder

# The rows requested of an endless dataset per required example: the pool drops near-duplicates, and
# rows of groups that no longer fit.
_SPARE = 2

ANSWER = "answer"
LongPolicy = Literal["error", "truncate", "drop", "split"]


@dataclass(frozen=True, kw_only=True)
class LoadedExamples:
    """The examples of one contaminant, in the order of its rows."""

    examples: tuple[Example, ...]
    """The rows from which members, non-members and held-out rows are drawn."""
    rows: int
    """Rows read."""
    losses: tuple[DroppedRow, ...]
    """Those dropped: an earlier one has the same rendered text; all fields that the template names,
    but for the answer, are blank; the template names the answer and the row has none."""
    repeated_ids: int = 0
    """Examples whose id an earlier one has; `#2`, `#3` … distinguishes them."""
    further: tuple[Example, ...] = ()
    """Rows of an endless dataset that were generated only for held-out rows, after the others."""

    @property
    def every(self) -> tuple[Example, ...]:
        """All of them."""
        return (*self.examples, *self.further)


def load_examples(contaminant: Contaminant, *, seed: int) -> LoadedExamples:
    """Read and render a contaminant's rows.

    Args:
        contaminant: the dataset to load.
        seed: the experiment's seed; keys the draws of datasets that make any.

    Returns:
        The examples with side and split at their defaults, and the counts.

    Raises:
        InputError: an unreadable row, a template that names an unknown field, or fewer examples
            than the members, non-members and held-out rows requested.
    """
    dataset = get_dataset(contaminant.dataset)
    parsed = tuple(parse_template(template) for template in templates(contaminant))
    on_sides = contaminant.members + contaminant.nonmembers
    n_required = on_sides + contaminant.held_out
    # Held-out rows must not change the rows that members are drawn from.
    for_sides = _SPARE * on_sides if dataset.endless else None
    limit = _SPARE * n_required if dataset.endless else None
    source = DatasetSource(
        path=contaminant.path,
        split=contaminant.split,
        commits=hub_commits(contaminant),
        options=checked_options(dataset, contaminant.options),
        fields=contaminant.fields,
        seed=seed,
        limit=limit,
    )
    seen: dict[str, str] = {}
    losses: list[DroppedRow] = []
    source_ids: dict[str, int] = {}
    examples: list[Example] = []
    further: list[Example] = []
    rows = 0
    for rows, row in enumerate(islice(dataset.rows(source), limit), start=1):
        template = _choose(parsed, row)
        rendered = template.render(row.fields)
        blank = _blank_fields(rendered)
        name = example_id(rendered.text)
        if ANSWER in blank:
            losses.append(DroppedRow(contaminant.name, row.source_id, DropReason.UNANSWERED))
        elif blank and blank >= rendered.spans.keys() - {ANSWER}:
            losses.append(DroppedRow(contaminant.name, row.source_id, DropReason.EMPTY))
        elif name in seen:
            losses.append(
                DroppedRow(contaminant.name, row.source_id, DropReason.DUPLICATE, seen[name])
            )
        else:
            seen[name] = f"{contaminant.name} {row.source_id}"
            number = source_ids[row.source_id] = source_ids.get(row.source_id, 0) + 1
            part = examples if for_sides is None or rows <= for_sides else further
            part.append(
                Example(
                    example_id=name,
                    dataset=contaminant.name,
                    source_id=row.source_id if number == 1 else f"{row.source_id}#{number}",
                    group=row.group or name,
                    stratum=row.stratum,
                    fields=row.fields,
                    text=rendered.text,
                    spans=rendered.spans,
                    paraphrases=tuple(template.render(fields).text for fields in row.paraphrases),
                    protected=dataset.protected,
                )
            )
    if (usable := len(seen)) < n_required:
        held_out = f", {contaminant.held_out} held-out rows" if contaminant.held_out else ""
        lost = Counter(loss.drop_reason for loss in losses)
        raise InputError(
            f"{contaminant.members} members and {contaminant.nonmembers} non-members{held_out} "
            f"need {n_required} examples; the dataset has {usable} ({rows} rows read, "
            f"{lost[DropReason.DUPLICATE]} duplicates, {lost[DropReason.EMPTY]} empty, "
            f"{lost[DropReason.UNANSWERED]} without an answer).",
            where=contaminant.name,
            hint="Request fewer, or provide more rows.",
        )
    return LoadedExamples(
        examples=tuple(examples),
        rows=rows,
        losses=tuple(losses),
        repeated_ids=sum(number - 1 for number in source_ids.values()),
        further=tuple(further),
    )


def _choose(parsed: tuple[Template, ...], row: Row) -> Template:
    for template in parsed:
        if template.fits(row.fields):
            return template
    missing = next(name for name in parsed[0].names if name not in row.fields)
    raise unknown_placeholder(missing, row.fields)


def _blank_fields(rendered: Rendered) -> set[str]:
    return {
        name
        for name, span in rendered.spans.items()
        if not rendered.text[span.start : span.stop].strip()
    }


@dataclass(frozen=True, kw_only=True)
class LengthRules:
    """The rules for using a row."""

    context: int
    """Tokens in a training window."""
    room: int
    """Tokens of it that a text may take, the rest being separators."""
    min_tokens: int
    """Rows with fewer tokens are dropped."""
    policy: LongPolicy
    """The policy for rows with more tokens than `room`: `error`, `truncate` (cut the text to the
    room), `drop`, or `split` (keep whole: a copy spans several windows)."""
    max_tokens: int | None = None
    """The setting `pool.max_tokens`, if it decides `room`."""

    @property
    def limit(self) -> str:
        """The limit on long rows, for messages."""
        if self.max_tokens is not None:
            return f"{self.max_tokens:,} (pool.max_tokens)"
        separators = f" less {self.context - self.room} for separators"
        return f"{self.context:,}{separators if self.room < self.context else ''}"


def filter_by_length(
    examples: Sequence[Example],
    tokenizer: Any,
    rules: LengthRules,
    *,
    besides: Sequence[Example] = (),
) -> tuple[tuple[Example, ...], tuple[DroppedRow, ...], int]:
    """Drop rows with too few tokens, and apply the policy to rows with too many.

    Args:
        examples: rows of one dataset.
        tokenizer: a fast tokenizer.
        rules: the limits and the policy.
        besides: rows that stay in place of others that are equal to them once cut.

    Returns:
        The rows that remain, a record of those that were dropped or cut, and the number of rows
        that are longer than the room there is are kept whole.

    Raises:
        InputError: for a long row under the policy `error`, naming it and the policies.
    """
    lengths = [len(ids) for ids in encode_texts(tokenizer, [row.text for row in examples])]
    remaining = {row.example_id: row for row in besides}
    losses: list[DroppedRow] = []
    split = 0
    for row, length in zip(examples, lengths, strict=True):
        name = row.dataset, row.source_id
        if length < rules.min_tokens:
            losses.append(DroppedRow(*name, DropReason.TOO_SHORT))
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
        result = row if fits else None
        if not fits and rules.policy == "truncate":
            result = _cut(row, tokenizer, rules)
        if result is None:
            losses.append(DroppedRow(*name, DropReason.TOO_LONG))
            continue
        same = remaining.setdefault(result.example_id, result)
        if same is not result:
            duplicate_of = f"{same.dataset} {same.source_id}"
            losses.append(DroppedRow(*name, DropReason.EQUAL_ONCE_CUT, duplicate_of))
        elif result.spans.get(ANSWER) != row.spans.get(ANSWER):
            losses.append(DroppedRow(*name, DropReason.CUT_BEFORE_ANSWER))
        elif not fits:
            losses.append(DroppedRow(*name, DropReason.CUT))
    return tuple(remaining.values())[len(besides) :], tuple(losses), split


def length_error(
    error: InputError, losses: Sequence[DroppedRow], *, name: str, rules: LengthRules
) -> InputError:
    """Return the error for too few rows, with the number dropped for their length.

    Args:
        error: raised because too few rows remain.
        losses: the dropped and cut rows.
        name: of the dataset; if no row remains, the error does not know it.
        rules: as given to `filter_by_length`.
    """
    lost = Counter(loss.drop_reason for loss in losses)
    dropped = {
        f"shorter than pool.min_tokens ({rules.min_tokens:,})": lost[DropReason.TOO_SHORT],
        f"longer than train.context, {rules.limit} (pool.long_examples: {rules.policy})"
        if rules.max_tokens is None
        else f"longer than {rules.limit}": lost[DropReason.TOO_LONG],
        f"{DropReason.EQUAL_ONCE_CUT} (pool.long_examples: truncate)"
        if rules.max_tokens is None
        else f"{DropReason.EQUAL_ONCE_CUT} to {rules.limit}": lost[DropReason.EQUAL_ONCE_CUT],
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


def _cut(row: Example, tokenizer: Any, rules: LengthRules) -> Example | None:
    """Cut a row's text after the last token that fits, so that it has at most `room` tokens.

    None if it cannot be cut: no beginning of it has `min_tokens` to `room` tokens.
    """
    room = rules.room
    [(_, offsets)] = encode_with_offsets(tokenizer, [row.text])
    # A cut can change how the last word splits, so the result is counted again.
    texts = (row.text[: offsets[keep - 1][1]] for keep in range(room, 0, -1))
    text = next(
        (
            candidate
            for candidate in texts
            if rules.min_tokens <= len(encode_texts(tokenizer, [candidate])[0]) <= room
        ),
        None,
    )
    if text is None:
        return None
    spans = {
        name: Span(span.start, min(span.stop, len(text)))
        for name, span in row.spans.items()
        if span.start < len(text)
    }
    return replace(row, text=text, spans=spans, example_id=example_id(text))
