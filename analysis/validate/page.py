"""A validation for people: its page.

The page is one self-contained HTML file, in the look of a run's report.

Styles and the picture are inside, there is no script, and a content security policy forbids loading
anything. Every text is escaped.
"""

from collections.abc import Collection
from math import isfinite
from pathlib import Path

from analysis.findings import Row
from analysis.intervals.estimate import Estimate
from analysis.metrics import tpr_name
from analysis.page.drawing.matrix import (
    Matrix,
    MatrixColumn,
    MatrixRow,
    auc_axis,
)
from analysis.page.drawing.picture import Picture, picture
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
from analysis.page.sections.copies import copies_tables, dataset_tables
from analysis.page.table import Column, Table, facts, numbers, with_noun
from analysis.summary import auc_text
from analysis.unit import AUC, DIFFERENCE, NOTHING, Dot, Entry
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
    lines, table = found.ranking.lines.rows, found.ranking.table
    judged = {one.name for one in found.judged}
    tprs = {
        rate: [
            table.row(detector=line["detector"], selection=line["selection"], metric=tpr_name(rate))
            for line in lines
        ]
        for rate in found.settings.false_positive_rates
    }
    tprs = {
        rate: rows
        for rate, rows in tprs.items()
        if any(row is not None and isfinite(row["value"]) for row in rows)
    }
    return Table(
        title="Ranking",
        columns=(
            Column("Detector"),
            *numbers("Rank", "AUC", "Rows", *(f"TPR at {100 * rate:g}% FPR" for rate in tprs)),
        ),
        rows=tuple(
            (
                Entry(line["detector"], notes=_about(line, judged)),
                str(line["rank"] or NOTHING),
                AUC.entry(line, best=line["detector"] in judged),
                _rows_of(line, "(own)" if line["own_rows"] else ""),
                *(AUC.entry(row, best=line["detector"] in judged) for row in rates),
            )
            for line, *rates in zip(lines, *tprs.values(), strict=True)
        ),
        caption="By AUC; a TPR at a false-positive rate t is shown from 10 / t non-members on. "
        "Controls and upper bounds have no rank.",
    )


def _about(line: Row, judged: Collection[str]) -> tuple[str, ...]:
    setting = "" if line["setting"] == "-" else line["setting"]
    told = "judged" if line["detector"] in judged else ""
    return tuple(part for part in (told, setting, line["role"]) if part)


def _rows_of(row: Row, remark: str) -> str:
    return f"{row['n_members']:,} + {row['n_nonmembers']:,} {remark}".rstrip()


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
    gaps = found.ranking.differences
    every = (gaps.row(detector=name, versus=line["detector"]) for line in found.ranking.lines.rows)
    return Table(
        title=f"AUC of {name} minus that of each other detector",
        columns=(Column("Detector"), *numbers("Difference", "Rows")),
        rows=tuple(
            (
                Entry(
                    gap["versus"],
                    notes=() if gap["versus_setting"] == "-" else (gap["versus_setting"],),
                ),
                DIFFERENCE.place(gap["value"], gap["low"], gap["high"]),
                _rows_of(gap, "(those both can score)" if gap["own_rows"] else ""),
            )
            for gap in every
            if gap is not None and isfinite(gap["value"])
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
    """Return all detectors with an AUC, the highest on top; None if none has one."""
    lines = [row for row in found.ranking.lines.rows if isfinite(row["value"])]
    if not lines:
        return None
    judged = {one.name for one in found.judged}
    shared = Estimate.of(next((row for row in lines if not row["own_rows"]), lines[0]))
    apart = [row["detector"] for row in lines if row["own_rows"]]
    dots = [
        Dot(row["value"], row["low"], row["high"],
            f"{row['detector']}: AUC {Estimate.of(row).text()}",
            text=f"{row['value']:.2f}", bold=row["detector"] in judged)
        for row in lines
    ]  # fmt: skip
    columns = [MatrixColumn("", dots)]
    matrix = Matrix(
        rows=[
            MatrixRow(row["detector"], "chosen" if row["detector"] in judged else "")
            for row in lines
        ],
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
    ranked = max(row["rank"] for row in found.ranking.lines.rows)
    wrong = [finding.check for finding in one.findings if finding.severity == "wrong"]
    place = f"{one.name} has no AUC"
    if line["rank"]:
        place = (
            f"{one.name} has {auc_text(Estimate.of(line))} and ranks {line['rank']} of {ranked} "
            "detectors"
        )
    if not wrong:
        return f"{place}; the checks find nothing wrong."
    return f"{place}; the checks find something wrong: {', '.join(wrong)}."


def _parts(found: Validation) -> list[Table]:
    names = found.ranking.lines.values("detector")
    table = found.ranking.table
    return [*dataset_tables(table, names), *copies_tables(table, names)]
