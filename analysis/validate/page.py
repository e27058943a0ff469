"""The report page of a validation, and the sections that a terminal also shows.

The page is one self-contained HTML file, in the look of a run's report.

Styles and the picture are inside, there is no script, and a content security policy forbids loading
anything. Every text is escaped.
"""

from math import isfinite
from pathlib import Path

from analysis.findings import Row
from analysis.intervals.estimate import Estimate
from analysis.metrics import tpr_name
from analysis.page.crossed import AxisHeading, cross
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Note, Part, Section, present, render_page
from analysis.page.sections.copies import copies_tables, dataset_tables
from analysis.page.table import Table, TableColumn, facts, numbers, texts, with_noun
from analysis.summary import auc_text
from analysis.unit import AUC, DIFFERENCE, NOTHING, Entry
from analysis.validate.validation import CandidateResult, Validation
from inject.files import write_text
from inject.secrets import masked

PROVENANCE = "provenance"
"""Anchor of the section that only a page needs."""


def write_page(path: Path, validation: Validation) -> Path:
    """Write the page of a validation to a file, whole or not at all; return its path."""
    write_text(path, render(validation))
    return path


def render(validation: Validation) -> str:
    """Return the page as text."""
    refused: list[Part] = [
        Note(f"Not judged ({refusal.kind}): {refusal.name}. {masked(refusal.problem)}", "note loud")
        for refusal in validation.refused
    ]
    return render_page(
        "spikein validation",
        ", ".join(result.name for result in validation.judged) or "No detector could be judged",
        sentences(validation),
        sections(validation),
        first=present(refused, ranking_picture(validation)),
    )


def sentences(validation: Validation) -> list[str]:
    """Return the rank of each detector and whether anything is wrong, then the basis of that."""
    of_arms = f" (1 of {len(validation.arms)} arms)" if len(validation.arms) > 1 else ""
    return [
        *(_sentence(validation, result) for result in validation.judged),
        f"Ground truth: {validation.name}, arm {validation.arm}{of_arms}. Settings are chosen on "
        "the tuning split, everything is measured on the test split.",
    ]


def _sentence(validation: Validation, result: CandidateResult) -> str:
    line = validation.ranking.line(result.name)
    ranked = max(row["rank"] for row in validation.ranking.lines.rows)
    wrong = [finding.check for finding in result.findings if finding.severity == "wrong"]
    checks = f"find something wrong: {', '.join(wrong)}" if wrong else "find nothing wrong"
    place = "no AUC"
    if line["rank"]:
        rank = f"ranks {line['rank']} of {ranked} detectors"
        place = f"{auc_text(Estimate.of(line))} and {rank}"
    return f"{result.name} has {place}; the checks {checks}."


def sections(validation: Validation) -> list[Section]:
    """Return the sections of the page that have something to show."""
    names, table = validation.ranking.lines.values("detector"), validation.ranking.table
    all_sections = (
        Section("ranking", "Ranking", "Its rank", [ranking_table(validation)]),
        Section(
            "checks",
            "Checks",
            "Results of the checks",
            [part for result in validation.judged for part in _checks(result)],
        ),
        Section(
            "differences",
            "Differences",
            "Against each detector",
            [differences_table(validation, result.name) for result in validation.judged],
        ),
        Section(
            "parts",
            "By dataset and copies",
            "By dataset and copies",
            [*dataset_tables(table, names), *copies_tables(table, names)],
        ),
        Section(PROVENANCE, "Provenance", "Provenance", [_provenance(validation)]),
    )
    return [section for section in all_sections if section.parts]


def ranking_table(validation: Validation) -> Table:
    """Return all detectors of the arm, the highest AUC first."""
    lines, table = validation.ranking.lines.rows, validation.ranking.table
    judged = {result.name for result in validation.judged}
    rates = {}
    for rate in validation.settings.false_positive_rates:
        places = ({name: line[name] for name in ("detector", "selection")} for line in lines)
        rows = [table.row(metric=tpr_name(rate), **place) for place in places]
        if any(row is not None and isfinite(row["value"]) for row in rows):
            rates[f"TPR at {100 * rate:g}% FPR"] = rows
    return Table(
        title="Ranking",
        columns=(TableColumn("Detector"), *numbers("Rank", "AUC", "Rows", *rates)),
        rows=tuple(
            (
                _head(line["detector"], "judged" if line["detector"] in judged else "",
                      _setting(line["setting"]), line["role"]),
                str(line["rank"] or NOTHING),
                AUC.entry(line, best=line["detector"] in judged, lacking=AUC.brief(line)),
                _rows_of(line, "(own)" if line["own_rows"] else ""),
                *(AUC.entry(row, best=line["detector"] in judged) for row in of_rates),
            )
            for line, *of_rates in zip(lines, *rates.values(), strict=True)
        ),
        caption="By AUC; a TPR at a false-positive rate t is shown from 10 / t non-members on. "
        "Controls and upper bounds have no rank.",
    )  # fmt: skip


def _head(detector: str, *notes: str) -> Entry:
    return Entry(detector, notes=tuple(filter(None, notes)))


def _setting(setting: str) -> str:
    return "" if setting == "-" else setting


def _rows_of(row: Row, remark: str) -> str:
    return f"{row['n_members']:,} + {row['n_nonmembers']:,} {remark}".rstrip()


def _checks(result: CandidateResult) -> list[Part]:
    """Return the results of one detector's checks, the worst first."""
    checks = Table(
        title=f"Checks of {result.name}",
        columns=(*texts("Check", "Verdict"), TableColumn("Result", long=True)),
        rows=tuple(
            (
                finding.check,
                Entry(finding.severity, strong=finding.severity == "wrong"),
                masked(finding.text),
            )
            for finding in result.findings
        ),
        caption=f"{result.candidate.takes}; {result.seconds:.2g} s for 1,000 rows.",
        style="stack listing",
    )
    arms = Table(
        title="In every arm",
        columns=(TableColumn("Arm"), *numbers("AUC")),
        rows=tuple((arm, AUC.entry(cell)) for arm, cell in result.arms),
        caption=f"The same setting, on the rows that {result.name} can score.",
    )
    return present(
        checks,
        [Note(masked(note)) for note in result.notes],
        arms if len(result.arms) > 1 else None,
    )


def differences_table(validation: Validation, name: str) -> Table:
    """Return the paired differences of one judged detector to all others."""
    gaps, lines = validation.ranking.differences, validation.ranking.lines.rows
    gap_rows = (gaps.row(detector=name, versus=line["detector"]) for line in lines)
    return Table(
        title=f"AUC of {name} minus that of each other detector",
        columns=(TableColumn("Detector"), *numbers("Difference", "Rows")),
        rows=tuple(
            (
                _head(gap["versus"], _setting(gap["versus_setting"])),
                DIFFERENCE.place(gap["value"], gap["low"], gap["high"]),
                _rows_of(gap, "(those both can score)" if gap["own_rows"] else ""),
            )
            for gap in gap_rows
            if gap is not None and isfinite(gap["value"])
        ),
        caption="Paired: both on the same rows, with the same resamplings. Bold: the interval "
        "excludes 0.",
    )


def _provenance(validation: Validation) -> Table:
    provenance = validation.provenance
    rows = [
        ("Ground truth", masked(validation.source)),
        ("Content of the bundle", validation.content),
        (
            "Made by",
            f"spikein {provenance.version}" + (f" ({provenance.code})" if provenance.code else ""),
        ),
        ("Run finished", str(provenance.finished)),
        (
            "Intervals",
            f"{100 * validation.settings.confidence:g} %; AUC, TPR, differences and the checks "
            "from influence values summed by group",
        ),
    ]
    return facts("", [(name, text) for name, text in rows if text])


def ranking_picture(validation: Validation) -> Picture | None:
    """Return all detectors with an AUC, the highest on top; None if none has one."""
    lines = [row for row in validation.ranking.lines.rows if isfinite(row["value"])]
    judged = {result.name for result in validation.judged}
    matrix = cross(
        lines,
        lambda row: AxisHeading(row["detector"], "chosen" if row["detector"] in judged else ""),
        lambda row: AxisHeading(""),
        unit=AUC,
        cell=lambda row: row if Estimate.of(row).available else AUC.brief(row),
        bold=lambda row: row["detector"] in judged,
    ).matrix(row_height=20.0)
    if matrix is None:
        return None
    shared = Estimate.of(next((row for row in lines if not row["own_rows"]), lines[0]))
    apart = [row["detector"] for row in lines if row["own_rows"]]
    caption = (
        f"All members with a copy in the arm {validation.arm}; settings chosen on the tuning "
        f"split. Orange: judged. Lines: {validation.settings.confidence:.0%} intervals, from "
        f"influence values summed by group. {shared.members:,} members and {shared.nonmembers:,} "
        f"non-members of the test split, {with_noun(shared.seeds, 'training seed')}."
    )
    if apart:
        caption += f" On rows of their own: {', '.join(apart)}."
    return picture("ranked", "AUC by detector", caption, matrix, 900.0)
