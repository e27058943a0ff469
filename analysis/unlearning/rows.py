"""The rows of the question `unlearning`: one a measured value, with what stands behind it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np

from analysis.arm import axis_column
from analysis.copy_bins import ALL, CopiesCell
from analysis.intervals.bounds import LEAST_GROUPS, Interval, Scale, find_interval
from analysis.intervals.clustered import Clustered
from analysis.tables import POOLED
from analysis.unlearning.evidence import Cohort, ModelKey
from analysis.unlearning.numbers import Numbers, behind, clustered

NO_DETECTOR = "-"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What a number is called."""

    key: ModelKey
    name: str
    detector: str = NO_DETECTOR
    setting: str = ""
    note: str = ""
    """What is to be said of it besides."""
    expected: int = 1
    """Seeds that have the models it is of."""


FindInterval = Callable[[str | None], tuple[Clustered, Interval] | None]
"""Returns K numbers of a dataset (None: of all together) and their intervals; None for none."""


@dataclass(kw_only=True)
class RowWriter:
    """Gathers the rows of one cohort."""

    cohort: Cohort
    cells: Sequence[CopiesCell]
    """Numbers of copies, the first of which is all of them."""
    confidence: float
    """Coverage asked of every interval."""
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, measure: Measure, numbers: Numbers, find: FindInterval) -> None:
        """Add a number of all datasets together and of each, of all copies and of each number.

        Numbers of copies with fewer than three groups get no row. A number of which there is
        nothing gets one, without a value.

        Args:
            measure: what it is called.
            numbers: what stands behind it: one number a cell, or one for all.
            find: its intervals.
        """
        # A dataset of which no text counts here has nothing to say.
        datasets = dict.fromkeys(name for seed in numbers for name in seed)
        for dataset in (None, *datasets):
            counted = behind(numbers, dataset)
            found = find(dataset)
            if found is None:
                self._write(measure, dataset, ALL, {"note": _joined(measure.note, "no value")})
                continue
            clusters, interval = found
            for k, cell in enumerate(self.cells[: len(clusters.value)]):
                if k and counted.groups[k] < LEAST_GROUPS:
                    continue
                self._write(
                    measure,
                    dataset,
                    cell.label,
                    {
                        "value": float(clusters.value[k]),
                        "low": float(interval.low[k]),
                        "high": float(interval.high[k]),
                        "forget": int(counted.forget[k]),
                        "holdout": int(counted.holdout[k]),
                        "groups": int(counted.groups[k]),
                        "seeds": int(clusters.seeds[k]),
                        "note": _joined(
                            warning_of(interval.about[k]),
                            _missing(measure, int(clusters.seeds[k])),
                            _left_out(counted.left_out),
                            measure.note,
                        ),
                    },
                )

    def add_scaled(self, measure: Measure, numbers: Numbers, scale: Scale) -> None:
        """Add numbers with the intervals of their scale; see `add`."""

        def find(dataset: str | None) -> tuple[Clustered, Interval] | None:
            found = clustered(numbers, dataset)
            if found is None or not np.isfinite(found.value).any():
                return None
            return found, find_interval(found, scale, confidence=self.confidence)

        self.add(measure, numbers, find)

    def add_plain(self, measure: Measure, dataset: str | None, values: dict[str, Any]) -> None:
        """Add a row that is found otherwise; what is not given is absent."""
        note = _joined(str(values.get("note", "")), measure.note)
        self._write(measure, dataset, ALL, {**values, "note": note})

    def _write(
        self, measure: Measure, dataset: str | None, copies: str, values: dict[str, Any]
    ) -> None:
        self.rows.append(
            {
                **{axis_column(key): value for key, value in self.cohort.axes.items()},
                "model": measure.key.model,
                "method": measure.key.method,
                "dataset": POOLED if dataset is None else dataset,
                "copies": copies,
                "measure": measure.name,
                "detector": measure.detector,
                "setting": measure.setting,
                **dict.fromkeys(("value", "low", "high"), nan),
                **dict.fromkeys(("forget", "holdout", "groups", "seeds"), 0),
                **values,
            }
        )


def warning_of(about: str) -> str:
    """Return what an interval warns of; of whom it speaks is plain from the number of seeds."""
    return about if about.startswith("none") else about.partition("; ")[2]


def _missing(measure: Measure, seeds: int) -> str:
    lacking = measure.expected - seeds
    return f"{lacking} of {measure.expected} seeds have no value" if lacking > 0 else ""


def _left_out(rows: int) -> str:
    return f"{rows} {'row has' if rows == 1 else 'rows have'} no value" if rows else ""


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
