"""Evidence → scores: every detector and setting over every row.

Cost: 1,000 examples of 250 tokens under all settings of all detectors take about a second.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from detect.access import Access
from detect.detector_settings import DetectorSetting
from detect.evidence import Evidence
from detect.evidence.needs import Need
from detect.guarded_call import read_only, score_guarded
from detect.scores.table import SCHEMA
from inject.errors import InputError

Runnable = tuple[list[DetectorSetting], tuple[str, ...]]
"""The settings that can run with the available sources, and notes on the others."""


class SkippedDetector(NamedTuple):
    """A detector that cannot run with the available sources."""

    detector: str
    lacks: tuple[str, ...]
    """The unmet needs."""
    hint: str
    """Advice for the user."""

    @property
    def problem(self) -> str:
        """The problem, as a sentence without its full stop."""
        return _needs_text(self.detector, self.lacks)

    @property
    def note(self) -> str:
        """The complete message."""
        return f"{self.problem}, and is left out. {self.hint}".strip()


def runnable(
    settings: Sequence[DetectorSetting],
    unmet: Callable[[Need], str | None],
    *,
    leave_out: bool,
) -> Runnable:
    """Return the settings whose needs can be met.

    Args:
        settings: the requested settings.
        unmet: returns advice about an unmet need; None for a met one.
        leave_out: omit the others with a note (for `all`); else raise.

    Raises:
        InputError: a named detector's needs cannot be met, or no detector remains.
    """
    left_out = settings_left_out(settings, unmet)
    if left_out and not leave_out:
        first = left_out[0]
        raise InputError(first.problem, where=f"detector {first.detector}", hint=first.hint)
    runs = [setting for setting in settings if all(unmet(need) is None for need in setting.needs)]
    notes = tuple(skipped.note for skipped in left_out)
    if not runs:
        raise InputError("no detector remains that can run", hint=" ".join(notes))
    return runs, notes


def settings_left_out(
    settings: Sequence[DetectorSetting], unmet: Callable[[Need], str | None]
) -> list[SkippedDetector]:
    """Return the detectors whose needs cannot be met, each once, with advice.

    Args:
        settings: the requested settings.
        unmet: returns advice about an unmet need; None for a met one.
    """
    skipped: dict[SkippedDetector, None] = {}
    for setting in settings:
        hints = {str(need): hint for need in setting.needs if (hint := unmet(need)) is not None}
        if hints:
            hint = " ".join(dict.fromkeys(hints.values()))
            skipped[SkippedDetector(setting.name, tuple(hints), hint)] = None
    return list(skipped)


def within_access(
    settings: Sequence[DetectorSetting],
    most: Access,
    *,
    leave_out: bool,
    because: Callable[[Access], str],
) -> Runnable:
    """Return the settings within an access level.

    Args:
        settings: the requested settings.
        most: highest allowed access level.
        leave_out: omit the others with a note (for `all`); else raise.
        because: returns the reason why a level is not allowed, as a clause.

    Raises:
        InputError: a named detector exceeds the level, or no detector remains.
    """
    allowed: list[DetectorSetting] = []
    beyond: dict[Access, list[str]] = {}
    for setting in settings:
        access = setting.detector.access_with(setting.parameters)
        if access <= most:
            allowed.append(setting)
        elif leave_out:
            beyond.setdefault(access, []).append(setting.name)
        else:
            raise InputError(
                f"{setting.name} reads {access.label}, and {because(access)}",
                where=f"detector {setting.name}",
            )
    notes = tuple(
        f"{reason[0].upper()}{reason[1:]}; left out, as they read {access.label}: "
        f"{', '.join(dict.fromkeys(names))}"
        for access, names in sorted(beyond.items())
        if (reason := because(access))
    )
    if not allowed:
        raise InputError("no detector remains that can run", hint=". ".join(notes))
    return allowed, notes


def score_rows(
    example_ids: Sequence[str],
    evidence: Evidence,
    settings: Sequence[DetectorSetting],
    *,
    protected: bool = True,
    on_scored: Callable[[str, float], None] | None = None,
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the scores of every row under every setting, and the detectors' notes on them.

    Args:
        example_ids: one per row of the evidence, in its order; equal ids are separate rows.
        evidence: input of the detectors.
        settings: in output order; those of one detector are computed together.
        protected: the evidence may contain a protected text (see `detect.guarded_call`).
        on_scored: called with each detector's name and the seconds for its scores.

    Raises:
        InputError: evidence that a detector needs is missing, or a detector ran out of memory. A
            detector that fails otherwise has missing scores (see `detect.guarded_call`).
    """
    for setting in settings:
        lacking = [str(need) for need in setting.needs if not need.met_by(evidence)]
        if lacking:
            raise InputError(_needs_text(setting.name, lacking), where=f"detector {setting.name}")
    parts: list[pa.Table] = []
    notes: list[str] = []
    rows = np.arange(len(example_ids), dtype=np.int64)
    shared = read_only(evidence)
    for _, together in groupby(settings, key=lambda setting: setting.name):
        group = list(together)
        started = perf_counter()
        columns = score_guarded(
            group[0].detector,
            shared,
            [setting.parameters for setting in group],
            rows=len(example_ids),
            protected=protected,
        ).columns
        if on_scored is not None:
            on_scored(group[0].name, perf_counter() - started)
        for setting, column in zip(group, columns, strict=True):
            parts.append(
                pa.table(
                    [
                        pa.array(rows),
                        pa.array(example_ids, pa.string()),
                        pa.array([setting.name] * len(rows), pa.string()),
                        pa.array([setting.text] * len(rows), pa.string()),
                        pa.array(np.array([score.value for score in column.scores], np.float64)),
                        pa.array([_reason(*score) for score in column.scores], pa.string()),
                    ],
                    schema=SCHEMA,
                )
            )
            notes += [f"{setting.name}: {note}" for note in column.notes]
    table = pa.concat_tables(parts) if parts else SCHEMA.empty_table()
    return table.combine_chunks(), tuple(dict.fromkeys(notes))


def _needs_text(detector: str, needs: Iterable[str]) -> str:
    named = list(needs)
    plural = len(named) > 1 or named[0].endswith("s")
    return f"{detector} needs {' and '.join(named)}, which {'are' if plural else 'is'} not given"


def _reason(value: float, reason: str | None) -> str | None:
    if math.isnan(value):
        return reason or "not a number"
    return None
