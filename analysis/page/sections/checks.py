"""May one believe it: every check with its number, what a pass needs, and what stands behind it."""

from collections.abc import Sequence

from analysis.checks.chance import CHANCE, MARGIN, outer_ends, possible_aucs
from analysis.checks.validity import Check
from analysis.page.drawing.marks import Dot
from analysis.page.drawing.matrix import (
    Matrix,
    MatrixAxis,
    MatrixColumn,
    MatrixRow,
    draw_matrix,
)
from analysis.page.grids import interval
from analysis.page.inputs import PageInputs
from analysis.page.parts import Columns, Drawn, Note, Part, Picture, present
from analysis.page.streams import share_sentence
from analysis.page.table import Column, Entry, Table, facts, numbers, texts

_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight")
_AXIS = MatrixAxis(
    0.0, 1.0, 0.5, ((0.0, "0"), (0.25, ".25"), (0.5, ".5"), (0.75, ".75"), (1.0, "1")),
    zone=(CHANCE - MARGIN, CHANCE + MARGIN),
)  # fmt: skip


def checks_parts(checks: Sequence[Check], inputs: PageInputs) -> list[Part]:
    """Return the sentence, the picture of the AUCs that ought to be 0.5, and all verdicts."""
    table = Table(
        title=f"{_count(len(checks))} checks",
        columns=tuple(texts("Check", "Verdict", "What was looked at")),
        rows=tuple(
            (one.name, Entry(one.verdict_line, strong=one.verdict == "failed"), one.sentence)
            for one in checks
        ),
        caption="Intervals are widened for their number. All of them, and what each audit "
        "reported, are on the page of methods.",
    )
    share = share_sentence(inputs.streams)
    sentence = f"{verdict_sentence(checks)} {share}".strip()
    return [Note(sentence, "say"), Columns(present(_picture(checks), table), "answer")]


def verdict_sentence(checks: Sequence[Check]) -> str:
    """Say how many checks passed, failed, could not tell, and were not measured."""
    counts = {
        verdict: [one.name for one in checks if one.verdict == verdict]
        for verdict in ("passed", "failed", "cannot tell", "not measured")
    }
    said = [f"{_count(len(counts['passed']))} of {len(checks)} checks passed"]
    if counts["failed"]:
        said.append(f"failed: {', '.join(counts['failed'])}")
    if counts["cannot tell"]:
        said.append(
            f"found no bias, but on too few rows to exclude one: {', '.join(counts['cannot tell'])}"
        )
    if counts["not measured"]:
        said.append(f"not measured: {', '.join(counts['not measured'])}")
    return f"{'; '.join(said)}."


def _count(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number}"


def _picture(checks: Sequence[Check]) -> Picture | None:
    """Return what each check of AUCs leaves room for, and the zone that a pass needs."""
    rows, dots = [], []
    for check in checks:
        pooled = [row for row in check.rows if row.pooled and row.cell.available]
        if not pooled:
            continue
        ends = outer_ends([possible_aucs(row.cell) for row in pooled])
        shown = f"{ends.low:.2f}–{ends.high:.2f}"
        rows.append(MatrixRow(check.name))
        dots.append(
            Dot(float("nan"), ends.low, ends.high, f"{check.name}: {shown}, {check.verdict}", shown)
        )
    if not rows:
        return None
    matrix = Matrix(
        rows=rows,
        columns=[MatrixColumn("AUCs that remain possible", dots)],
        axis=_AXIS,
        label="; ".join(dot.hover for dot in dots),
        row_height=26.0,
    )
    caption = (
        "All of these ought to be 0.5. A line is what remains possible over all detectors, "
        f"datasets together; the zone, {CHANCE - MARGIN:.1f} to {CHANCE + MARGIN:.1f}, is what a "
        "pass needs."
    )
    drawn = Drawn("chance", "AUCs that ought to be 0.5", caption)
    return Picture(drawn, draw_matrix(matrix, 560), linked=False)


def checks_tables(checks: Sequence[Check]) -> list[Table]:
    """Return all intervals behind the checks of AUCs."""
    return [
        Table(
            title=f"{check.name}: every AUC",
            columns=(Column("Over"), *numbers("AUC", "n")),
            rows=tuple(
                (
                    Entry(row.label, strong=row.pooled),
                    interval(row.cell),
                    f"{row.cell.n_members:,} + {row.cell.n_nonmembers:,}",
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
