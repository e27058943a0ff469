"""What running, planning and looking at an experiment give to the command line.

Plain records without heavy imports: `spikein.api` makes them, `spikein.cli` prints them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spikein.estimates.injection import InjectionEstimate
    from spikein.estimates.training import TrainingEstimate
    from train.speed_measurement import TrainingRate


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """A finished run."""

    folder: Path
    """`runs/<name>/`."""
    report: Path
    """`report.html` in it."""
    summary: tuple[str, ...]
    """A few lines of plain text: the checks, the best detector, how it grows with copies."""
    built: int
    """Steps that this run built."""
    stored: int
    """Steps that the store held."""
    seconds: float


@dataclass(frozen=True, kw_only=True)
class PlanRow:
    """One step of a plan."""

    kind: str
    label: str
    stored: bool
    """Whether there is nothing to do."""
    state: str
    """The same in words: in the store, damaged, to do …"""
    problem: str | None = None
    """What is damaged, and how."""
    tokens: int | None = None
    """Tokens passed through a model."""
    flops: float | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    seconds: float | None = None
    """An estimate for this machine; None where there is none."""


@dataclass(frozen=True, kw_only=True)
class PlanResult:
    """What a run would do."""

    name: str
    arms: int
    rows: tuple[PlanRow, ...]
    injection: "tuple[InjectionEstimate, ...]" = ()
    """What the copies of each arm are expected to amount to."""
    training: "tuple[TrainingEstimate, ...]" = ()
    """What the training runs are expected to take."""
    unresolved: Mapping[str, str] = field(default_factory=dict)
    """What could not be looked up without a network, and why; not checked."""
    measured: "TrainingRate | None" = None
    """How fast this machine trains; None where it was not measured."""
    problems: tuple[str, ...] = ()
    """What a run would refuse, found by looking at the rows of the datasets."""
    notes: tuple[str, ...] = ()
    """What a run would leave out, and names that may be taken for another file."""
