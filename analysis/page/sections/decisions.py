"""What is decided: for whole data sets, and row by row with a bound on the share of errors."""

from collections.abc import Mapping, Sequence
from math import isfinite, isnan

import pyarrow as pa

from analysis.arm import UPPER_BOUNDS, Cohort
from analysis.dataset_detectors.detector import POOLED, dataset_detector_names, get_dataset_detector
from analysis.findings import Findings, Row
from analysis.page.grids import in_arm
from analysis.page.parts import Fold, Note, Part, present
from analysis.page.table import listing, p_text, with_noun
from analysis.summary import NO_NAMES, Names

_CONTROLS = {"base": "the base model", "twin": "the clean twin"}
_ALL = {"dataset": POOLED}


def dataset_findings(datasets: pa.Table, cohort: Cohort) -> list[Part]:
    """Return the findings on the headline's arm, then those on models that saw no copy.

    Args:
        datasets: what dataset-level detectors found.
        cohort: the headline's arm.
    """
    columns = ("Detector", "Data set, rows", "Seed", "Found", "p", "p (Holm)", "n", "Note")
    controls = listing(
        "The same on models that saw no member",
        ("Model", *columns),
        [
            (row["model"], *_finding(row))
            for row in datasets.to_pylist()
            if row["model"] in _CONTROLS
        ],
        "A control: neither their p-values nor their AUCs may tell the sides apart.",
    )
    known = dataset_detector_names()
    asked = (name for name in dict.fromkeys(datasets["detector"].to_pylist()) if name in known)
    return present(
        listing(
            f"Findings on whole data sets{in_arm(cohort)}",
            columns,
            [_finding(row) for row in _rows(datasets, cohort.place())],
            "p-values are one-sided: small where the rows were seen. Holm: adjusted for the data "
            "sets that one detector tested. Rows 'non-members' are a control that nobody saw: "
            "their p-values are uniform.",
        ),
        Fold(controls.title, [controls]) if controls else None,
        [
            Note(f"{one.name}: {one.summary} ({one.source}). Assumes: {one.assumption}.", "how")
            for one in map(get_dataset_detector, asked)
        ],
    )


def _rows(table: pa.Table, place: Mapping[str, str]) -> Sequence[Row]:
    return Findings(table.to_pylist()).where(**place).rows


def _finding(row: Row) -> tuple[str, ...]:
    dataset = "all data sets" if row["dataset"] == POOLED else row["dataset"]
    # The statistic with its value, and its interval where it has one.
    measured = f"{row['statistic']}: none"
    if not isnan(row["value"]):
        ends = f" ({row['low']:.2f} to {row['high']:.2f})" if isfinite(row["low"]) else ""
        measured = f"{row['statistic']} = {row['value']:.2f}{ends}"
    return (
        row["detector"],
        f"{dataset}, {row['rows']}",
        str(row["seed"]),
        measured.replace("-", "\N{MINUS SIGN}"),
        p_text(row["p_value"]),
        p_text(row["p_holm"]),
        str(row["n"]) if row["n"] else "",
        row["note"],
    )


def flagged_parts(
    flagged: pa.Table, cohort: Cohort, detectors: Sequence[str], names: Names = NO_NAMES
) -> list[Part]:
    """Return what an arm's detectors flag; nothing where nothing calibrates them.

    Detectors that flag nothing are named in a sentence, not in the table.

    Args:
        flagged: what each detector flags under each model.
        cohort: the arm.
        detectors: in the page's order.
    """
    arm = {row["detector"]: row for row in _rows(flagged, cohort.place() | _ALL)}
    if not arm:
        return []
    rows = [arm[name] for name in detectors if name in arm]
    level = f"{100 * rows[0]['level']:g} %"
    calibrations: dict[tuple[int, int, float], list[Row]] = {}
    for row in rows:
        own = (row["calibration_rows"], row["calibration_groups"], row["smallest_p"])
        calibrations.setdefault(own, []).append(row)
    # A detector whose p-values are all above the level is named with its calibration instead.
    none = [row for row in rows if not row["flagged"] and row["smallest_p"] <= row["level"]]
    table = listing(
        f"Rows flagged as members at a false-discovery rate of {level}{in_arm(cohort)}",
        ("Detector", "Flagged", "Non-members among them", "Their share", "Members found"),
        [
            _flagged_texts(row, names)
            for row in sorted(rows, key=lambda row: -(row["members_found"] or 0))
            if row["flagged"]
        ],
        "Conformal p-values and Benjamini-Hochberg over all rows of the test split, default "
        "settings (the tuned ones were chosen on the rows that calibrate). The rule promises "
        f"a share of non-members of at most {level} on average over such experiments, for each "
        "detector by itself, not for the best of them; beside it stands the true share of this "
        "one, with its interval.",
    )
    sentences = [
        *(
            f"{_listed(own, names)}: calibrated by {with_noun(count, 'non-member')} of the tune "
            f"split in {with_noun(groups, 'group')}; so no p-value is below {smallest:.3f}"
            f"{', and nothing can be flagged' if smallest > own[0]['level'] else ''}."
            for (count, groups, smallest), own in calibrations.items()
        ),
        f"Nothing is flagged by {_listed(none, names)}: too few rows score above what calibrates "
        "them. More non-members in the tune split (detect.tune_share) make smaller p-values."
        if none
        else "",
        *(_flagged_control(flagged, model, level) for model in _CONTROLS),
    ]
    return present(table, [Note(sentence, "how") for sentence in sentences if sentence])


def _listed(rows: Sequence[Row], names: Names) -> str:
    return ", ".join(names.get(row["detector"], row["detector"]) for row in rows)


def _flagged_texts(row: Row, names: Names) -> tuple[str, ...]:
    role = " (an upper bound)" if row["detector"] in UPPER_BOUNDS else ""
    found = "" if isnan(row["members_found"]) else f"{100 * row['members_found']:.0f} %"
    return (
        names.get(row["detector"], row["detector"]) + role,
        f"{row['flagged']:,} of {row['n_members'] + row['n_nonmembers']:,}",
        f"{row['flagged_nonmembers']:,}",
        f"{100 * row['false_share']:.0f} % ({100 * row['low']:.0f} to {100 * row['high']:.0f})",
        found,
    )


def _flagged_control(flagged: pa.Table, model: str, level: str) -> str:
    """Say what is flagged on a model that saw no member, where all of it is wrong."""
    own = _rows(flagged, {"model": model} | _ALL)
    if not own:
        return ""
    wrong: dict[str, int] = {}
    for row in own:
        if row["flagged"]:
            wrong[row["detector"]] = wrong.get(row["detector"], 0) + row["flagged"]
    counts = ", ".join(f"{detector} ({count:,})" for detector, count in wrong.items())
    detectors = len({row["detector"] for row in own})
    outcome = f"none of {detectors} detectors flags a row."
    if wrong:
        outcome = (
            f"{len(wrong)} of {detectors} detectors flag rows: {counts}; each does so by chance "
            f"in at most {level} of such experiments."
        )
    return (
        f"On {_CONTROLS[model]}, which saw no member and where each flagged row is wrong, {outcome}"
    )
