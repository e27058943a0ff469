"""May one believe it: every check with its number, what a pass needs, and what stands behind it."""

from collections.abc import Sequence
from math import nan

from analysis.checks.chance import CHANCE
from analysis.checks.check import NEEDED, Check, CheckRow
from analysis.page.drawing.matrix import Matrix, MatrixAxis, MatrixColumn, MatrixRow
from analysis.page.drawing.picture import Picture, picture
from analysis.page.inputs import PageInputs
from analysis.page.parts import Columns, Fold, Note, Part, present
from analysis.page.streams import share_sentence
from analysis.page.table import Column, Table, facts, numbers, texts
from analysis.page.view import capital, setting_words
from analysis.summary import Names
from analysis.unit import AUC, Dot, Entry

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
_AXIS = MatrixAxis(
    0.0, 1.0, 0.5, ((0.0, "0"), (0.25, ".25"), (0.5, ".5"), (0.75, ".75"), (1.0, "1")),
    zone=(NEEDED.low, NEEDED.high),
)  # fmt: skip
_MAX_ROWS = 10
"""Of one check."""


def checks_parts(checks: Sequence[Check], inputs: PageInputs) -> list[Part]:
    """Return the sentence, the picture of the AUCs that ought to be 0.5, and all verdicts."""
    table = Table(
        title=capital(f"{_count(len(checks))} checks"),
        columns=(*texts("Check", "Verdict"), Column("What was looked at", long=True)),
        rows=tuple(
            (one.name, Entry(one.verdict_line, strong=one.verdict == "failed"), one.sentence)
            for one in checks
        ),
        caption="Failed: an AUC is farther from 0.5 than chance, corrected for their number. All "
        "AUCs, and what each audit reported, are on the page of methods.",
    )
    share = share_sentence(inputs.streams)
    names = {one.name: one.title for one in inputs.detectors}
    sentence = f"{verdict_sentence(checks)} {share}".strip()
    failed = audits_parts([one for one in checks if one.verdict == "failed"])
    return present(
        Note(sentence, "say"),
        Columns(present(_picture(checks, names), table), "answer"),
        Fold("What the audits that failed reported", failed) if failed else None,
    )


def verdict_sentence(checks: Sequence[Check]) -> str:
    """Say how many checks passed, failed, could not tell, and were not measured."""
    named = {
        verdict: [one.name for one in checks if one.verdict == verdict]
        for verdict in ("passed", "failed", "cannot tell", "not measured")
    }
    said = [f"{_count(len(named['passed']))} of {_count(len(checks))} checks passed"]
    if named["failed"]:
        said.append(f"failed: {', '.join(named['failed'])}")
    if named["cannot tell"]:
        said.append(
            f"no bias was found, but too few rows to exclude one: {', '.join(named['cannot tell'])}"
        )
    if named["not measured"]:
        said.append(f"not measured: {', '.join(named['not measured'])}")
    return capital(f"{'; '.join(said)}.")


def _count(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number}"


def _picture(checks: Sequence[Check], names: Names) -> Picture | None:
    """Return the AUCs that ought to be 0.5, and what each check leaves room for."""
    rows: list[MatrixRow] = []
    dots: list[Dot | None] = []
    for check in checks:
        pooled = [row for row in check.rows if row.pooled and row.auc.available]
        ends = check.room
        if ends is None:
            continue
        shown = f"{ends.low:.2f}–{ends.high:.2f}"
        rows.append(MatrixRow(check.name, "head"))
        dots.append(
            Dot(
                nan,
                ends.low,
                ends.high,
                f"{check.name}: {shown}, {check.verdict}",
                shown,
                bold=True,
            )
        )
        far = sorted(pooled, key=lambda row: -abs(row.auc.value - CHANCE))[:_MAX_ROWS]
        for row in far:
            rows.append(MatrixRow(_label(row, names)))
            dots.append(AUC.dot(f"{check.name}, {row.label}", row.auc))
    if not rows:
        return None
    matrix = Matrix(
        rows=rows,
        columns=[MatrixColumn("", dots)],
        axis=_AXIS,
        label="; ".join(dot.hover for dot in dots if dot and dot.bold),
    )
    caption = (
        "Dots: AUCs with 95 % intervals, each for itself, those farthest from 0.5 first. Thick: "
        "what a check leaves room for, from the lowest to the highest of all its intervals, with "
        f"0.5 unless it failed; the zone, {NEEDED.low:.1f} to {NEEDED.high:.1f}, is what a pass "
        "needs."
    )
    return picture("chance", "AUCs that ought to be 0.5", caption, matrix, 560)


def _label(row: CheckRow, names: Names) -> str:
    """Return a detector with its setting, and its arm where that tells it from others."""
    detector, setting = row.row["detector"], setting_words(row.row["setting"])
    return " ".join(filter(None, [names.get(detector, detector), setting]))


def checks_tables(checks: Sequence[Check]) -> list[Table]:
    """Return all intervals behind the checks of AUCs."""
    return [
        Table(
            title=f"{check.name}: every AUC",
            columns=(Column("Over"), *numbers("AUC", "n")),
            rows=tuple(
                (
                    Entry(row.label, strong=row.pooled),
                    AUC.entry(row.auc),
                    f"{row.auc.members:,} + {row.auc.nonmembers:,}",
                )
                for row in check.rows
            ),
            caption="Each interval for itself. Bold: over all datasets. n: members + non-members.",
            style="stack listing",
        )
        for check in checks
        if check.rows
    ]


def audits_parts(checks: Sequence[Check]) -> list[Part]:
    """Return what the audits reported: of all streams alike, and stream by stream."""
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
                    columns=(Column("Trained"), *numbers(*check.streams.columns)),
                    rows=tuple((label, *values) for label, values in check.streams.rows),
                    style="stack listing",
                )
            )
    return parts
