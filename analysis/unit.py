"""A kind of number, and the one way in which it is written: in a text, a table and a picture."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple

from analysis.intervals.estimate import Estimate

NOTHING = "–"
DOUBTFUL = "not to be trusted"
"""Part of the caution about an interval with too few independent groups."""
Measured = Estimate | Mapping[str, Any]
"""A number with its interval, or the row of findings that contains it."""


class Entry(NamedTuple):
    """A table cell that is more than a text."""

    text: str
    ends: str = ""
    """The ends of its interval, in brackets."""
    notes: tuple[str, ...] = ()
    """Small text under it."""
    kind: str = ""
    """`interval`, `difference` or `none`; of a row's head `chosen`, for the chosen detector."""
    strong: bool = False
    """Of a number: best on the tuning split, or an interval that excludes 0."""
    sorted_by: str = ""
    """The number to sort rows by, if the text is not a number."""

    def __str__(self) -> str:
        """Return it in one line: `0.79 [0.75, 0.82] (30 + 40)`."""
        notes = f"({', '.join(self.notes)})" if self.notes else ""
        return " ".join(filter(None, (self.text, self.ends, notes)))


ABSENT = Entry(NOTHING, kind="none absent")
"""The cell of a missing measurement."""


class Dot(NamedTuple):
    """A number with its interval and its description."""

    value: float
    low: float
    high: float
    hover: str
    """Value, interval and numbers of examples, shown when a pointer hovers over it."""
    text: str = ""
    bold: bool = False
    doubtful: bool = False
    """Whether its interval is not to be trusted: dotted."""

    def numbers(self) -> dict[str, object]:
        """Return the number and its interval by name."""
        return {"value": self.value, "low": self.low, "high": self.high}


class Unit(NamedTuple):
    """A kind of number, and the one way in which it is written."""

    name: str
    digits: int
    times: float = 1.0
    signed: bool = False
    """Whether it is a difference: it has a sign, and is strong if its interval excludes 0."""

    def number(self, value: float) -> str:
        """Return `0.79`, or `+2.4`; a zero has no minus."""
        if not isfinite(value):
            return NOTHING
        sign = "+" if self.signed else ""
        return f"{self.times * value:{sign}z.{self.digits}f}".replace("-", "−")

    def ends(self, low: float, high: float) -> str:
        """Return `[0.75, 0.82]`."""
        return f"[{self.number(low)}, {self.number(high)}]"

    def text(self, value: float, low: float, high: float) -> str:
        """Return `AUC 0.79 [0.75, 0.82]`, `50 % [30, 70]` or `+2.4 points [−0.2, +5.1]`."""
        parts = [self.name, self.number(value)]
        if self.signed or self.times != 1:
            parts.reverse()
        return " ".join(filter(None, (*parts, self.ends(low, high))))

    def brief(self, measured: Measured | None, *, no_interval: str = "") -> str:
        """Return `0.79 [0.75, 0.82]`; empty without a number.

        Args:
            measured: what was measured, if anything was.
            no_interval: the text for a number without an interval.
        """
        cell = None if measured is None else estimate_of(measured)
        if cell is None or not isfinite(cell.value):
            return ""
        has_interval = isfinite(cell.low) and isfinite(cell.high)
        ends = self.ends(cell.low, cell.high) if has_interval else no_interval
        return f"{self.number(cell.value)} {ends}".rstrip()

    def entry(
        self, measured: Measured | None, *, best: bool = False, n: str = "", lacking: str = ""
    ) -> Entry:
        """Return a number with its interval as a place of a table.

        Args:
            measured: what was measured, if anything was.
            best: whether it is the best of its line.
            n: the number of examples, if the head does not contain it.
            lacking: what to show in place of a number without an interval.
        """
        if measured is None:
            return ABSENT
        cell = estimate_of(measured)
        if not cell.available:
            equal = not isfinite(cell.value) and cell.members >= 2 and not self.signed
            return Entry(lacking or ("no value" if equal else NOTHING), kind="none")
        entry = self.place(cell.value, cell.low, cell.high, *filter(None, [n]))
        doubtful = "†" if DOUBTFUL in cell.about else ""
        return entry._replace(ends=f"{entry.ends}{doubtful}", strong=best or entry.strong)

    def place(self, value: float, low: float, high: float, *notes: str) -> Entry:
        """Return a number as a place of a table; NaN ends: it has no interval."""
        if not isfinite(value):
            return Entry(NOTHING, notes=notes, kind="none")
        has_interval = isfinite(low) and isfinite(high)
        return Entry(
            self.number(value),
            ends=self.ends(low, high) if has_interval else "",
            notes=notes,
            kind="difference" if self.signed else "interval",
            strong=self.signed and has_interval and not low <= 0 <= high,
        )

    def dot(self, head: str, measured: Measured | None, *, bold: bool = False) -> Dot | None:
        """Return a number as a mark whose hover names its subject and its counts."""
        cell = None if measured is None else estimate_of(measured)
        if cell is None or not cell.available:
            return None
        interval_text = self.text(cell.value, cell.low, cell.high)
        value, low, high = (self.times * end for end in (cell.value, cell.low, cell.high))
        return Dot(
            value,
            low,
            high,
            " · ".join(filter(None, (f"{head}: {interval_text}", counts(cell)))),
            text=self.number(cell.value),
            bold=bold,
            doubtful=DOUBTFUL in cell.about,
        )


AUC = Unit("AUC", 2)
POINTS = Unit("points", 1, 100.0, signed=True)
"""Differences in hundredths."""
PERCENT = Unit("%", 0, 100.0)
NATS = Unit("nats", 3)
DIFFERENCE = Unit("", 3, signed=True)


def estimate_of(measured: Measured) -> Estimate:
    """Return a number with its interval."""
    return measured if isinstance(measured, Estimate) else Estimate.of(measured)


def counts(cell: Estimate) -> str:
    """Return the examples behind a number; empty if they are not known."""
    if not cell.members:
        return ""
    others = f", {cell.nonmembers:,} non-members" if cell.nonmembers else ""
    return f"{cell.members:,} members{others}"
