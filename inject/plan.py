"""The plan: every copy of every member, where it goes, and the tokens that go there.

Artifact: `plan.parquet` (a row a copy), `doses.parquet` (a row an example, zero copies and
non-members included), `payload.bin` (each spiked example's tokens once) and `plan.json`
(budget, background left, context, seed). A plan and a clean corpus make a `View`; the plan
holds no background, so an arm costs bytes in proportion to its payload.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from inject import keyed
from inject.dose import Dose, doses
from inject.errors import InputError
from inject.example import Example, members
from inject.placement import background_left, draw_anchors
from inject.settings import Copies, Placement
from inject.view import Insertions, Stretch, TokenSource, View, concatenated

COPIES_SCHEMA = pa.schema(
    [
        ("example_id", pa.string()),
        ("dataset", pa.string()),
        ("copy", pa.int32()),
        ("rate", pa.float64()),
        ("realised", pa.int32()),
        ("policy", pa.string()),
        ("anchor", pa.int64()),
        ("redraws", pa.int32()),
        ("tiebreak", pa.uint64()),
        ("payload_offset", pa.int64()),
        ("payload_length", pa.int32()),
        ("lead", pa.int32()),
        ("text_length", pa.int32()),
    ]
)

DOSES_SCHEMA = pa.schema(
    [
        ("example_id", pa.string()),
        ("dataset", pa.string()),
        ("side", pa.string()),
        ("rate", pa.float64()),
        ("realised", pa.int32()),
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
    end_token: int | None
    """Token put behind each copy, where the policy makes a document of it."""
    vocabulary: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Copies, doses and payload; see the module."""

    facts: PlanFacts
    copies: pa.Table
    doses: pa.Table
    payload: npt.NDArray[np.integer]

    def view(self, source: TokenSource) -> View:
        """Compose the contaminated stream over the clean corpus that was planned for."""
        return View(
            source,
            self.insertions(),
            budget=self.facts.budget,
            context=self.facts.context,
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

    def realised(self) -> dict[str, int]:
        """Return the number of copies of every example, non-members included (0)."""
        return dict(
            zip(
                self.doses["example_id"].to_pylist(),
                self.doses["realised"].to_pylist(),
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
    end_token: int,
    vocabulary: int,
) -> Plan:
    """Draw counts and anchors for every member.

    Args:
        examples: members and non-members of all datasets.
        tokens: the token ids of each example's text, by example_id.
        copies: how many.
        placement: where.
        seed: the arm's seed.
        source: the clean corpus, at least `budget` tokens.
        budget: tokens in the training stream, payload included.
        context: tokens in a window.
        end_token: the corpus's token between documents.
        vocabulary: number of token ids, which fixes the width of `payload.bin`.

    Raises:
        InputError: for an example in two datasets, a budget too small for the payload, a
            corpus smaller than the budget, or a budget smaller than one window.
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
    spiked = members(examples)
    drawn = {dose.example_id: dose for dose in doses(copies, spiked, seed=seed)}
    trail = [end_token] if placement.policy == "document" else []

    payloads: list[npt.NDArray[np.integer]] = []
    offset = 0
    rows: list[dict[str, Any]] = []
    for member in spiked:
        dose = drawn[member.example_id]
        text = tokens[member.example_id]
        if not dose.realised:
            continue
        payloads.append(np.append(text, trail).astype(np.int64))
        rows.extend(
            {
                "example_id": member.example_id,
                "dataset": member.dataset,
                "copy": copy,
                "rate": dose.rate,
                "realised": dose.realised,
                "policy": placement.policy,
                "payload_offset": offset,
                "payload_length": len(text) + len(trail),
                "lead": 0,
                "text_length": len(text),
            }
            for copy in range(dose.realised)
        )
        offset += len(text) + len(trail)

    payload_tokens = sum(row["payload_length"] for row in rows)
    background = background_left(budget, payload_tokens)
    anchors = draw_anchors(
        keyed.item_keys([row["example_id"] for row in rows]),
        np.array([row["copy"] for row in rows], dtype=np.int64),
        seed=seed,
        budget=budget,
        background=background,
        policy=placement.policy,
        document_starts=Stretch(source, 0, budget).doc_starts,
    )
    for index, row in enumerate(rows):
        row["anchor"] = int(anchors.position[index])
        row["redraws"] = int(anchors.redraws[index])
        row["tiebreak"] = int(anchors.tiebreak[index])
    return Plan(
        facts=PlanFacts(
            budget=budget,
            background=background,
            context=context,
            seed=seed,
            policy=placement.policy,
            end_token=end_token if trail else None,
            vocabulary=vocabulary,
        ),
        copies=pa.Table.from_pylist(rows, schema=COPIES_SCHEMA),
        doses=_dose_table(examples, tokens, drawn),
        payload=concatenated(payloads).astype(_width(vocabulary)),
    )


def write_plan(out: Path, plan: Plan) -> None:
    """Write the four files of a plan into the folder `out`."""
    pq.write_table(plan.copies, out / "plan.parquet")
    pq.write_table(plan.doses, out / "doses.parquet")
    plan.payload.astype(plan.payload.dtype.newbyteorder("<")).tofile(out / "payload.bin")
    (out / "plan.json").write_text(json.dumps(vars(plan.facts), indent=1, sort_keys=True))


def read_plan(folder: Path) -> Plan:
    """Read what `write_plan` wrote."""
    facts = PlanFacts(**json.loads((folder / "plan.json").read_text()))
    return Plan(
        facts=facts,
        copies=pq.read_table(folder / "plan.parquet"),
        doses=pq.read_table(folder / "doses.parquet"),
        payload=np.fromfile(folder / "payload.bin", dtype=_width(facts.vocabulary)),
    )


def _dose_table(
    examples: Sequence[Example],
    tokens: Mapping[str, npt.NDArray[np.int64]],
    drawn: Mapping[str, Dose],
) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "example_id": example.example_id,
                "dataset": example.dataset,
                "side": example.side,
                "rate": drawn[example.example_id].rate if example.example_id in drawn else 0.0,
                "realised": drawn[example.example_id].realised
                if example.example_id in drawn
                else 0,
                "text_length": len(tokens[example.example_id]),
            }
            for example in examples
        ],
        schema=DOSES_SCHEMA,
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
