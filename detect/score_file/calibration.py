"""Scores of held-out rows: what decisions about the scored rows are calibrated by.

Detectors that read no more of a text than its own token statistics, and token frequencies, score
held-out rows as they score any; the others, whose evidence on held-out rows would take further
passes, or which read held-out rows themselves, are named in a note.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from detect.detector_settings import DetectorSetting
from detect.evidence import Evidence
from detect.evidence.needs import Frequency, HeldOut, InverseTemperature, Need, View
from detect.scoring import score_rows
from detect.views import TEXT


class Calibration(NamedTuple):
    """The scores of held-out rows."""

    scores: pa.Table
    """As `detect.scores.table.SCHEMA`; rows are those of the held-out texts."""
    groups: tuple[str, ...]
    """One a held-out text; texts of one group share a passage."""


def calibrated_by(settings: Sequence[DetectorSetting]) -> list[DetectorSetting]:
    """Return the settings that can score held-out rows."""
    return [one for one in settings if one.needs and all(map(_of_the_text, one.needs))]


def held_out_need(settings: Sequence[DetectorSetting]) -> list[Need]:
    """Return the need that calibrates settings; nothing where none of them can be."""
    return [HeldOut()] if calibrated_by(settings) else []


def calibrate(
    evidence: Evidence, settings: Sequence[DetectorSetting], groups: Sequence[str]
) -> tuple[Calibration, tuple[str, ...]]:
    """Score the held-out rows; return their scores, and a note on detectors that are left out.

    Args:
        evidence: with held-out rows.
        settings: all that score the other rows.
        groups: of the held-out rows.
    """
    able = calibrated_by(settings)
    names = [str(row) for row in range(len(groups))]
    table = score_rows(names, evidence.of_held_out(), able).table
    others = dict.fromkeys(one.name for one in settings)
    for one in able:
        others.pop(one.name, None)
    notes: tuple[str, ...] = ()
    if others:
        notes = (
            "no decision with a bound on its errors, as they read more than the token statistics "
            f"of a text: {', '.join(others)}",
        )
    return Calibration(table, tuple(groups)), notes


def _of_the_text(need: Need) -> bool:
    return need == View(TEXT) or isinstance(need, Frequency | InverseTemperature)
