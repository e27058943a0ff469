"""Draw a plan: copy counts, variants and anchors of one arm, and the payload they need.

Every draw is keyed (`inject.keyed`): by the seed, the example and the copy. A million copies of
10,000 examples take about ten seconds and half a GiB; the corpus is asked for its length and its
document starts alone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from inject import keyed
from inject.corpus.separators import Separators
from inject.corpus.tokens import token_dtype
from inject.errors import InputError
from inject.examples.example import Example, members
from inject.plan.copy_counts import CopyCount, draw_copy_counts
from inject.plan.placement import UnplacedCopies, place_copies
from inject.plan.plan import COPIES_SCHEMA, COPY_COUNTS_SCHEMA, Plan, PlanFacts
from inject.plan.settings import Copies, Placement
from inject.settings import plain
from inject.stream.view import SourceSlice, TokenSource, concatenated
from inject.variants.choice import choose_renditions
from inject.variants.rendition import Rendition, whole_renditions
from inject.variants.settings import Variants


@dataclass(frozen=True, kw_only=True)
class PlanSettings:
    """What decides the copies of one arm, beside the examples, the corpus and the tokenizer."""

    copies: Copies
    """How many."""
    placement: Placement
    """Where."""
    budget: int
    """Tokens in the training stream, payload included."""
    context: int
    """Tokens in a window."""
    seed: int
    """The arm's."""
    variants: Variants = field(default_factory=Variants)
    """Which variants copies carry, and how they are assigned."""
    draw_number: int = 0
    """Which draw of copy counts it is; each has draws of its own."""

    def identity(self) -> dict[str, Any]:
        """Return all of it as plain JSON values.

        Of the variants, weights and assignment: what they say is in the renditions.
        """
        values = {**vars(self), "copies": plain(self.copies), "placement": plain(self.placement)}
        weights = [variant.weight for variant in self.variants.of]
        values["variants"] = {**plain(self.variants, exclude={"of"}), "weights": weights}
        return values


def make_plan(
    examples: Sequence[Example],
    tokens: Mapping[str, npt.NDArray[np.int64]],
    settings: PlanSettings,
    *,
    source: TokenSource,
    separators: Separators,
    vocabulary: int,
    renditions: Sequence[Rendition] | None = None,
    candidates: Sequence[Example] | None = None,
) -> Plan:
    """Draw counts, variants and anchors for every member.

    Args:
        examples: members and non-members of all datasets.
        tokens: the token ids of each example's text, by example_id.
        settings: how many copies, where, and in which stream.
        source: the clean corpus, at least as long as the stream.
        separators: what stands around each copy.
        vocabulary: number of token ids, which fixes the width of `payload.bin`.
        renditions: the texts of all variants of all members; None where all copies carry the whole
            example.
        candidates: all examples that counts and variants are drawn for, where these are more than
            the members: each member gets the copies it would have if all of these were spiked.

    Raises:
        InputError: for an example in two datasets, a budget too small for the payload, a
            corpus smaller than the budget, a budget smaller than one window, or no room.
    """
    _check_unique(examples)
    budget, context, seed = settings.budget, settings.context, settings.seed
    if budget < context:
        raise InputError(
            f"the training stream of {budget:,} tokens is shorter than one window of {context:,}",
            where="corpus.tokens",
        )
    if source.n_tokens < budget:
        raise InputError(
            f"the corpus holds {source.n_tokens:,} tokens, the budget asks for {budget:,}",
            where="corpus.tokens",
        )
    inside = {example.example_id for example in members(examples)}
    spiked = members(examples) if candidates is None else candidates
    drawn = [
        count if count.example_id in inside else replace(count, rate=0.0, realised=0)
        for count in draw_copy_counts(
            settings.copies, spiked, seed=seed, draw_number=settings.draw_number
        )
    ]
    realised = np.array([count.realised for count in drawn], dtype=np.int64)
    member = np.repeat(np.arange(len(spiked)), realised)
    copy = np.arange(len(member)) - np.repeat(np.cumsum(realised) - realised, realised)
    if renditions is None:
        renditions = whole_renditions(spiked, tokens)
    text = choose_renditions(renditions, settings.variants, spiked, member, copy, seed=seed)

    def row_name(copy_index: int) -> str:
        example = spiked[member[copy_index]]
        return f"row {example.source_id} of {example.dataset}"

    payload, offset, length = _payload(renditions, text, separators)
    offset, length = offset[text], length[text]
    keys = keyed.item_keys([example.example_id for example in spiked])
    anchors = place_copies(
        UnplacedCopies(
            example_keys=keys[member],
            numbers=copy,
            lengths=length,
            name=row_name,
        ),
        placement=settings.placement,
        seed=seed,
        budget=budget,
        context=context,
        document_starts=SourceSlice(source, 0, budget).doc_starts,
    )
    n_copies = len(member)
    names = pa.array([example.example_id for example in spiked], pa.string())
    datasets = pa.array([example.dataset for example in spiked], pa.string())
    labels = pa.array([rendition.variant for rendition in renditions], pa.string())
    rates = np.array([count.rate for count in drawn], dtype=np.float64)
    columns = {
        "example_id": names.take(member),
        "dataset": datasets.take(member),
        "copy": copy,
        "variant": labels.take(text),
        "rate": rates[member],
        "realised": realised[member],
        "policy": pa.repeat(settings.placement.policy, n_copies),
        "anchor": anchors.position,
        "drawn": anchors.drawn,
        "redraws": anchors.redraws,
        "tiebreak": anchors.tiebreak,
        "payload_offset": offset,
        "payload_length": length,
        "lead": np.full(n_copies, len(separators.lead)),
        "text_length": length - separators.tokens,
    }
    return Plan(
        facts=PlanFacts(
            budget=budget,
            background=budget - int(length.sum()),
            context=context,
            seed=seed,
            policy=settings.placement.policy,
            separator=separators.kind,
            vocabulary=vocabulary,
        ),
        copies=pa.table(
            [pa.array(columns[field.name]).cast(field.type) for field in COPIES_SCHEMA],
            schema=COPIES_SCHEMA,
        ),
        copy_counts=_copy_count_table(
            examples, tokens, {count.example_id: count for count in drawn}
        ),
        payload=payload.astype(token_dtype(vocabulary)),
    )


def _payload(
    renditions: Sequence[Rendition], used: npt.NDArray[np.int64], separators: Separators
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the tokens of the renditions in use, with their separators, one after the other.

    Then where each rendition starts in them, and how many of them are its.
    """
    offset = np.zeros(len(renditions), dtype=np.int64)
    length = np.zeros(len(renditions), dtype=np.int64)
    pieces = []
    end = 0
    for index in np.unique(used):
        piece = separators.around(renditions[index].tokens)
        pieces.append(piece)
        offset[index], length[index] = end, len(piece)
        end += len(piece)
    return concatenated(pieces), offset, length


def _copy_count_table(
    examples: Sequence[Example],
    tokens: Mapping[str, npt.NDArray[np.int64]],
    drawn: Mapping[str, CopyCount],
) -> pa.Table:
    """Return what was drawn for each example; `passage_copies` sums over the rows of its group."""
    nothing = CopyCount(example_id="", rate=0.0, realised=0)
    found = [drawn.get(example.example_id, nothing) for example in examples]
    shared: Counter[tuple[str, str]] = Counter()
    for example, count in zip(examples, found, strict=True):
        shared[example.dataset, example.group] += count.realised
    return pa.Table.from_pylist(
        [
            {
                "example_id": example.example_id,
                "dataset": example.dataset,
                "side": example.side,
                "rate": count.rate,
                "realised": count.realised,
                "passage_copies": shared[example.dataset, example.group],
                "text_length": len(tokens[example.example_id]),
            }
            for example, count in zip(examples, found, strict=True)
        ],
        schema=COPY_COUNTS_SCHEMA,
    )


def _check_unique(examples: Sequence[Example]) -> None:
    seen: dict[str, Example] = {}
    for example in examples:
        other = seen.setdefault(example.example_id, example)
        if other is not example:
            raise InputError(
                f"the same text is an example twice: {other.dataset} {other.source_id} and "
                f"{example.dataset} {example.source_id}",
                where="contaminants",
                hint="Remove it from one of the two, or use one dataset only.",
            )
