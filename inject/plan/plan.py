"""The plan: every copy of every member, where it goes, and the tokens that go there.

Artifact: `plan.parquet` (a row a copy), `copy_counts.parquet` (a row an example, zero copies and
non-members included; `passage_copies` counts the copies of all rows of its group),
`payload.bin` (each spiked example's tokens once) and `plan.json` (budget, background left,
context, seed). A plan and a clean corpus make a `View`; the plan holds no background, so an arm
costs bytes in proportion to its payload.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from inject import keyed
from inject.errors import InputError
from inject.examples.example import Example, members
from inject.plan.copy_counts import CopyCount, draw_copy_counts
from inject.plan.placement import place_copies
from inject.plan.separators import Separators
from inject.settings import Copies, Placement, Separator
from inject.stream.exposures import CopyName
from inject.stream.view import Insertions, SourceSlice, TokenSource, View, concatenated
from inject.tables import read_parquet
from inject.variants.choice import choose_renditions
from inject.variants.rendition import Rendition, whole_renditions
from inject.variants.settings import Variants

PLAN_FILE = "plan.parquet"
COUNTS_FILE = "copy_counts.parquet"
PAYLOAD_FILE = "payload.bin"
FACTS_FILE = "plan.json"

COPIES_SCHEMA = pa.schema(
    [
        ("example_id", pa.string()),
        ("dataset", pa.string()),
        ("copy", pa.int32()),
        ("variant", pa.string()),
        ("rate", pa.float64()),
        ("realised", pa.int32()),
        ("policy", pa.string()),
        ("anchor", pa.int64()),
        ("drawn", pa.int64()),
        ("redraws", pa.int32()),
        ("tiebreak", pa.uint64()),
        ("payload_offset", pa.int64()),
        ("payload_length", pa.int32()),
        ("lead", pa.int32()),
        ("text_length", pa.int32()),
    ]
)

COPY_COUNTS_SCHEMA = pa.schema(
    [
        ("example_id", pa.string()),
        ("dataset", pa.string()),
        ("side", pa.string()),
        ("rate", pa.float64()),
        ("realised", pa.int32()),
        ("passage_copies", pa.int32()),
        ("text_length", pa.int32()),
    ]
)


@dataclass(frozen=True, kw_only=True)
class PlanFacts:
    """What holds for the plan as a whole."""

    budget: int
    """Tokens in the training stream, payload included."""
    background: int
    """Clean tokens in it."""
    context: int
    """Tokens in a window."""
    seed: int
    policy: str
    separator: Separator
    """What stands around each copy."""
    vocabulary: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Copies, copy counts and payload; see the module."""

    facts: PlanFacts
    copies: pa.Table
    copy_counts: pa.Table
    payload: npt.NDArray[np.integer]

    def view(self, source: TokenSource) -> View:
        """Compose the contaminated stream over the clean corpus that was planned for."""
        return View(
            source,
            self.insertions(),
            budget=self.facts.budget,
            context=self.facts.context,
            layout="window" if self.facts.policy == "window" else "flow",
            separator=self.facts.separator,
        )

    def insertions(self) -> Insertions:
        """Return the copies as arrays, in the order of the table."""
        return Insertions(
            anchor=_column(self.copies, "anchor").astype(np.int64),
            tiebreak=_column(self.copies, "tiebreak").astype(np.uint64),
            offset=_column(self.copies, "payload_offset").astype(np.int64),
            length=_column(self.copies, "payload_length").astype(np.int64),
            lead=_column(self.copies, "lead").astype(np.int64),
            text_length=_column(self.copies, "text_length").astype(np.int64),
            payload=self.payload,
        )

    def names(self) -> list[CopyName]:
        """Return what each copy is, in the order of the table."""
        columns = [self.copies[name].to_pylist() for name in CopyName._fields]
        return [CopyName(*values) for values in zip(*columns, strict=True)]

    def realised(self) -> dict[str, int]:
        """Return the number of copies of every example, non-members included (0)."""
        return dict(
            zip(
                self.copy_counts["example_id"].to_pylist(),
                self.copy_counts["realised"].to_pylist(),
                strict=True,
            )
        )


def make_plan(
    examples: Sequence[Example],
    tokens: Mapping[str, npt.NDArray[np.int64]],
    *,
    copies: Copies,
    placement: Placement,
    seed: int,
    source: TokenSource,
    budget: int,
    context: int,
    separators: Separators,
    vocabulary: int,
    variants: Variants | None = None,
    renditions: Sequence[Rendition] | None = None,
    candidates: Sequence[Example] | None = None,
    draw_number: int = 0,
) -> Plan:
    """Draw counts, variants and anchors for every member.

    A million copies of 10,000 examples take about ten seconds and half a GiB; the corpus is
    asked for its length and its document starts alone.

    Args:
        examples: members and non-members of all datasets.
        tokens: the token ids of each example's text, by example_id.
        copies: how many.
        placement: where.
        seed: the arm's seed.
        source: the clean corpus, at least `budget` tokens.
        budget: tokens in the training stream, payload included.
        context: tokens in a window.
        separators: what stands around each copy.
        vocabulary: number of token ids, which fixes the width of `payload.bin`.
        variants: which variants copies have; None for whole examples alone.
        renditions: the texts of all variants of all members; needed with `variants`.
        candidates: all examples that counts and variants are drawn for, where these are more than
            the members: each member gets the copies it would have if all of these were spiked.
        draw_number: which draw of counts it is.

    Raises:
        InputError: for an example in two datasets, a budget too small for the payload, a
            corpus smaller than the budget, a budget smaller than one window, or no room.
    """
    _check_unique(examples)
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
        for count in draw_copy_counts(copies, spiked, seed=seed, draw_number=draw_number)
    ]
    realised = np.array([count.realised for count in drawn], dtype=np.int64)
    member = np.repeat(np.arange(len(spiked)), realised)
    copy = np.arange(len(member)) - np.repeat(np.cumsum(realised) - realised, realised)
    if renditions is None:
        renditions = whole_renditions(spiked, tokens)
    text = choose_renditions(renditions, variants or Variants(), spiked, member, copy, seed=seed)

    payload = _Payload(renditions, text, separators)
    keys = keyed.item_keys([example.example_id for example in spiked])
    anchors = place_copies(
        keys[member],
        copy,
        payload.length[text],
        names=_CopyNames(spiked, member),
        placement=placement,
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
        "policy": pa.repeat(placement.policy, n_copies),
        "anchor": anchors.position,
        "drawn": anchors.drawn,
        "redraws": anchors.redraws,
        "tiebreak": anchors.tiebreak,
        "payload_offset": payload.offset[text],
        "payload_length": payload.length[text],
        "lead": np.full(n_copies, len(separators.lead)),
        "text_length": payload.length[text] - separators.tokens,
    }
    return Plan(
        facts=PlanFacts(
            budget=budget,
            background=budget - int(payload.length[text].sum()),
            context=context,
            seed=seed,
            policy=placement.policy,
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
        payload=payload.tokens.astype(_width(vocabulary)),
    )


class _Payload:
    """The tokens of the renditions in use, with their separators, one after the other."""

    def __init__(
        self,
        renditions: Sequence[Rendition],
        used: npt.NDArray[np.int64],
        separators: Separators,
    ) -> None:
        pieces = []
        self.offset = np.zeros(len(renditions), dtype=np.int64)
        self.length = np.zeros(len(renditions), dtype=np.int64)
        end = 0
        for index in np.unique(used):
            piece = separators.around(renditions[index].tokens)
            pieces.append(piece)
            self.offset[index], self.length[index] = end, len(piece)
            end += len(piece)
        self.tokens = concatenated(pieces)


class _CopyNames(Sequence[str]):
    """What to call each copy in a message, made only for the one that is asked for."""

    def __init__(self, spiked: Sequence[Example], member: npt.NDArray[np.int64]) -> None:
        self._spiked = spiked
        self._member = member

    def __len__(self) -> int:
        return len(self._member)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        example = self._spiked[self._member[index]]
        return f"row {example.source_id} of {example.dataset}"


def write_plan(out: Path, plan: Plan) -> None:
    """Write the four files of a plan into the folder `out`."""
    pq.write_table(plan.copies, out / PLAN_FILE)
    pq.write_table(plan.copy_counts, out / COUNTS_FILE)
    plan.payload.astype(plan.payload.dtype.newbyteorder("<")).tofile(out / PAYLOAD_FILE)
    (out / FACTS_FILE).write_text(json.dumps(vars(plan.facts), indent=1, sort_keys=True))


def read_plan(folder: Path) -> Plan:
    """Read what `write_plan` wrote."""
    facts = PlanFacts(**json.loads((folder / FACTS_FILE).read_text()))
    return Plan(
        facts=facts,
        copies=read_parquet(folder / PLAN_FILE),
        copy_counts=read_parquet(folder / COUNTS_FILE),
        payload=np.fromfile(folder / PAYLOAD_FILE, dtype=_width(facts.vocabulary)),
    )


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


def _column(table: pa.Table, name: str) -> npt.NDArray[np.generic]:
    return table[name].to_numpy()


def _width(vocabulary: int) -> np.dtype:
    return np.dtype("<u2") if vocabulary <= 1 << 16 else np.dtype("<u4")
