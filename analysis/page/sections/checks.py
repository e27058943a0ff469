"""Validity checks: every check with its number, the requirement of a pass, and its evidence."""

from collections.abc import Sequence
from math import nan

from analysis.checks.chance import CHANCE
from analysis.checks.check import NEEDED, Check
from analysis.page.drawing.matrix import AxisHeading, Matrix, MatrixAxis
from analysis.page.drawing.picture import Picture, picture
from analysis.page.inputs import PageInputs
from analysis.page.parts import Badge, Badges, Fold, Part, Section, answer, folded
from analysis.page.streams import share_sentence
from analysis.page.table import PROTECTED, Table, TableColumn, facts, numbers, texts
from analysis.page.view import capital, setting_words
from analysis.unit import AUC, Dot, Entry
from inject.overlap.filter import OverlapFacts
from inject.overlap.index import Overlap

_ANCHOR = "checks"
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
_AXIS = MatrixAxis(
    0.0, 1.0, 0.5, ((0.0, "0"), (0.25, ".25"), (0.5, ".5"), (0.75, ".75"), (1.0, "1")),
    zone=(NEEDED.low, NEEDED.high),
)  # fmt: skip
_MAX_ROWS = 10
"""Of one check."""
MAX_OVERLAPS = 30
MAX_UNCHECKED = 200
_SHORT_NAMES = {
    "streams": "Training streams",
    "fed": "Training input",
    "background": "Background",
    "no copy": "No copy drawn",
}


def checks_section(checks: Sequence[Check], inputs: PageInputs) -> Section | None:
    """Return the sentence, the picture of the AUCs expected to be 0.5, and all verdicts."""
    failed = audits_parts([check for check in checks if check.verdict == "failed"])
    return answer(
        _ANCHOR,
        "Checks",
        "Validity checks",
        f"{verdict_sentence(checks)} {share_sentence(inputs.streams)}".strip(),
        _picture(checks, {check.name: check.title for check in inputs.detectors}),
        Table(
            title=capital(f"{_count(len(checks))} checks"),
            columns=(*texts("Check", "Verdict"), TableColumn("Results", long=True)),
            rows=tuple(
                (
                    check.name,
                    Entry(check.verdict_line, strong=check.verdict == "failed"),
                    check.sentence,
                )
                for check in checks
            ),
            caption="Failed: an AUC is farther from 0.5 than chance, corrected for their number. "
            "All AUCs, and the report of each audit, are on the page of methods.",
        ),
        extra=[folded("Reports of the failed audits", failed)],
    )


def badges(checks: Sequence[Check]) -> Badges:
    """Return a badge a check: its verdict, its number, and what a pass needs."""
    return Badges(
        [
            Badge(_SHORT_NAMES.get(check.key, check.name), check.verdict, _badge_lines(check))
            for check in checks
        ],
        _ANCHOR,
    )


def _badge_lines(check: Check) -> list[str]:
    if check.verdict == "not measured":
        return [check.verdict, "nothing to measure"]
    if check.room is not None:
        return [
            f"{check.verdict}: {check.room.low:.2f}–{check.room.high:.2f}",
            f"a pass needs {NEEDED.low:.2f}–{NEEDED.high:.2f}",
        ]
    if check.key == "background":
        return [
            f"{check.verdict}: {check.n_failed:,} of {check.total:,}",
            "documents overlap (needs 0)",
        ]
    noun = "copies, token for token" if check.key == "fed" else "copies found (needs all)"
    return [f"{check.verdict}: {check.total - check.n_failed:,} of {check.total:,}", noun]


def verdict_sentence(checks: Sequence[Check]) -> str:
    """Return the numbers of checks that passed, failed, were inconclusive, or were not measured."""
    words = {
        "passed": "",
        "failed": "failed: ",
        "cannot tell": "no bias detected; too few rows to rule it out: ",
        "not measured": "not measured: ",
    }
    named = {
        verdict: [check.name for check in checks if check.verdict == verdict] for verdict in words
    }
    passed = f"{_count(len(named.pop('passed')))} of {_count(len(checks))} checks passed"
    clauses = [f"{words[verdict]}{', '.join(names)}" for verdict, names in named.items() if names]
    return capital(f"{'; '.join([passed, *clauses])}.")


def _count(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number}"


def _picture(checks: Sequence[Check], titles: dict[str, str]) -> Picture | None:
    """Return the AUCs expected to be 0.5, and the range that each check cannot exclude."""
    rows: list[AxisHeading] = []
    dots: list[Dot | None] = []
    for check in checks:
        if (room := check.room) is None:
            continue
        ends = f"{room.low:.2f}–{room.high:.2f}"
        hover = f"{check.name}: {ends}, {check.verdict}"
        rows.append(AxisHeading(check.name, "head"))
        dots.append(Dot(nan, room.low, room.high, hover, ends, bold=True))
        pooled = [row for row in check.rows if row.pooled and row.auc.available]
        for row in sorted(pooled, key=lambda row: -abs(row.auc.value - CHANCE))[:_MAX_ROWS]:
            name, setting = row.row["detector"], setting_words(row.row["setting"])
            rows.append(AxisHeading(f"{titles.get(name, name)} {setting}".rstrip()))
            dots.append(AUC.dot(f"{check.name}, {row.label}", row.auc))
    matrix = Matrix(
        rows=rows,
        columns=[(AxisHeading(""), dots)],
        axis=_AXIS,
        label="; ".join(dot.hover for dot in dots if dot and dot.bold),
    )
    caption = (
        "Dots: AUCs with individual 95 % intervals, farthest from 0.5 first. Thick: "
        "the range that a check cannot exclude, from the lowest to the highest of all "
        f"its intervals, including 0.5 unless it failed; the zone, {NEEDED.low:.1f} to "
        f"{NEEDED.high:.1f}, is what a pass requires."
    )
    title = "AUCs expected to be 0.5"
    return picture("chance", title, caption, matrix if rows else None, 560)


def checks_tables(checks: Sequence[Check]) -> list[Table]:
    """Return all intervals that the checks of AUCs use."""
    return [
        Table(
            title=f"{check.name}: every AUC",
            columns=(TableColumn("Over"), *numbers("AUC", "n")),
            rows=tuple(
                (
                    Entry(row.label, strong=row.pooled),
                    AUC.entry(row.auc),
                    f"{row.auc.members:,} + {row.auc.nonmembers:,}",
                )
                for row in check.rows
            ),
            caption="Individual intervals. Bold: over all datasets. n: members + non-members.",
            style="stack listing",
        )
        for check in checks
        if check.rows
    ]


def audits_parts(checks: Sequence[Check]) -> list[Part]:
    """Return the reports of the audits: common to all streams, and per stream."""
    parts: list[Part] = []
    for check in checks:
        if check.facts:
            alike = " (all alike)" if check.streams is not None else ""
            named = [(f"{name}{alike}", value) for name, value in check.facts]
            parts.append(facts(check.name, named))
        if check.streams is not None and check.streams.columns:
            parts.append(
                Table(
                    title=f"{check.name}, by stream",
                    columns=(TableColumn("Trained"), *numbers(*check.streams.columns)),
                    rows=tuple((label, *values) for label, values in check.streams.rows),
                    style="stack listing",
                )
            )
    return parts


def background_parts(overlaps: Sequence[Overlap], audit: OverlapFacts) -> list[Part]:
    """Return the counts of a background's audit, the longest overlaps, and unsought rows."""
    if not audit.offending:
        outcome = "No document overlaps with a row."
    elif audit.dropped:
        outcome = f"{audit.dropped:,} documents overlap and were left out of the corpus."
    else:
        outcome = f"{audit.offending:,} documents overlap and were kept, as configured."
    few = len(audit.unchecked)
    if few:
        outcome += (
            f" {few:,} of the rows {'has' if few == 1 else 'have'} too few "
            "words to be searched for: whether the background contains them is unknown. They "
            "are listed below."
        )
    parts: list[Part] = [
        f"{audit.documents:,} documents ({audit.bytes / 1e6:,.1f} MB) were compared with "
        f"{audit.examples:,} rows of the datasets, by the rule: {audit.rules}. {outcome}"
    ]
    ranked = sorted(
        overlaps, key=lambda overlap: (-overlap.words, overlap.place, overlap.example_id)
    )
    if ranked:
        parts.append(_overlaps_table(ranked[:MAX_OVERLAPS]))
    if len(ranked) > MAX_OVERLAPS:
        more = len(ranked) - MAX_OVERLAPS
        parts.append(f"{more:,} more are listed in the corpus's overlaps.parquet.")
    if few:
        parts.append(Fold(f"Rows not searched for: {few:,}", _unchecked_rows(audit)))
    return parts


def _overlaps_table(overlaps: Sequence[Overlap]) -> Table:
    return Table(
        columns=(
            *texts("Document", "Example"),
            *numbers("Words", "Similarity"),
            TableColumn("Shared text", long=True),
        ),
        rows=tuple(
            (
                Entry(overlap.place, notes=(overlap.rule,)),
                Entry(f"{overlap.dataset}, {overlap.part}", notes=(overlap.example_id,)),
                str(overlap.words),
                f"{overlap.similarity:.2f}",
                PROTECTED if overlap.text is None else overlap.text,
            )
            for overlap in overlaps
        ),
        style="stack examples",
    )


def _unchecked_rows(audit: OverlapFacts) -> list[Part]:
    table = Table(
        columns=(*texts("Dataset", "Row", "Example"), *numbers("Words")),
        rows=tuple(
            (row.dataset, row.source_id, row.example_id, f"{row.words:.1f}")
            for row in audit.unchecked[:MAX_UNCHECKED]
        ),
    )
    more = len(audit.unchecked) - MAX_UNCHECKED
    more_note = f"{more:,} more are listed in the corpus's overlaps.json."
    return [table, more_note] if more > 0 else [table]
