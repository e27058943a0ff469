"""At low false-positive rates: which members are found, and what is decided.

Decisions are for whole datasets, and row by row with a bound on the share of errors.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite, isnan, log10, nan

import numpy as np
import pyarrow as pa

from analysis.arm import UPPER_BOUNDS, Cohort
from analysis.dataset_detectors.detector import POOLED, dataset_detector_names, get_dataset_detector
from analysis.findings import Findings, Row, group_by
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import Floats
from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Note, Part, Section, answer, folded, present
from analysis.page.table import Table, TableColumn, listing, numbers, p_text, with_noun
from analysis.page.view import LOSS, ReportView, arm_suffix, capital, short_counts
from analysis.summary import NO_NAMES, Names, auc_text
from analysis.unit import AUC, PERCENT, Dot, Entry

Rates = Mapping[float, Mapping[str, Estimate | None]]
"""By false-positive rate and detector: the share of members found."""
_OPEN_ROWS = 8
_MAX_CURVES = 9
_TICKS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
_CONTROLS = {"base": "the base model", "twin": "the clean twin"}
_ALL = {"dataset": POOLED}


def rates_section(view: ReportView) -> Section | None:
    """Return the section: a sentence, ROC curves, the table, and folded decision tables."""
    best, analysis = view.best, view.inputs.analysis
    metrics = [name for name in best.table.values("metric") if name.startswith("tpr@")]
    rates = {float(name.removeprefix("tpr@")): name for name in metrics}
    cells = {
        rate: {name: best.table.reported(name, metric=metric) for name in view.models_only}
        for rate, metric in sorted(rates.items())
    }
    measured = {
        rate: cells_at_rate
        for rate, cells_at_rate in cells.items()
        if any(cell and cell.available for cell in cells_at_rate.values())
    }
    lacking = [rate for rate in cells if rate not in measured]
    decided = flagged_parts(analysis.flagged, best.table.cohort, view.models_only, view.names)
    whole = dataset_findings(analysis.datasets, best.table.cohort)
    # Too few non-members for a table leave curves that support no rate.
    curves = _picture(view, min(measured, default=0.0))
    return answer(
        "rates",
        "False positives",
        "At low false-positive rates",
        _sentence(view, measured, lacking),
        curves if measured else None,
        _table(view, measured, lacking),
        extra=[
            folded("ROC curves", present(curves) if not measured else []),
            folded("False-discovery-rate control", decided),
            folded("Tests of whole datasets", whole),
        ],
        open_rows=_OPEN_ROWS,
        others="detectors",
    )


def _percent(rate: float) -> str:
    return f"{rate * 100:g} %"


def _sentence(view: ReportView, measured: Rates, lacking: Sequence[float]) -> str:
    shares = [
        (_percent(rate), f"{PERCENT.number(cell.value)} % {PERCENT.ends(cell.low, cell.high)}")
        for rate, cells in measured.items()
        if (cell := cells.get(view.best.detector)) and cell.available
    ][:2]
    rate_clauses = [
        f"with {rate}, {share}"
        if at
        else f"with {rate} false positives {view.name} detects {share} of the members"
        for at, (rate, share) in enumerate(shares)
    ]
    others = view.best.cell.nonmembers
    clauses = [", ".join(rate_clauses)] if rate_clauses else []
    if lacking:
        *rates, last = map(_percent, lacking)
        named = f"{', '.join(rates)} or {last}" if rates else last
        clauses.append(f"{others:,} non-members are too few for {named}")
    return f"{capital('; '.join(clauses))}." if clauses else ""


def _table(view: ReportView, measured: Rates, lacking: Sequence[float]) -> Table | None:
    """Return the share of members found, `loss` among the first rows."""
    if not measured:
        return None
    names = [
        name for name in view.models_only if any(cells.get(name) for cells in measured.values())
    ]
    if LOSS in names[_OPEN_ROWS:]:
        names.remove(LOSS)
        names.insert(_OPEN_ROWS - 1, LOSS)
    needs = ", ".join(f"{_percent(rate)} would need {10 / rate:,.0f}" for rate in lacking)
    return Table(
        title="True-positive rate",
        columns=(
            TableColumn("Detector"),
            *numbers(*(f"at {_percent(rate)} false positives" for rate in measured)),
        ),
        rows=tuple(
            (
                Entry(view.title(name), kind=view.kind(name)),
                *(AUC.entry(cells[name], lacking="n too small") for cells in measured.values()),
            )
            for name in names
        ),
        caption=f"{view.where}{short_counts(view.best.cell)}; one threshold for each dataset."
        + (f" Non-members: {needs}." if needs else ""),
        style="detectors",
    )


def _picture(view: ReportView, floor: float) -> Picture | None:
    """Return the ROC curves: the chosen detector, `loss`, the others faint.

    Each point is a threshold within each dataset; members have at least one copy.

    Args:
        view: of the run.
        floor: the lowest rate, from which on the axis goes by logarithms; 0 for linear axes.
    """
    curves = _curves(view)
    lines = [
        Line(_steps(exceeded, floor), view.kind(name) or "faint", marks=False)
        for name, exceeded in reversed(curves.items())
    ]
    ticks = [rate for rate in _TICKS if rate >= floor] if floor else [at / 4 for at in range(5)]
    panels = Panels(
        panels=[LinePanel("", lines)],
        x=[(log10(rate) if floor else rate, _percent(rate)) for rate in ticks],
        y=[(at / 4, f"{25 * at} %") for at in range(5)],
        centre=0.0,
        x_label="non-members flagged (false-positive rate)",
        label=f"ROC curves of {len(lines)} detectors from {_percent(floor)} false positives on; "
        f"{view.name} has {auc_text(view.best.cell)}",
        height=300.0,
    )
    caption = f"True-positive rate. Orange: {view.name}; dashed: Loss; grey: the others. "
    caption += short_counts(view.best.cell)
    if floor:
        caption += f"; from {_percent(floor)} on, the lowest rate that so many non-members support."
    rows = [
        {"detector": name, "false_positive_rate": x, "true_positive_rate": y}
        for name, exceeded in curves.items()
        for x, y in _points(exceeded)
    ]
    return picture("roc", "ROC curves", caption, panels if lines else None, 560, rows)


def _curves(view: ReportView) -> dict[str, Floats]:
    """Return of each detector, per member, the share of its dataset's non-members above it."""
    names = [view.best.detector, *(name for name in view.shown if not view.kind(name))]
    curves = names[: _MAX_CURVES - 1]
    curves[1:1] = [LOSS] if LOSS in view.shown and view.best.detector != LOSS else []
    rows = {name: view.rows(name) for name in curves}
    spiked = {name: each.exceeded[each.copies > 0] for name, each in rows.items()}
    return {name: np.sort(exceeded) for name, exceeded in spiked.items() if len(exceeded)}


def _points(exceeded: Floats) -> list[tuple[float, float]]:
    """Return false-positive rates from 0 to 1, with the true-positive rate at each."""
    grid = np.unique(np.concatenate([[0.0, 1.0], exceeded]))
    shares = np.searchsorted(exceeded, grid, side="right") / len(exceeded)
    return [(0.0, 0.0), *zip(grid.tolist(), shares.tolist(), strict=True)]


def _steps(exceeded: Floats, floor: float) -> list[tuple[float, Dot]]:
    """Return a curve of steps from the lowest rate on."""
    points = _points(exceeded)
    steps = [(floor, max(y for x, y in points if x <= floor))]
    for x, y in points:
        if x > floor:
            steps += [(x, steps[-1][1]), (x, y)]
    return [(log10(x) if floor else x, Dot(y, nan, nan, "")) for x, y in steps]


def dataset_findings(datasets: pa.Table, cohort: Cohort) -> list[Part]:
    """Return the findings on the headline's arm, then those on models that saw no copy.

    Args:
        datasets: what dataset-level detectors found.
        cohort: the headline's arm.
    """
    columns = ("Detector", "Dataset, rows", "Seed", "Found", "p", "p (Holm)", "n", "Note")
    controls = listing(
        "The same tests on models that saw no member",
        ("Model", *columns),
        [
            (row["model"], *_finding(row))
            for row in datasets.to_pylist()
            if row["model"] in _CONTROLS
        ],
        "A control: neither p-values nor AUCs may distinguish the sides here.",
    )
    names = dataset_detector_names()
    requested = (name for name in dict.fromkeys(datasets["detector"].to_pylist()) if name in names)
    return present(
        listing(
            f"Findings on whole datasets{arm_suffix(cohort)}",
            columns,
            [_finding(row) for row in _rows(datasets, cohort.place())],
            "p-values are one-sided: small if the rows were seen. Holm: "
            "adjusted for the datasets that one detector tested. Rows 'non-members' are an unseen "
            "control: their p-values are uniform.",
        ),
        folded(controls.title, [controls]) if controls else None,
        [
            Note(
                f"{detector.name}: {detector.summary} ({detector.source}). "
                f"Assumes: {detector.assumption}.",
                "how",
            )
            for detector in map(get_dataset_detector, requested)
        ],
    )


def _rows(table: pa.Table, place: Mapping[str, str]) -> Sequence[Row]:
    return Findings(table.to_pylist()).where(**place).rows


def _finding(row: Row) -> tuple[str, ...]:
    dataset = "all datasets" if row["dataset"] == POOLED else row["dataset"]
    # The statistic with its value, and its interval if it has one.
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
    """Return the rows that an arm's detectors flag; empty if nothing calibrates them.

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
    columns = ("calibration_rows", "calibration_groups", "smallest_p")
    calibrations = group_by(rows, lambda row: tuple(row[name] for name in columns))
    # A detector whose p-values are all above the level is named with its calibration instead.
    none = [row for row in rows if not row["flagged"] and row["smallest_p"] <= row["level"]]
    table = listing(
        f"Rows flagged as members at a false-discovery rate of {level}{arm_suffix(cohort)}",
        ("Detector", "Flagged", "Non-members among them", "Their share", "Members flagged"),
        [
            _flagged_texts(row, names)
            for row in sorted(rows, key=lambda row: -(row["members_found"] or 0))
            if row["flagged"]
        ],
        "Conformal p-values and Benjamini-Hochberg over all rows of the test split, default "
        "settings (the tuned ones were chosen on the calibration rows). The rule "
        f"bounds the expected share of non-members at {level} over such experiments, for each "
        "detector individually, not for the best of them. The true share of this experiment has "
        "its own column, with its interval.",
    )
    sentences = [
        *(
            f"{_join_detectors(own, names)}: calibrated by {with_noun(count, 'non-member')} of the "
            f"tuning split in {with_noun(groups, 'group')}; so no p-value is below {smallest:.3f}"
            f"{', and nothing can be flagged' if smallest > own[0]['level'] else ''}."
            for (count, groups, smallest), own in calibrations.items()
        ),
        f"Nothing is flagged by {_join_detectors(none, names)}: too few rows score above their "
        "calibration rows. More non-members in the tuning split (detect.tune_share) make smaller "
        "p-values."
        if none
        else "",
        *(_flagged_control(flagged, model, level) for model in _CONTROLS),
    ]
    return present(table, [Note(sentence, "how") for sentence in sentences if sentence])


def _join_detectors(rows: Sequence[Row], names: Names) -> str:
    return ", ".join(names.get(row["detector"], row["detector"]) for row in rows)


def _flagged_texts(row: Row, names: Names) -> tuple[str, ...]:
    role = " (an upper bound)" if row["detector"] in UPPER_BOUNDS else ""
    members_found = "" if isnan(row["members_found"]) else f"{100 * row['members_found']:.0f} %"
    return (
        names.get(row["detector"], row["detector"]) + role,
        f"{row['flagged']:,} of {row['n_members'] + row['n_nonmembers']:,}",
        f"{row['flagged_nonmembers']:,}",
        f"{100 * row['false_share']:.0f} % ({100 * row['low']:.0f} to {100 * row['high']:.0f})",
        members_found,
    )


def _flagged_control(flagged: pa.Table, model: str, level: str) -> str:
    """Return a sentence on flagged rows of a model without members: all false positives."""
    own = _rows(flagged, {"model": model} | _ALL)
    if not own:
        return ""
    counted: Counter[str] = Counter()
    for row in own:
        counted[row["detector"]] += row["flagged"]
    # Those above zero.
    detectors, wrong = len(counted), +counted
    counts = ", ".join(f"{detector} ({count:,})" for detector, count in wrong.items())
    outcome = f"none of {detectors} detectors flags a row."
    if wrong:
        outcome = (
            f"{len(wrong)} of {detectors} detectors flag rows: {counts}; each does so by chance "
            f"in at most {level} of such experiments."
        )
    return f"On {_CONTROLS[model]}, which saw no member, each flagged row is wrong; {outcome}"
