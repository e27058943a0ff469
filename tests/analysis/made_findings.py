"""Findings of one arm made by hand from numbers and their keys."""

from collections.abc import Mapping
from math import nan
from typing import Any

from analysis.arm import axis_column
from analysis.findings import Findings
from analysis.metrics import TUNE_AUC

PLACE = ("dataset", "detector", "selection", "copies", "metric")
Number = dict[str, Any]


def number(value: float, low: float, high: float, **more: Any) -> Number:
    """Return the values of a metrics row; `tune` is the AUC that detectors are chosen by."""
    counts = {"n_members": 40, "n_nonmembers": 80, "n_seeds": 1}
    missing = {"seed_low": nan, "seed_high": nan, "chance_error": nan}
    about = {"setting": "-", "interval": "this model"}
    return {**about, "value": value, "low": low, "high": high, **counts, **missing, **more}


def made_arm(
    numbers: Mapping[tuple[str, ...], Number],
    *axes: tuple[str, str],
    model: str = "contaminated",
) -> Findings:
    """Return the metrics of an arm, by dataset, detector, selection, copies and metric."""
    head = {**{axis_column(key): value for key, value in axes}, "model": model, "variant": "all"}
    rows = [{**head, **dict(zip(PLACE, place, strict=True)), **cell}
            for place, cell in numbers.items()]  # fmt: skip
    chosen_by = [{**row, "metric": TUNE_AUC, "value": row["tune"]} for row in rows if "tune" in row]
    return Findings([*rows, *chosen_by], [key for key, _ in axes])


def one_arm(
    numbers: Mapping[tuple[str, ...], Number], *axes: tuple[str, str], **more: str
) -> Findings:
    """Return AUCs of default settings over all datasets, by detector and, if named, copies."""
    return made_arm(
        {("all", name, "default", *(copies or ["all"]), "auc"): cell
         for (name, *copies), cell in numbers.items()},
        *axes,
        **more,
    )  # fmt: skip
