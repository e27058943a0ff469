"""What detectors flag at a false-discovery level: the headline's arm, and models that saw nothing.

Detectors that flag nothing are named in a sentence, not in the table.
"""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

from analysis.arm import UPPER_BOUNDS, Cohort, axis_column
from analysis.decisions.flagged import POOLED
from analysis.page.tables.listing import Listing, listing
from analysis.results import Analysis

_CONTROLS = {"base": "the base model", "twin": "the clean twin"}


class FlaggedRows(NamedTuple):
    """The table, and sentences under it."""

    table: Listing | None
    sentences: tuple[str, ...]


def flagged_view(
    analysis: Analysis, cohort: Cohort, detectors: Sequence[str]
) -> FlaggedRows | None:
    """Return what an arm's detectors flag; None where nothing calibrates them.

    Args:
        analysis: the results.
        cohort: the arm.
        detectors: in the page's order.
    """
    every = [row for row in analysis.flagged.to_pylist() if row["dataset"] == POOLED]
    wanted = {axis_column(key): value for key, value in cohort.axes} | {"model": cohort.model}
    arm = {
        row["detector"]: row
        for row in every
        if all(row[key] == value for key, value in wanted.items())
    }
    if not arm:
        return None
    rows = [arm[name] for name in detectors if name in arm]
    flagging = sorted(
        (row for row in rows if row["flagged"]), key=lambda row: -(row["members_found"] or 0)
    )
    none = [row["detector"] for row in rows if not row["flagged"]]
    first = rows[0]
    level = f"{100 * first['level']:g} %"
    where = f" ({cohort.label()})" if cohort.label() else ""
    sentences = [
        f"Calibrated by {first['calibration_rows']:,} non-members of the tune split in "
        f"{first['calibration_groups']:,} groups, which are decided about nowhere; so no p-value "
        f"is below {first['smallest_p']:.3f}."
    ]
    if none:
        sentences.append(
            f"Nothing is flagged by {', '.join(none)}: too few rows score above what calibrates "
            "them. More non-members in the tune split (detect.tune_share) make smaller p-values."
        )
    sentences += _controls(every, level)
    return FlaggedRows(
        listing(
            f"Rows flagged as members at a false-discovery rate of {level}{where}",
            (
                "Detector",
                "Flagged",
                "Non-members among them",
                "Their share",
                "Members found",
            ),
            [_texts(row) for row in flagging],
            "Conformal p-values and Benjamini-Hochberg over all rows of the test split, default "
            "settings (the tuned ones were chosen on the rows that calibrate). The rule promises "
            f"a share of non-members of at most {level} on average over such experiments, for each "
            "detector by itself, not for the best of them; beside it stands the true share of this "
            "one, with its interval.",
        ),
        tuple(sentences),
    )


def _texts(row: Mapping[str, Any]) -> tuple[str, ...]:
    role = " (an upper bound)" if row["detector"] in UPPER_BOUNDS else ""
    found = "" if isnan(row["members_found"]) else f"{100 * row['members_found']:.0f} %"
    return (
        row["detector"] + role,
        f"{row['flagged']:,} of {row['n_members'] + row['n_nonmembers']:,}",
        f"{row['flagged_nonmembers']:,}",
        f"{100 * row['false_share']:.0f} % ({100 * row['low']:.0f} to {100 * row['high']:.0f})",
        found,
    )


def _controls(rows: Sequence[Mapping[str, Any]], level: str) -> list[str]:
    """Say what is flagged on models that saw no member, where all of it is wrong."""
    found = []
    for model, name in _CONTROLS.items():
        own = [row for row in rows if row["model"] == model]
        if not own:
            continue
        wrong: dict[str, int] = {}
        for row in own:
            if row["flagged"]:
                wrong[row["detector"]] = wrong.get(row["detector"], 0) + row["flagged"]
        names = ", ".join(f"{detector} ({count:,})" for detector, count in wrong.items())
        detectors = len({row["detector"] for row in own})
        found.append(
            f"On {name}, which saw no member and where each flagged row is wrong, "
            + (
                f"{len(wrong)} of {detectors} detectors flag rows: {names}; each does so by chance "
                f"in at most {level} of such experiments."
                if names
                else f"none of {detectors} detectors flags a row."
            )
        )
    return found
