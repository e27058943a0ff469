"""The plan: every copy of every member, its position, and its tokens.

Artifact: `plan.parquet` (one row per copy), `copy_counts.parquet` (one row per example, zero copies
and non-members included; `passage_copies` counts the copies of all rows of its group),
`payload.bin` (each spiked example's tokens once) and `plan.json` (budget, background left, context,
seed). A plan and a clean corpus make a `StreamView`; the plan has no background, so an arm costs
bytes in proportion to its payload. `inject.plan.make_plan` draws it.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from inject.corpus.separators import Separator
from inject.corpus.tokens import token_dtype
from inject.stream.exposures import CopyName
from inject.stream.view import Insertions, StreamView, TokenSource, repeated
from inject.tables import read_parquet

PLAN_FILE = "plan.parquet"
COUNTS_FILE = "copy_counts.parquet"
PAYLOAD_FILE = "payload.bin"
FACTS_FILE = "plan.json"
_ONCE = ("repeat", 1)
"""Not written: plans without repetition stay as they were before there was any."""

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
    """Facts about the plan as a whole."""

    budget: int
    """Tokens in the training stream, payload included."""
    background: int
    """Clean tokens in it."""
    context: int
    """Tokens in a window."""
    seed: int
    policy: str
    separator: Separator
    """The separator around each copy."""
    vocabulary: int
    repeat: int = 1
    """How often the unique tokens of the background are laid out."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Copies, copy counts and payload; see the module."""

    facts: PlanFacts
    copies: pa.Table
    copy_counts: pa.Table
    payload: npt.NDArray[np.integer]

    def clean_stream(self, source: TokenSource) -> TokenSource:
        """Return the stream without copies, of the clean corpus that was planned for."""
        return repeated(source, tokens=self.facts.budget, times=self.facts.repeat)

    def view(self, source: TokenSource) -> StreamView:
        """Compose the contaminated stream over the clean corpus that was planned for."""
        return StreamView(
            self.clean_stream(source),
            self.insertions(),
            budget=self.facts.budget,
            context=self.facts.context,
            layout="window" if self.facts.policy == "window" else "flow",
            separator=self.facts.separator,
        )

    def insertions(self) -> Insertions:
        """Return the copies as arrays, in the order of the table."""
        names = ("anchor", "payload_offset", "payload_length", "lead", "text_length")
        columns = {name: self.copies[name].to_numpy().astype(np.int64) for name in names}
        return Insertions(
            tiebreak=self.copies["tiebreak"].to_numpy().astype(np.uint64),
            payload=self.payload,
            **{name.removeprefix("payload_"): column for name, column in columns.items()},
        )

    def names(self) -> list[CopyName]:
        """Return the name of each copy, in the order of the table."""
        columns = [self.copies[name].to_pylist() for name in CopyName._fields]
        return [CopyName(*values) for values in zip(*columns, strict=True)]

    def realised(self) -> dict[str, int]:
        """Return the number of copies of every example, non-members included (0)."""
        columns = (self.copy_counts[name].to_pylist() for name in ("example_id", "realised"))
        return dict(zip(*columns, strict=True))


def write_plan(out: Path, plan: Plan) -> None:
    """Write the four files of a plan into the folder `out`."""
    pq.write_table(plan.copies, out / PLAN_FILE)
    pq.write_table(plan.copy_counts, out / COUNTS_FILE)
    plan.payload.astype(plan.payload.dtype.newbyteorder("<")).tofile(out / PAYLOAD_FILE)
    facts = {name: value for name, value in vars(plan.facts).items() if (name, value) != _ONCE}
    (out / FACTS_FILE).write_text(json.dumps(facts, indent=1, sort_keys=True))


def read_plan(folder: Path) -> Plan:
    """Read the plan that `write_plan` wrote."""
    facts = PlanFacts(**json.loads((folder / FACTS_FILE).read_text()))
    return Plan(
        facts=facts,
        copies=read_parquet(folder / PLAN_FILE),
        copy_counts=read_parquet(folder / COUNTS_FILE),
        payload=np.fromfile(folder / PAYLOAD_FILE, dtype=token_dtype(facts.vocabulary)),
    )
