"""The findings of a detector's checks, and the checks of labels and of chance.

The labels: is its sign right, and does a missing or a tied score distinguish the sides? Chance:
does it find anything when there is nothing to be found: on the base model and the clean twin of all
members, on a model that was trained again without a forget set of those that it never saw.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from analysis.any_scores import auc_estimate
from analysis.arm import Cohort, DetectorColumn, LoadedArm
from analysis.auc_cells import ColumnMetrics, PreparedCohort, measure_columns
from analysis.checks.chance import CHANCE, chance_width, possible_auc, within_margin
from analysis.compared_rows import missing_scores as count_missing
from analysis.copy_bins import ALL
from analysis.findings import Findings, Row, question_table
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import Floats, Mask
from analysis.settings import AnalysisSettings
from analysis.tables import metric_rows, with_selections
from analysis.unit import AUC, DIFFERENCE
from detect.ground_truth.ground_truth import ScoredModel

Severity = Literal["wrong", "look", "note", "passed"]
"""`wrong`: its numbers are misleading. `look`: they may not. `note`: worth knowing.
`passed`: looked for and not found."""

SEVERITIES: tuple[Severity, ...] = ("wrong", "look", "note", "passed")
FEW = 30
"""Rows of a side below which a number is called uncertain."""
_TIED = 0.1
"""Share of the rows with one score that is worth a line."""


class CheckFinding(NamedTuple):
    """One line of the checks."""

    check: str
    """The checked property, such as `orientation`."""
    severity: Severity
    found: str
    """The result, with its numbers."""
    meaning: str = ""
    """Its meaning."""
    action: str = ""
    """The recommended action."""

    @property
    def text(self) -> str:
        """The finding in one line."""
        return " ".join(part for part in (self.found, self.meaning, self.action) if part)


def on_shared_rows(
    cohort: Cohort,
    loaded: Sequence[LoadedArm],
    columns: Sequence[DetectorColumn],
    settings: AnalysisSettings,
) -> tuple[PreparedCohort, dict[DetectorColumn, ColumnMetrics]]:
    """Measure columns on the rows that all of them can score, however few these are."""
    every_row = settings.model_copy(update={"max_unscored": 0.999_999})
    work = PreparedCohort.prepare(cohort, loaded, columns, every_row)
    return work, measure_columns(work, columns)


def measured_metrics(
    work: PreparedCohort,
    picked: Mapping[DetectorColumn, Sequence[str]],
    measured: Mapping[DetectorColumn, ColumnMetrics],
) -> Findings:
    """Return the metrics of columns as the report has them.

    Args:
        work: the cohort, made ready.
        picked: the selections that each column stands for.
        measured: the columns.
    """
    keys = [key for key, _ in work.cohort.axes]
    rows = (
        row
        for column, selections in picked.items()
        for row in with_selections(metric_rows(work, column, measured[column]), selections)
    )
    return Findings(question_table("metrics", keys, rows).to_pylist(), keys)


class CheckedSetting(NamedTuple):
    """One setting of a detector under the models of a cohort, with what it is checked by."""

    cohort: Cohort
    models: Sequence[ScoredModel]
    """One a seed."""
    loaded: Sequence[LoadedArm]
    """The same, with the column."""
    column: DetectorColumn
    settings: AnalysisSettings

    def auc(self, copies: str = ALL) -> Row | None:
        """Return the pooled AUC on the rows that it can score, by number of copies.

        None if the setting was not scored under these models.
        """
        if any(self.column not in arm.index for arm in self.loaded):
            return None
        work, measured = on_shared_rows(self.cohort, self.loaded, [self.column], self.settings)
        metrics = measured_metrics(work, {self.column: ["default"]}, measured)
        return metrics.row(detector=self.column.detector, copies=copies)

    def scores(self) -> list[Floats]:
        """Return the scores of all rows, by model."""
        return [arm.scores[:, arm.index[self.column]] for arm in self.loaded]


def orientation(row: Row | None, *, repeatable: bool) -> Iterator[CheckFinding]:
    """Check the sign of the score, and on how few rows that check is based.

    Args:
        row: its pooled AUC.
        repeatable: a row keeps its score; of scores that change the sign means nothing.
    """
    finding = partial(CheckFinding, "orientation")
    if row is None or not np.isfinite(row["value"]):
        yield finding(
            "look",
            "There is no AUC with an interval.",
            "Too few rows have a score, or all scores are equal.",
            "See the other lines.",
        )
        return
    cell = Estimate.of(row)
    ends = possible_auc(row) if cell.available else None
    if ends is not None and not repeatable:
        yield finding(
            "note",
            f"{AUC.text(*cell[:3])}.",
            "Its scores change, so this shows neither that it finds members nor its sign.",
            "Make a row keep its score first: see what is wrong above.",
        )
    elif ends is not None and ends.high < 0.5:
        yield finding(
            "wrong",
            f"{AUC.text(*cell[:3])}: members score lower than non-members.",
            "The sign is reversed; a higher score must mean 'more likely a member'.",
            "Return the negative of the score.",
        )
    elif ends is not None and ends.low > 0.5:
        yield finding("passed", f"{AUC.text(*cell[:3])}: above chance.")
    else:
        reason = cell.about.removeprefix("none: ") or "too few rows"
        yield finding(
            "note",
            f"{AUC.text(*cell[:3])}: not distinguishable from chance."
            if ends is not None
            else f"AUC {cell.value:.2f}, without an interval: {reason}.",
            "They show neither that it finds members nor that its sign is reversed.",
            "Judge it on more rows, or on an arm with more copies.",
        )
    if min(cell.members, cell.nonmembers) < FEW:
        yield CheckFinding(
            "rows",
            "note",
            f"Only {cell.members} members and {cell.nonmembers} non-members contribute to its AUC.",
            "Intervals from so few rows are wide.",
            "Judge it on a larger run before you publish a rank.",
        )


def missing_scores(subject: CheckedSetting) -> CheckFinding:
    """Report whether scores are missing, and whether that by itself distinguishes the sides."""
    finding = partial(CheckFinding, "missing scores")
    loaded, column = subject.loaded, subject.column
    missing = [np.isnan(scores) for scores in subject.scores()]
    gone, member = np.concatenate(missing), np.concatenate([arm.member for arm in loaded])
    counted = count_missing(*column, np.where(gone, np.nan, 0.0), member)
    if counted is None:
        return finding("passed", "Every row has a score.")
    reasons = Counter(
        arm.reasons.get((int(row), column), "no reason given")
        for arm, of_arm in zip(loaded, missing, strict=True)
        for row in np.flatnonzero(of_arm)
    )
    why = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(3))
    sentence = (
        f"{_share(counted.members_missing, counted.members)} of the members and "
        f"{_share(counted.nonmembers_missing, counted.nonmembers)} of the non-members have no "
        f"score ({why})."
    )
    low, high, reason = _missing_difference(subject, missing)
    if not (counted.unlike and (low > 0 or high < 0)):
        interval = f"interval of the difference {low:+.3f} to {high:+.3f}"
        return finding(
            "note",
            sentence,
            f"No difference between the sides is shown ({reason or interval}).",
        )
    difference = (
        counted.members_missing / counted.members - counted.nonmembers_missing / counted.nonmembers
    )
    extremes = [
        subject._replace(loaded=[_fill_missing(arm, column, lowest) for arm in loaded]).auc()
        for lowest in (True, False)
    ]
    aucs = " and ".join(AUC.brief(auc, no_interval="(no interval)") or "–" for auc in extremes)
    return finding(
        "wrong",
        f"{sentence} The difference is {DIFFERENCE.text(difference, low, high)}.",
        "A missing score by itself reveals the label, and the AUC omits these "
        f"rows: with them ranked lowest and highest it is {aucs}.",
        "Score every text that has a token, by a rule that uses only the text.",
    )


def infinite_scores(subject: CheckedSetting) -> Iterator[CheckFinding]:
    """Count infinite scores."""
    values = np.concatenate(subject.scores())
    high, low = int(np.isposinf(values).sum()), int(np.isneginf(values).sum())
    if high + low:
        yield CheckFinding(
            "infinite scores",
            "wrong",
            f"{high + low} of {len(values)} scores are infinite ({high} +∞, {low} −∞).",
            "An infinity has no distance to others; such rows leave the comparison.",
            "Look for a logarithm of 0 or a division by 0; return a text that explains why "
            "there is no score.",
        )


def ties(subject: CheckedSetting) -> CheckFinding:
    """Check whether many rows have the same score."""
    finding = partial(CheckFinding, "ties")
    largest, shared, rows, distinct = 0.0, 0, 0, 0
    for arm, scores in zip(subject.loaded, subject.scores(), strict=True):
        values = scores[arm.test & np.isfinite(scores)]
        if not len(values):
            continue
        value, count = Counter(values.tolist()).most_common(1)[0]
        if count / len(values) >= shared / max(rows, 1):
            largest, shared, rows = value, count, len(values)
        distinct = max(distinct, len(set(values.tolist())))
    if rows and distinct == 1:
        return finding(
            "wrong",
            f"All scores are {largest:.6g}.",
            "It gives every text the same score.",
            "Look for a branch that is always taken.",
        )
    if rows and shared / rows >= _TIED and shared > 2:
        return finding(
            "look",
            f"{shared} of {rows} rows have the score {largest:.6g}; there are {distinct} "
            "different scores.",
            "No threshold separates equal scores, so true-positive rates at low "
            "false-positive rates may be meaningless.",
            "Return the number before it is rounded or capped.",
        )
    return finding("passed", f"{distinct} different scores on {rows} rows.")


def chance(name: str, row: Row | None, number: int) -> CheckFinding:
    """Check whether the detector is at chance on a model that saw none of the members.

    Args:
        name: of the model, in words.
        row: its pooled AUC there.
        number: how many such models are looked at.
    """
    place = f"on the {name}"
    return _check_chance(f"chance {place}", row, number, place=place, saw="none of the members")


def after_removal(forgotten: Row | None, retained: Row | None, number: int) -> CheckFinding:
    """Check whether the detector is at chance on members that the retrained model never saw.

    Args:
        forgotten: its pooled AUC for these members.
        retained: its pooled AUC for the members that this model did see.
        number: how many models are looked at.
    """
    finding = _check_chance(
        "chance on the retrained model",
        forgotten,
        number,
        place="for the forgotten members on the retrained model",
        saw="none of them",
    )
    if retained is None or not Estimate.of(retained).available:
        return finding
    retained_note = f" For the members that it did see: {AUC.text(*Estimate.of(retained)[:3])}."
    return finding._replace(found=finding.found + retained_note)


def _check_chance(
    check: str, row: Row | None, number: int, *, place: str, saw: str
) -> CheckFinding:
    finding = partial(CheckFinding, check)
    if row is None or not (cell := Estimate.of(row)).available:
        return finding("note", f"There is no AUC with an interval {place}.")
    ends = possible_auc(row)
    auc_text = AUC.text(*cell[:3])
    if abs(cell.value - CHANCE) > chance_width(row, number):
        return finding(
            "wrong",
            f"{auc_text} {place}, which saw {saw}.",
            "It distinguishes the sides by something other than membership.",
            "Look at what differs between the sides without a model: length, topic, labels, gaps.",
        )
    if within_margin(ends):
        return finding("passed", f"{auc_text} {place}: chance, as it must.")
    largest = min(0.5, max(0.5 - ends.low, ends.high - 0.5))
    return finding(
        "note",
        f"{auc_text} {place}: not farther from 0.5 than chance.",
        f"So few rows could miss a bias as large as {largest:.2f}.",
    )


def _share(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.0%} ({part} of {whole})"


def _missing_difference(
    subject: CheckedSetting, missing: Sequence[Mask]
) -> tuple[float, float, str | None]:
    """Return the interval of the share of missing scores, members minus non-members.

    It is twice the AUC of having none, less one; NaN with a reason if there is none.
    """
    loaded = subject.loaded
    estimate = auc_estimate(
        np.concatenate(missing).astype(np.float64),
        np.concatenate([arm.member for arm in loaded]),
        [group for arm in loaded for group in arm.group],
        [str(arm.arm.seed) for arm in loaded for _ in arm.examples],
        confidence=subject.settings.confidence,
    )
    return 2 * estimate.low - 1, 2 * estimate.high - 1, estimate.reason


def _fill_missing(arm: LoadedArm, column: DetectorColumn, lowest: bool) -> LoadedArm:
    """Return an arm in which what has no score has the lowest, or the highest, of all."""
    scores = arm.scores.copy()
    values = scores[:, arm.index[column]]
    finite = values[np.isfinite(values)]
    edge = (finite.min() - 1 if lowest else finite.max() + 1) if len(finite) else 0.0
    values[np.isnan(values)] = edge
    return replace(arm, scores=scores)
