"""Checks of a detector that look at the labels: its orientation, and what it leaves out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from analysis.arm import Cohort, Column, LoadedArm
from analysis.auc_cells import measure_column
from analysis.checks.chance import possible_aucs
from analysis.copy_bins import ALL
from analysis.findings import question_table
from analysis.intervals.estimate import auc_estimate
from analysis.metrics_table import Cell, split_by_cohort
from analysis.settings import AnalysisSettings
from analysis.tables import PreparedCohort
from detect.validate.finding import Finding

FEW = 30
"""Rows of a side below which a number is called uncertain."""
_TIED = 0.1
"""Share of the rows with one score that is worth a line."""
_SIGNIFICANT = 0.01


def column_cell(
    cohort: Cohort,
    loaded: Sequence[LoadedArm],
    column: Column,
    settings: AnalysisSettings,
    *,
    copies: str = ALL,
) -> Cell | None:
    """Return the pooled AUC of one column on the rows that it can score, by number of copies."""
    work = PreparedCohort.prepare(
        cohort, loaded, [column], settings.model_copy(update={"max_unscored": 0.999_999})
    )
    measured = measure_column(work.arms, column, work.datasets, work.cells, work.settings)
    keys = [key for key, _ in cohort.axes]
    rows = list(work.metric_rows(column, "default", measured))
    if not rows:
        return None
    metrics = question_table("metrics", keys, rows)
    (table,) = split_by_cohort(metrics, keys)
    return table.get(column.detector, copies=copies)


def orientation(cell: Cell | None) -> list[Finding]:
    """Say whether the score is turned the right way, and on how few rows that rests."""
    if cell is not None and np.isfinite(cell.value) and not cell.available:
        reason = cell.interval.removeprefix("none: ") or "too few rows"
        return [
            Finding(
                check="orientation",
                severity="note",
                found=f"AUC {cell.value:.2f}, without an interval: {reason}.",
                meaning="They show neither that it finds members nor that its sign is turned.",
                action="Judge it on more rows, or on an arm with more copies.",
            ),
            *_few_rows(cell),
        ]
    if cell is None or not cell.available:
        return [
            Finding(
                check="orientation",
                severity="look",
                found="There is no AUC with an interval.",
                meaning="Too few rows have a score, or all scores are equal.",
                action="See the other lines.",
            )
        ]
    shown = interval_text(cell)
    ends = possible_aucs(cell)
    found = []
    if ends.high < 0.5:
        found.append(
            Finding(
                check="orientation",
                severity="wrong",
                found=f"AUC {shown}: members score lower than non-members.",
                meaning="The sign is turned; a higher score must mean 'more likely a member'.",
                action="Return the negative of the score.",
            )
        )
    elif ends.low > 0.5:
        found.append(
            Finding(check="orientation", severity="passed", found=f"AUC {shown}: above chance.")
        )
    else:
        found.append(
            Finding(
                check="orientation",
                severity="note",
                found=f"AUC {shown}: not told from chance.",
                meaning="They show neither that it finds members nor that its sign is turned.",
                action="Judge it on more rows, or on an arm with more copies.",
            )
        )
    return [*found, *_few_rows(cell)]


def _few_rows(cell: Cell) -> list[Finding]:
    if min(cell.n_members, cell.n_nonmembers) >= FEW:
        return []
    return [
        Finding(
            check="rows",
            severity="note",
            found=f"Only {cell.n_members} members and {cell.n_nonmembers} non-members stand "
            "behind its AUC.",
            meaning="Intervals from so few rows are wide.",
            action="Judge it on a larger run before you publish a rank.",
        )
    ]


def missing_scores(
    cohort: Cohort, loaded: Sequence[LoadedArm], column: Column, settings: AnalysisSettings
) -> Finding:
    """Say whether scores are missing, and whether that alone tells the sides apart."""
    missing = [np.isnan(arm.scores[:, arm.index[column]]) for arm in loaded]
    by_side = [
        (int(gone[side].sum()), int(side.sum()))
        for side in (
            np.concatenate([arm.member for arm in loaded]),
            np.concatenate([~arm.member for arm in loaded]),
        )
        for gone in (np.concatenate(missing),)
    ]
    (gone_members, members), (gone_others, others) = by_side
    if not gone_members + gone_others:
        return Finding(check="missing scores", severity="passed", found="Every row has a score.")
    reasons = Counter(
        arm.reasons.get((int(row), column), "no reason given")
        for arm, gone in zip(loaded, missing, strict=True)
        for row in np.flatnonzero(gone)
    )
    why = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(3))
    found = (
        f"{_share(gone_members, members)} of the members and {_share(gone_others, others)} of the "
        f"non-members have no score ({why})."
    )
    low, high = _missing_difference(loaded, missing, settings)
    tested = _fisher(gone_members, members, gone_others, others)
    if not (tested < _SIGNIFICANT and (low > 0 or high < 0)):
        return Finding(
            check="missing scores",
            severity="note",
            found=found,
            meaning="No difference between the sides is shown "
            f"(interval of the difference {low:+.3f} to {high:+.3f}).",
        )
    extremes = [
        column_cell(cohort, [_filled(arm, column, lowest) for arm in loaded], column, settings)
        for lowest in (True, False)
    ]
    aucs = " and ".join("–" if one is None else interval_text(one) for one in extremes)
    return Finding(
        check="missing scores",
        severity="wrong",
        found=found + f" The difference is {gone_members / members - gone_others / others:+.3f} "
        f"[{low:+.3f}, {high:+.3f}].",
        meaning="That a score is missing tells the label by itself, and the AUC leaves these rows "
        f"out: with them ranked lowest and highest it is {aucs}.",
        action="Score every text that has a token, by a rule that looks at nothing but the text.",
    )


def infinite_scores(loaded: Sequence[LoadedArm], column: Column) -> list[Finding]:
    """Say how many scores are infinite."""
    values = np.concatenate([arm.scores[:, arm.index[column]] for arm in loaded])
    high, low = int(np.isposinf(values).sum()), int(np.isneginf(values).sum())
    if not high + low:
        return []
    return [
        Finding(
            check="infinite scores",
            severity="wrong",
            found=f"{high + low} of {len(values)} scores are infinite ({high} +∞, {low} −∞).",
            meaning="An infinity has no distance to others; such rows leave the comparison.",
            action="Look for a logarithm of 0 or a division by 0; return a text that says why "
            "there is no score.",
        )
    ]


def ties(loaded: Sequence[LoadedArm], column: Column) -> Finding:
    """Say whether many rows have one and the same score."""
    largest, shared, rows, distinct = 0.0, 0, 0, 0
    for arm in loaded:
        values = arm.scores[arm.test, arm.index[column]]
        values = values[np.isfinite(values)]
        if not len(values):
            continue
        counts = Counter(values.tolist()).most_common(1)[0]
        if counts[1] / len(values) >= shared / max(rows, 1):
            largest, shared, rows = counts[0], counts[1], len(values)
        distinct = max(distinct, len(set(values.tolist())))
    if rows and distinct == 1:
        return Finding(
            check="ties",
            severity="wrong",
            found=f"All scores are {largest:.6g}.",
            meaning="It says the same of every text.",
            action="Look for a branch that is always taken.",
        )
    if rows and shared / rows >= _TIED and shared > 2:
        return Finding(
            check="ties",
            severity="look",
            found=f"{shared} of {rows} rows have the score {largest:.6g}; there are {distinct} "
            "different scores.",
            meaning="No threshold parts equal scores, so true-positive rates at low false-positive "
            "rates may rest on nothing.",
            action="Return the number before it is rounded or capped.",
        )
    return Finding(
        check="ties", severity="passed", found=f"{distinct} different scores on {rows} rows."
    )


def interval_text(cell: Cell) -> str:
    """Return an AUC with its interval."""
    return f"{cell.value:.2f} [{cell.low:.2f}, {cell.high:.2f}]"


def _share(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.0%} ({part} of {whole})"


def _fisher(members_gone: int, members: int, others_gone: int, others: int) -> float:
    from scipy.stats import fisher_exact

    counts = [[members_gone, members - members_gone], [others_gone, others - others_gone]]
    return float(fisher_exact(counts)[1])


def _missing_difference(
    loaded: Sequence[LoadedArm],
    missing: Sequence[npt.NDArray[np.bool_]],
    settings: AnalysisSettings,
) -> tuple[float, float]:
    """Return the interval of the share of missing scores, members minus non-members.

    It is twice the AUC of having none, less one.
    """
    found = auc_estimate(
        np.concatenate(missing).astype(np.float64),
        np.concatenate([arm.member for arm in loaded]),
        [
            f"{name}\0{group}"
            for arm in loaded
            for name, group in zip(arm.dataset, arm.group, strict=True)
        ],
        [str(arm.arm.seed) for arm in loaded for _ in arm.examples],
        confidence=settings.confidence,
    )
    return 2 * found.low - 1, 2 * found.high - 1


def _filled(arm: LoadedArm, column: Column, lowest: bool) -> LoadedArm:
    """Return an arm in which what has no score has the lowest, or the highest, of all."""
    scores = arm.scores.copy()
    values = scores[:, arm.index[column]]
    finite = values[np.isfinite(values)]
    edge = (finite.min() - 1 if lowest else finite.max() + 1) if len(finite) else 0.0
    values[np.isnan(values)] = edge
    return replace(arm, scores=scores)
