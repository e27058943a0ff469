"""What dataset-level detectors found: a table for the headline's arm, one for the controls."""

from collections.abc import Mapping, Sequence
from math import isfinite, isnan
from typing import Any

from analysis.arm import Cohort, axis_column
from analysis.dataset_detectors.detector import POOLED
from analysis.dataset_detectors.registry import dataset_detector_names, get_dataset_detector
from analysis.page.tables.listing import Listing, listing, p_text
from analysis.results import Analysis

_COLUMNS = ("Detector", "Data set, rows", "Seed", "Found", "p", "p (Holm)", "n", "Note")


def dataset_findings(analysis: Analysis, cohort: Cohort) -> list[Listing]:
    """Return the findings on the headline's arm, then those on models that saw no copy."""
    wanted = {axis_column(key): value for key, value in cohort.axes} | {"model": cohort.model}
    rows = analysis.datasets.to_pylist()
    arm = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    controls = [row for row in rows if row["model"] in ("base", "twin")]
    where = f" ({cohort.label()})" if cohort.label() else ""
    tables = (
        listing(
            f"Findings on whole data sets{where}",
            _COLUMNS,
            [_texts(row) for row in arm],
            "p-values are one-sided: small where the rows were seen. Holm: adjusted for the data "
            "sets that one detector tested. Rows 'non-members' are a control that nobody saw: "
            "their p-values are uniform.",
        ),
        listing(
            "The same on models that saw no member",
            ("Model", *_COLUMNS),
            [(row["model"], *_texts(row)) for row in controls],
            "A control: neither their p-values nor their AUCs may tell the sides apart.",
        ),
    )
    return [table for table in tables if table is not None]


def dataset_assumptions(analysis: Analysis) -> list[str]:
    """Return, for each detector that was asked for, what it measures, assumes and rests on."""
    asked: Sequence[str] = list(dict.fromkeys(analysis.datasets["detector"].to_pylist()))
    known = dataset_detector_names()
    found = [get_dataset_detector(name) for name in asked if name in known]
    return [f"{d.name}: {d.summary} ({d.source}). Assumes: {d.assumption}." for d in found]


def _texts(row: Mapping[str, Any]) -> tuple[str, ...]:
    dataset = "all data sets" if row["dataset"] == POOLED else row["dataset"]
    return (
        row["detector"],
        f"{dataset}, {row['rows']}",
        str(row["seed"]),
        _found(row),
        p_text(row["p_value"]),
        p_text(row["p_holm"]),
        str(row["n"]) if row["n"] else "",
        row["note"],
    )


def _found(row: Mapping[str, Any]) -> str:
    """Return the statistic with its value, and its interval where it has one."""
    if isnan(row["value"]):
        return f"{row['statistic']}: none"
    ends = f" ({row['low']:.2f} to {row['high']:.2f})" if isfinite(row["low"]) else ""
    return f"{row['statistic']} = {row['value']:.2f}{ends}".replace("-", "\N{MINUS SIGN}")
