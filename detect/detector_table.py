"""The table of detectors, as `spikein detectors` lists them."""

from collections.abc import Sequence
from typing import NamedTuple

from detect.detector_settings import setting_text
from detect.registry import every_detector


class TableRow(NamedTuple):
    """One detector."""

    name: str
    summary: str
    parameters: str
    """Defaults, then how many settings are tuned over."""
    needs: str
    source: str
    origin: str
    """`built in`, a package and its version, or `FILE.py:NAME`."""


class DetectorTable(NamedTuple):
    """All detectors, and what is wrong with those that are left out."""

    rows: list[TableRow]
    warnings: tuple[str, ...]


def detector_table(files: Sequence[str] = ()) -> DetectorTable:
    """Return one row a detector.

    Args:
        files: `FILE.py:NAME` each, listed after the others.

    Raises:
        InputError: one of the files cannot be used.
    """
    every = every_detector(files)
    rows = []
    for one in every.detectors:
        detector = one.detector
        grid = f" (tuned over {len(detector.grid)})" if detector.grid else ""
        rows.append(
            TableRow(
                detector.name,
                detector.summary,
                setting_text(detector.parameters()) + grid,
                ", ".join(map(str, detector.needs)) or "-",
                detector.source,
                one.origin,
            )
        )
    return DetectorTable(rows, every.warnings)
