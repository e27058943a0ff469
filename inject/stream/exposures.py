"""The exposures: when the model saw each copy, recorded from the windows it was trained on.

The training loop hands over every window on which the model is actually trained. The recorder looks
up the planned copies there and compares the tokens, one by one, with the tokens of the copy's own
text (not with the payload file). So a row records one of: `whole` (all of the text in this window),
`fragment` (a part of it, the rest is in a neighbouring window), `altered` (the tokens trained on
differ), or `never reached` (the run ended before, or the copy is in the last partial window, which
is never trained on).

Cost: two binary searches per window and one comparison per piece.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from inject.errors import InputError
from inject.files import replacing
from inject.model_folder import LOG_FILE
from inject.step import InputProjection
from inject.stream.view import StreamView
from inject.tables import read_parquet
from inject.variants.rendition import WHOLE, kind_of

Key = TypeVar("Key")
EXPOSURES_FILE = "exposures.parquet"
NEVER = "never reached"
EXPOSURES = InputProjection(files=(EXPOSURES_FILE,))
"""The copies on which a model was trained."""
RECORDS = InputProjection(files=(EXPOSURES_FILE, LOG_FILE))
"""The copies on which a model was trained, and the log of its training."""

SCHEMA = pa.schema(
    [
        ("example_id", pa.string()),
        ("dataset", pa.string()),
        ("copy", pa.int32()),
        ("variant", pa.string()),
        ("status", pa.string()),
        ("intact", pa.bool_()),
        ("epoch", pa.int32()),
        ("step", pa.int64()),
        ("rank", pa.int32()),
        ("tokens_before", pa.int64()),
        ("window", pa.int64()),
        ("start", pa.int32()),
        ("stop", pa.int32()),
        ("text_start", pa.int32()),
        ("text_stop", pa.int32()),
        ("text_length", pa.int32()),
    ]
)


class CopyName(NamedTuple):
    """The identity of an inserted copy."""

    example_id: str
    dataset: str
    copy: int
    variant: str
    """The variant of the copy: `whole`, `question`, `paraphrase-2` …"""


TextKey = tuple[str, str]
"""example_id and variant: the name of a copy's text."""


class TrainedWindow(NamedTuple):
    """A window on which the model was trained."""

    epoch: int
    """From 0."""
    step: int
    """The optimiser step that the window was part of, from 1."""
    window: int
    """Its index in the stream."""
    tokens_before: int
    """Tokens in the windows before it, in training order."""
    rank: int = 0
    """The process that trained on it."""


class ExposureRecorder:
    """Collects the exposures of one training run.

    Args:
        view: the stream that is trained on.
        names: the copy of each insertion, in the order given to the view.
        tokens: the token ids of each text that copies carry, by example_id and variant.
    """

    def __init__(
        self,
        view: StreamView,
        names: list[CopyName],
        tokens: Mapping[TextKey, npt.NDArray[np.int64]],
    ) -> None:
        self._view = view
        self._names = names
        self._tokens = tokens
        self._rows: list[dict[str, Any]] = []
        self._reached: set[CopyName] = set()

    def record(self, fed: TrainedWindow, ids: npt.NDArray[np.int64]) -> None:
        """Record one window on which the model is trained.

        Args:
            fed: the window.
            ids: the token ids trained on, shape [context].
        """
        start = fed.window * self._view.context
        for piece in self._view.pieces(start, start + len(ids)):
            name = self._names[piece.copy]
            text = self._tokens[name.example_id, name.variant]
            same = np.array_equal(
                ids[piece.start : piece.stop], text[piece.text_start : piece.text_stop]
            )
            complete = piece.text_start == 0 and piece.text_stop == len(text)
            self._reached.add(name)
            self._rows.append(
                {
                    **name._asdict(),
                    **fed._asdict(),
                    "status": "altered" if not same else "whole" if complete else "fragment",
                    "intact": same and complete,
                    "tokens_before": fed.tokens_before + piece.start,
                    "start": piece.start,
                    "stop": piece.stop,
                    "text_start": piece.text_start,
                    "text_stop": piece.text_stop,
                    "text_length": len(text),
                }
            )

    def restore(self, exposures: pa.Table) -> None:
        """Add earlier records: of an earlier start of this run, or of another rank.

        Args:
            exposures: rows as `table` or `seen` give them; those never reached are left out.
        """
        for row in exposures.to_pylist():
            if row["status"] != NEVER:
                self._reached.add(CopyName(*(row[name] for name in CopyName._fields)))
                self._rows.append(row)

    def recorded(self) -> pa.Table:
        """Return the exposures recorded so far, in training order."""
        rows = sorted(self._rows, key=lambda row: (row["tokens_before"], row["text_start"]))
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def table(self) -> pa.Table:
        """Return all exposures in training order, then the copies never reached."""
        never = [
            {
                **name._asdict(),
                "status": NEVER,
                "intact": False,
                "text_length": len(self._tokens[name.example_id, name.variant]),
            }
            for name in self._names
            if name not in self._reached
        ]
        return pa.concat_tables([self.recorded(), pa.Table.from_pylist(never, schema=SCHEMA)])

    def write(self, folder: Path) -> None:
        """Write all exposures into a folder."""
        write_exposures(folder, self.table())


def write_exposures(folder: Path, exposures: pa.Table) -> None:
    """Write `exposures.parquet` into a folder, whole or not at all."""
    with replacing(folder / EXPOSURES_FILE) as temporary:
        pq.write_table(exposures, temporary)


def read_exposures(folder: Path, *, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the table that `write_exposures` wrote: all columns, or those that are named.

    Raises:
        InputError: naming the file, when it is missing or damaged.
    """
    return read_parquet(folder / EXPOSURES_FILE, columns=columns)


def _named_rows(exposures: pa.Table, *more: str) -> Iterator[tuple[CopyName, dict[str, Any]]]:
    """Yield the copy of each row, and its status, its place in the text and the columns named."""
    columns = [*CopyName._fields, "status", "text_start", "text_stop", "text_length", *more]
    for row in exposures.select(columns).to_pylist():
        yield CopyName(*(row[field] for field in CopyName._fields)), row


class ExposureSoFar(NamedTuple):
    """A model's exposure to one example at some moment of its training."""

    copies: int
    """Different copies of which it had seen all tokens; 0 if it had only seen parts."""
    last_step: int
    """The latest optimiser step with any part of a copy."""


def exposure_until(exposures: pa.Table, step: int) -> dict[str, ExposureSoFar]:
    """Return the exposure of each example after an optimiser step.

    A copy that straddles windows was seen when all its parts had been, in one epoch. Examples of
    which nothing had been seen by then are not in the result.

    Args:
        exposures: rows of `exposures.parquet`.
        step: the step; the exposure of the model after it is returned; 0 is the first.
    """
    last: dict[str, int] = defaultdict(int)
    fed: list[tuple[tuple[CopyName, int], dict[str, Any]]] = []
    for name, row in _named_rows(exposures, "epoch", "step"):
        if row["status"] != NEVER and row["step"] <= step:
            last[name.example_id] = max(last[name.example_id], row["step"])
            fed.append(((name, row["epoch"]), row))
    copies: dict[str, set[CopyName]] = defaultdict(set)
    for name, _ in _seen_whole(fed):
        copies[name.example_id].add(name)
    return {name: ExposureSoFar(len(copies[name]), latest) for name, latest in last.items()}


def seen_copy_counts(exposures: pa.Table) -> dict[str, int]:
    """Return the number of different copies of each example that were seen with all their tokens.

    A copy that straddles two windows counts when both parts were seen. A copy seen in
    several epochs counts once. Examples without any such copy are not in the result.
    """
    return dict(Counter(name.example_id for name in _seen_whole(_named_rows(exposures))))


def _seen_whole(rows: Iterable[tuple[Key, dict[str, Any]]]) -> list[Key]:
    """Return the keys of rows whose unaltered parts make up a whole text."""
    parts: dict[Key, dict[int, int]] = defaultdict(dict)
    lengths: dict[Key, int] = {}
    for key, row in rows:
        if row["status"] in ("whole", "fragment"):
            parts[key][row["text_start"]] = row["text_stop"] - row["text_start"]
            lengths[key] = row["text_length"]
    return [key for key, pieces in parts.items() if sum(pieces.values()) == lengths[key]]


def seen_variants(exposures: pa.Table) -> dict[str, str]:
    """Return the variant in the copies of each example, `mixed` if they differ.

    Empty if all carried the whole example.
    """
    variants: dict[str, set[str]] = {}
    rows = exposures.filter(pc.field("status") != NEVER)
    for name, variant in zip(
        rows["example_id"].to_pylist(), rows["variant"].to_pylist(), strict=True
    ):
        variants.setdefault(name, set()).add(kind_of(variant))
    if all(kinds == {WHOLE} for kinds in variants.values()):
        return {}
    return {name: kinds.pop() if len(kinds) == 1 else "mixed" for name, kinds in variants.items()}


class CopyOutcomes(NamedTuple):
    """Outcomes of the planned copies of one training run; the last four sum to the first."""

    planned: int
    whole: int
    """All tokens were trained on as planned, in one epoch."""
    altered: int
    """At least one token trained on differs from the text's, in any epoch."""
    partly: int
    """Some of its windows were never trained on."""
    never: int
    """Never trained on: the run ended before, or the copy is in the last partial window."""
    first_altered: tuple[CopyName, ...]
    """The first altered copies, in training order."""


_NAMED, _FORGOTTEN_NAMED = 20, 3


def copy_outcomes(exposures: pa.Table) -> CopyOutcomes:
    """Count the copies of `exposures.parquet` by outcome."""
    rows = [((name, row["epoch"]), row) for name, row in _named_rows(exposures, "epoch")]
    altered = dict.fromkeys(name for (name, _), row in rows if row["status"] == "altered")
    never = sum(row["status"] == NEVER for _, row in rows)
    names = {name for (name, _), _ in rows}
    whole = {name for name, _ in _seen_whole(rows)} - altered.keys()
    return CopyOutcomes(
        planned=len(names),
        whole=len(whole),
        altered=len(altered),
        partly=len(names) - len(whole) - len(altered) - never,
        never=never,
        first_altered=tuple(altered)[:_NAMED],
    )


def require_unexposed(folder: Path, forget_ids: Collection[str]) -> None:
    """Reject a retrained model that was trained on any part of a copy of a forgotten example.

    It stands for a model that never knew, so such a copy in its stream, or in another text that a
    member carries, makes it the wrong target. Copies that were planned and never reached count,
    too: its corpus still contains them.

    Args:
        folder: the retrained model's, with its `exposures.parquet`.
        forget_ids: the example_id of each forgotten example.

    Raises:
        InputError: naming examples with the number of their copies that it saw, or that remain.
    """
    table = read_exposures(folder, columns=["example_id", "copy", "status"])
    forgotten = set(forget_ids)
    fed: dict[str, set[int]] = {}
    planned: Counter[str] = Counter()
    for row in table.to_pylist():
        if row["example_id"] not in forgotten:
            continue
        planned[row["example_id"]] += 1
        if row["status"] != NEVER:
            fed.setdefault(row["example_id"], set()).add(row["copy"])
    if not planned:
        return
    if fed:
        first = [f"{name} ({len(fed[name])})" for name in sorted(fed)[:_FORGOTTEN_NAMED]]
        problem = f"was fed copies of {len(fed)} forgotten example(s): {', '.join(first)}"
    else:
        first = sorted(planned)[:_FORGOTTEN_NAMED]
        problem = (
            f"has copies of {len(planned)} forgotten example(s) in its corpus, though it never "
            f"reached them: {', '.join(first)}"
        )
    raise InputError(
        f"the retrained model {problem}; so it does not show what a model that never saw them does",
        where=str(folder / EXPOSURES_FILE),
        hint="Train it on a stream without the forget set, or name the forget set that it was "
        "trained without.",
    )
