"""The rows of the question `unlearning`: numbers of models with their intervals and counts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import nan
from typing import Any

from analysis.arm import axis_column
from analysis.copy_bins import ALL, CopiesCell
from analysis.intervals.ends import LEAST_GROUPS
from analysis.intervals.estimate import Estimate
from analysis.intervals.numbers import Numbers
from analysis.tables import POOLED
from analysis.unlearning.evidence import Cohort, ModelKey

NO_DETECTOR = "-"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What a number is called."""

    key: ModelKey
    name: str
    detector: str = NO_DETECTOR
    setting: str = ""
    expected: int = 1
    """Seeds that have the models it is of."""


@dataclass(kw_only=True)
class RowWriter:
    """Gathers the rows of one cohort."""

    cohort: Cohort
    cells: Sequence[CopiesCell]
    """Numbers of copies, the first of which is all of them."""
    confidence: float
    """Coverage asked of every interval."""
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self,
        measure: Measure,
        numbers: Numbers,
        find: Callable[[str | None], Sequence[Estimate]] | None = None,
    ) -> None:
        """Add a number of all datasets together and of each, of all copies and of each number.

        Numbers of copies with fewer than three groups get no row. A number of which there is
        nothing gets one, without a value.

        Args:
            measure: what it is called.
            numbers: one number a cell, or one for all.
            find: what they say of a dataset (None: of all together), if not their own intervals.
        """
        # A dataset of which no text counts here has nothing to say.
        datasets = dict.fromkeys(name for seed in numbers.seeds for name in seed)
        for dataset in (None, *datasets):
            own = find or partial(numbers.estimates, confidence=self.confidence)
            estimates = own(dataset)
            for k, estimate in enumerate(estimates):
                if k and estimate.groups < LEAST_GROUPS:
                    continue
                notes = (
                    estimate.note,
                    _missing(measure, estimate.seeds),
                    _left_out(numbers.left_out(dataset)),
                )
                values = {
                    **{end: getattr(estimate, end) for end in ("value", "low", "high")},
                    "forget": estimate.members,
                    "holdout": estimate.nonmembers,
                    "groups": estimate.groups,
                    "seeds": estimate.seeds,
                    "note": "; ".join(filter(None, notes)),
                }
                self.add_plain(measure, dataset, values, copies=self.cells[k].label)
            if not estimates:
                self.add_plain(measure, dataset, {"note": "no value"})

    def add_plain(
        self, measure: Measure, dataset: str | None, values: dict[str, Any], *, copies: str = ALL
    ) -> None:
        """Add a row that is found otherwise; what is not given is absent."""
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
                "note": "",
                **values,
            }
        )


def _missing(measure: Measure, seeds: int) -> str:
    lacking = measure.expected - seeds
    return f"{lacking} of {measure.expected} seeds have no value" if lacking > 0 else ""


def _left_out(rows: int) -> str:
    return f"{rows} {'row has' if rows == 1 else 'rows have'} no value" if rows else ""
