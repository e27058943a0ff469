"""The rows of `unlearning.parquet`, looked up: who was measured, by what, on which members.

A look-up returns the one row that answers it, or None. Nothing is computed here, and no row is
chosen by its value: the detector that stands for all is the first of a fixed list that was run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

from analysis.arm import arm_label
from analysis.copy_bins import ALL, copies_order, is_dose

Row = Mapping[str, Any]

ORIGINAL, RETRAINED, UNLEARNED, BASE = "original", "retrained", "unlearned", "base"
NO_METHOD = NO_DETECTOR = "-"
CONDITION = "condition="
"""What the setting of a row begins with that was measured under a condition (`condition=4bit`)."""
VERSUS_RETRAINED = "versus=retrained"
"""The settings of a difference to another model."""
RETAINED_TEXTS = "texts=retain"
"""The setting of an accuracy on questions that are retained."""
STEPS = "steps="
"""What the setting begins with of a number after so many steps of relearning (`steps=8`)."""
_QUALIFIERS = (CONDITION, "versus=", "texts=", STEPS)
HEADLINE_DETECTORS = ("min_k", "loss", "min_k_plus_plus", "zlib")
"""Whose numbers stand for the others': Min-K% as in PrivLeak (Shi et al. 2024, MUSE), else the next
that was run. The order is fixed, so that no detector is chosen by what it found."""
_KEY = ("model", "method", "measure", "detector", "copies", "dataset")


@dataclass(frozen=True, kw_only=True)
class MeasuredModels:
    """The measures of one arm, or of all."""

    rows: tuple[Row, ...]
    axes: tuple[str, ...]
    """The swept axes that are columns."""

    def arms(self) -> dict[str, "MeasuredModels"]:
        """Return the rows of each arm by its values of the axes in words, in their order."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(arm_text(row, self.axes), []).append(row)
        return {
            label: MeasuredModels(rows=tuple(rows), axes=self.axes) for label, rows in found.items()
        }

    @property
    def methods(self) -> list[str]:
        """The labels of the unlearned models, in the order in which they were asked for."""
        return list(dict.fromkeys(r["method"] for r in self.rows if r["model"] == UNLEARNED))

    @property
    def models(self) -> list[tuple[str, str]]:
        """Model and method of every model: original, retrained, the unlearned, base."""
        found = {(row["model"], row["method"]): None for row in self.rows}
        order = (ORIGINAL, RETRAINED, UNLEARNED, BASE)
        return sorted(found, key=lambda one: order.index(one[0]))

    @property
    def datasets(self) -> list[str]:
        """The datasets, without `all`."""
        return [name for name in dict.fromkeys(r["dataset"] for r in self.rows) if name != ALL]

    @property
    def detectors(self) -> list[str]:
        """The detectors whose AUC was measured."""
        return list(dict.fromkeys(r["detector"] for r in self.rows if r["measure"] == "auc"))

    @property
    def headline_detector(self) -> str | None:
        """The detector whose numbers stand for the others'; None if none was run."""
        names = self.detectors
        return next((one for one in HEADLINE_DETECTORS if one in names), next(iter(names), None))

    @property
    def conditions(self) -> list[str]:
        """The conditions under which anything was measured again."""
        found = (row["setting"] for row in self.rows if row["setting"].startswith(CONDITION))
        return list(dict.fromkeys(one.removeprefix(CONDITION) for one in found))

    @property
    def relearning_steps(self) -> list[int]:
        """The steps of relearning after which models were looked at, rising; 0 is before any."""
        found = {
            row["setting"].partition(":")[0].removeprefix(STEPS)
            for row in self.rows
            if row["setting"].startswith(STEPS)
        }
        return sorted(map(int, found))

    def copies(self, measure: str) -> list[str]:
        """Return the doses at which something was measured, in rising order."""
        found = {row["copies"] for row in self.rows if row["measure"] == measure}
        return sorted((one for one in found if is_dose(one)), key=copies_order)

    def get(
        self,
        model: str,
        method: str,
        measure: str,
        *,
        detector: str | None = None,
        copies: str = ALL,
        dataset: str = ALL,
        of: str = "",
    ) -> Row | None:
        """Return the one row, or None.

        Args:
            model: `original`, `retrained`, `unlearned` or `base`.
            method: label of the unlearned model, else `-`.
            measure: as in the table.
            detector: None for a measure that rests on no detector.
            copies: `all`, or a dose.
            dataset: a name, or `all`.
            of: the setting where it says of what the number is, such as `condition=4bit` or
                `versus=original`; empty for the number itself, whatever the detector's setting.
        """
        key = (model, method, measure, detector or NO_DETECTOR, copies, dataset, of)
        return self._index.get(key)

    @cached_property
    def _index(self) -> dict[tuple[str, ...], Row]:
        """The rows by what they are of; of several arms the first."""
        found: dict[tuple[str, ...], Row] = {}
        for row in self.rows:
            key = (*(str(row[name]) for name in _KEY), _qualifier(row))
            found.setdefault(key, row)
        return found


def measured_models(rows: Sequence[Row], *, first: str = "model") -> MeasuredModels:
    """Return the rows of a table, for looking up.

    Args:
        rows: of `unlearning.parquet`, as mappings whose keys stand in the order of the columns.
        first: the column behind the swept axes.
    """
    columns = list(rows[0]) if rows else [first]
    return MeasuredModels(rows=tuple(rows), axes=tuple(columns[: columns.index(first)]))


def arm_text(row: Row, axes: Sequence[str]) -> str:
    """Return a row's values of the swept axes in words; empty without any."""
    return arm_label((axis, row[axis]) for axis in axes)


def has_value(row: Row | None) -> bool:
    """Say whether a row holds a number."""
    return row is not None and row["value"] is not None and isfinite(row["value"])


def has_interval(row: Row | None) -> bool:
    """Say whether a row holds a number with both its ends."""
    ends = () if row is None else (row["value"], row["low"], row["high"])
    return bool(ends) and all(one is not None and isfinite(one) for one in ends)


def measured_cell(row: Row | None) -> Row | None:
    """Return a row that has an interval with what is behind it as metrics call it; None without."""
    if row is None or not has_interval(row):
        return None
    counts = {"n_members": row["forget"], "n_nonmembers": row["holdout"], "n_seeds": row["seeds"]}
    return {**row, **counts}


def _qualifier(row: Row) -> str:
    setting = str(row["setting"])
    return setting if setting.startswith(_QUALIFIERS) else ""
