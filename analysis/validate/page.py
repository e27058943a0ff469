"""A validation for people and for programs: a page, and plain JSON values.

The page is one self-contained HTML file, in the look of a run's report.

Styles and the picture are inside, there is no script, and a content security policy forbids loading
anything. Every text is escaped.
"""

from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from analysis.findings import Row
from analysis.intervals.estimate import Estimate
from analysis.page.crossed import AUC, DIFFERENCE, estimate_of
from analysis.page.drawing.elements import Dot
from analysis.page.drawing.matrix import (
    Matrix,
    MatrixColumn,
    MatrixRow,
    auc_axis,
)
from analysis.page.drawing.picture import Picture, picture
from analysis.page.grids import copies_tables, dataset_tables
from analysis.page.parts import (
    Card,
    Cards,
    Heading,
    Items,
    Note,
    Part,
    Section,
    present,
    render_page,
)
from analysis.page.table import NOTHING, Column, Entry, Table, facts, numbers, with_noun
from analysis.summary import auc_text
from analysis.validate.checks import interval_text
from analysis.validate.ranking import Difference, Ranked
from analysis.validate.validation import Judged, Validation
from inject.files import write_text
from inject.secrets import masked


def write_page(path: Path, found: Validation) -> Path:
    """Write the page of a validation to a file, whole or not at all; return its path."""
    write_text(path, render(found))
    return path


def render(found: Validation) -> str:
    """Return the page as text."""
    of_arms = f" (1 of {len(found.arms)} arms)" if len(found.arms) > 1 else ""
    sections = (
        Section(
            "ranking",
            "Ranking",
            "Where it stands",
            present(
                [
                    Note(f"Not judged ({one.kind}): {one.name}. {masked(one.problem)}", "note loud")
                    for one in found.refused
                ],
                ranking_table(found),
            ),
        ),
        Section(
            "checks",
            "Checks",
            "What the checks find",
            [part for one in found.judged for part in _checks(one)],
        ),
        Section(
            "differences",
            "Differences",
            "Against each detector",
            [differences_table(found, one.name) for one in found.judged],
        ),
        Section("parts", "By dataset and copies", "By dataset and copies", [*_parts(found)]),
        Section("provenance", "Provenance", "Provenance", [_provenance(found)]),
    )
    return render_page(
        "spikein validation",
        ", ".join(one.name for one in found.judged) or "No detector could be judged",
        [
            *(_sentence(found, one) for one in found.judged),
            f"Ground truth: {found.name}, arm {found.arm}{of_arms}. Settings are chosen on the "
            "tune split, everything is measured on the test split.",
        ],
        [section for section in sections if section.parts],
        first=present(ranking_picture(found)),
    )


def ranking_table(found: Validation) -> Table:
    """Return all detectors of the arm, the highest AUC first."""
    lines = found.ranking.lines
    rates = [
        rate
        for rate in found.settings.false_positive_rates
        if any(row is not None and isfinite(row["value"]) for row in (x.tpr[rate] for x in lines))
    ]
    return Table(
        title="Ranking",
        columns=(
            Column("Detector"),
            *numbers("Rank", "AUC", "Rows", *(f"TPR at {100 * rate:g}% FPR" for rate in rates)),
        ),
        rows=tuple(
            (
                Entry(line.detector, notes=_about(line)),
                NOTHING if line.rank is None else str(line.rank),
                AUC.entry(line.auc, best=line.judged),
                _rows_of(line.auc, "(own)" if line.own_rows else ""),
                *(AUC.entry(line.tpr[rate], best=line.judged) for rate in rates),
            )
            for line in lines
        ),
        caption="By AUC; a TPR at a false-positive rate t is shown from 10 / t non-members on. "
        "Controls and upper bounds have no rank.",
    )


def _about(line: Ranked) -> tuple[str, ...]:
    setting = "" if line.setting == "-" else line.setting
    return tuple(part for part in ("judged" if line.judged else "", setting, line.role) if part)


def _rows_of(shown: Estimate | Row | None, remark: str) -> str:
    if shown is None:
        return ""
    counted = estimate_of(shown)
    return f"{counted.members:,} + {counted.nonmembers:,} {remark}".rstrip()


def _checks(one: Judged) -> list[Part]:
    """Return what the checks of one detector find: what is to be looked at, then what passed."""
    cards = [
        Card(
            finding.check,
            "failed" if finding.severity == "wrong" else "",
            finding.severity,
            masked(finding.found),
            present(finding.meaning, finding.action),
        )
        for finding in one.findings
        if finding.severity != "passed"
    ]
    passed = [
        f"{finding.check}, passed: {finding.found}"
        for finding in one.findings
        if finding.severity == "passed"
    ]
    arms = Table(
        title="In every arm",
        columns=(Column("Arm"), *numbers("AUC")),
        rows=tuple((arm, AUC.entry(cell)) for arm, cell in one.arms),
        caption=f"The same setting, on the rows that {one.name} can score.",
    )
    return present(
        Heading(one.name),
        Note(f"{one.candidate.takes}; {one.seconds:.2g} s for 1,000 rows.", "how"),
        Cards(cards),
        Items(passed),
        [Note(masked(note)) for note in one.notes],
        arms if len(one.arms) > 1 else None,
    )


def differences_table(found: Validation, name: str) -> Table:
    """Return the paired differences of one judged detector to all others."""
    every = (found.ranking.difference(name, line.detector) for line in found.ranking.lines)
    measured = [one for one in every if one is not None and isfinite(one.estimate.value)]
    return Table(
        title=f"AUC of {name} minus that of each other detector",
        columns=(Column("Detector"), *numbers("Difference", "Rows")),
        rows=tuple(
            (
                Entry(one.versus, notes=() if one.versus_setting == "-" else (one.versus_setting,)),
                DIFFERENCE.place(one.estimate.value, one.estimate.low, one.estimate.high),
                _rows_of(one.estimate, "(those both can score)" if one.own_rows else ""),
            )
            for one in measured
        ),
        caption="Paired: both on the same rows, with the same resamplings. Bold: the interval "
        "leaves out 0.",
    )


def _provenance(found: Validation) -> Table:
    made = found.provenance
    rows = [
        ("Ground truth", masked(found.source)),
        ("Content of the bundle", found.content),
        ("Made by", f"spikein {made.version}" + (f" ({made.code})" if made.code else "")),
        ("Run finished", str(made.finished)),
        (
            "Intervals",
            f"{100 * found.settings.confidence:g} %; AUC, TPR, differences and the checks from "
            "influence values summed by group",
        ),
    ]
    return facts("", [(name, text) for name, text in rows if text])


def ranking_picture(found: Validation) -> Picture | None:
    """Return all detectors with an AUC, the highest on top; None where none has one."""
    cells = [
        (line, Estimate.of(line.auc))
        for line in found.ranking.lines
        if line.auc and isfinite(line.auc["value"])
    ]
    if not cells:
        return None
    shared = next((cell for line, cell in cells if not line.own_rows), cells[0][1])
    apart = [line.detector for line, _ in cells if line.own_rows]
    dots = [
        Dot(cell.value, cell.low, cell.high, f"{line.detector}: AUC {interval_text(cell)}",
            text=f"{cell.value:.2f}", bold=line.judged)
        for line, cell in cells
    ]  # fmt: skip
    columns = [MatrixColumn("", dots)]
    matrix = Matrix(
        rows=[MatrixRow(line.detector, "chosen" if line.judged else "") for line, _ in cells],
        columns=columns,
        axis=auc_axis(columns),
        label="AUC by detector, the highest first: " + "; ".join(dot.hover for dot in dots),
        row_height=20.0,
    )
    caption = (
        f"All members with a copy in the arm {found.arm}; settings chosen on the tune split. "
        f"Orange: judged. Lines: {found.settings.confidence:.0%} intervals, from influence values "
        f"summed by group. {shared.members:,} members and {shared.nonmembers:,} non-members of "
        f"the test split, {with_noun(shared.seeds, 'training seed')}."
    )
    if apart:
        caption += f" On rows of their own: {', '.join(apart)}."
    return picture("ranked", "AUC by detector", caption, matrix, 900.0)


def _sentence(found: Validation, one: Judged) -> str:
    line = found.ranking.line(one.name)
    ranked = sum(1 for other in found.ranking.lines if other.rank is not None)
    wrong = [finding.check for finding in one.findings if finding.severity == "wrong"]
    if line.rank is None or line.auc is None:
        place = f"{one.name} has no AUC"
    else:
        place = (
            f"{one.name} has {auc_text(Estimate.of(line.auc))} and ranks "
            f"{line.rank} of {ranked} detectors"
        )
    if not wrong:
        return f"{place}; the checks find nothing wrong."
    return f"{place}; the checks find something wrong: {', '.join(wrong)}."


def _parts(found: Validation) -> list[Table]:
    names = [line.detector for line in found.ranking.lines]
    table = found.ranking.table
    return [*dataset_tables(table, names), *copies_tables(table, names)]


def plain_validation(found: Validation) -> dict[str, Any]:
    """Return everything that a validation says; what could not be measured is null."""
    return {
        "experiment": found.name,
        "source": found.source,
        "content": found.content or None,
        "provenance": found.provenance.model_dump(mode="json"),
        "arm": found.arm,
        "arms": list(found.arms),
        "confidence": found.settings.confidence,
        "ranking": [_line(one) for one in found.ranking.lines],
        "metrics": [_finite(row) for row in found.ranking.metrics.to_pylist()],
        "differences": [_difference(one) for one in found.ranking.differences],
        "detectors": [_judged(one) for one in found.judged],
        "refused": [asdict(one) for one in found.refused],
    }


def _line(one: Ranked) -> dict[str, Any]:
    return {
        "rank": one.rank,
        "detector": one.detector,
        "setting": one.setting,
        "selection": one.selection,
        "judged": one.judged,
        "role": one.role or None,
        "own_rows": one.own_rows,
        "auc": _cell(one.auc),
        "tpr": {f"{rate:g}": _cell(cell) for rate, cell in one.tpr.items()},
    }


def _judged(one: Judged) -> dict[str, Any]:
    return {
        "detector": one.name,
        "given": one.candidate.given,
        "takes": one.candidate.takes,
        "seconds_per_thousand_rows": one.seconds,
        "findings": [finding._asdict() for finding in one.findings],
        "arms": {arm: _cell(cell) for arm, cell in one.arms},
        "notes": list(one.notes),
    }


def _difference(one: Difference) -> dict[str, Any]:
    plain = one._asdict()
    estimate = plain.pop("estimate")
    return {**plain, **_finite({**estimate.columns(), **estimate.counts()})}


def _cell(row: Row | None) -> dict[str, Any] | None:
    return None if row is None else _finite(row)


def _finite(values: Row) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not isfinite(value) else value
        for name, value in values.items()
    }
