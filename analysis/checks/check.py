"""A check with its verdict and numbers, and their rows in the findings.

Each check has one row with its verdict and its overall numbers; a check of AUCs has one more
row per AUC, with the range that it cannot exclude. Code that shows a check reads numbers and no
sentence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from analysis.checks.chance import CHANCE, MARGIN
from analysis.findings import Row, question_table
from analysis.intervals.estimate import Estimate

QUESTION = "checks"
NEEDED = Estimate(CHANCE, CHANCE - MARGIN, CHANCE + MARGIN)
"""The interval that must contain every AUC compatible with a passed check."""
Verdict = Literal["passed", "failed", "cannot tell", "not measured"]


class CheckRow(NamedTuple):
    """One interval behind a verdict."""

    label: str
    row: Row
    """Of the metrics."""
    auc: Estimate
    """With the ends of `possible_auc`."""
    pooled: bool
    """Whether it is over all datasets, as those are that a passed check needs near 0.5."""


class StreamFacts(NamedTuple):
    """The facts of audits that differ between streams: one column per value, one row per stream."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check with its verdict, a sentence for it, and its numbers."""

    key: str
    """`streams`, `fed`, `background`, `blind`, `base`, `no copy` or `twin`."""
    name: str
    verdict: Verdict
    sentence: str
    margin: str = ""
    """The AUCs compatible with a check: part of the verdict's line."""
    room: Estimate | None = None
    """The same as numbers; None if no AUC was measured."""
    total: int = 0
    """What was looked at: copies looked for in the streams or fed to the models, documents
    compared, AUCs."""
    n_failed: int = 0
    """How many of these are wrong: copies that are missing, too many or altered, non-members found,
    documents that overlap and were kept, AUCs farther from 0.5 than chance."""
    rows: tuple[CheckRow, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """The audit's facts shared by all streams, as names and values."""
    streams: StreamFacts | None = None
    """What it reported of each; None if there is one stream, or all are alike."""

    @property
    def verdict_line(self) -> str:
        """The verdict and, of a check of AUCs, what it leaves room for."""
        return f"{self.verdict}: {self.margin}" if self.margin else self.verdict

    @property
    def line(self) -> str:
        """The check in one line; a failure is described in full."""
        sentence = f". {self.sentence}" if self.verdict == "failed" else ""
        return f"{self.name}: {self.verdict_line}{sentence}"


def checks_table(checks: Sequence[Check], axes: Sequence[str]) -> pa.Table:
    """Return the checks as findings.

    Args:
        checks: of one experiment.
        axes: the swept axes, by their dotted keys.
    """
    return question_table(QUESTION, axes, (row for check in checks for row in _rows(check)))


def _rows(check: Check) -> Iterator[dict[str, Any]]:
    head: dict[str, Any] = {"check": check.key}
    room: dict[str, float] = {}
    if check.room is not None:
        head |= {"needed_low": NEEDED.low, "needed_high": NEEDED.high}
        room = {"low": check.room.low, "high": check.room.high}
    yield {
        **head,
        **room,
        "verdict": check.verdict,
        "total": check.total,
        "n_failed": check.n_failed,
        "note": check.sentence,
    }
    for row in check.rows:
        if row.auc.available:
            yield {**row.row, **head, "low": row.auc.low, "high": row.auc.high}
