"""The page's sections on detection along training: sentences, pictures and their tables."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from analysis.copy_bins import ALL, copies_order, is_dose, merge_bins
from analysis.findings import ArmOf, Row, group_by
from analysis.intervals.estimate import Estimate
from analysis.page.crossed import AxisHeading, cross, doublings
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Section, answer, fold
from analysis.page.table import Table, tokens_label
from analysis.page.view import LOSS
from analysis.selection.ranking import highest_first
from analysis.tables import AUC, POOLED
from analysis.trajectory.fading import FADING_SLOPE, RATE_WARNING, not_constant
from analysis.unit import AUC as AUCS
from analysis.unit import DIFFERENCE

_MAX_DETECTORS = 4
_MIN_MEMBERS = 30
"""Fewer members than this make no end point of a sentence."""


def trajectory_section(tables: Mapping[str, pa.Table], arm_of: ArmOf) -> Section | None:
    """Return the findings during training: sentences, pictures, and the numbers by arm.

    Args:
        tables: of detection along training.
        arm_of: the arm of a row, in words.
    """
    pooled = [row for row in tables["trajectory"].to_pylist() if row["dataset"] == POOLED]
    fading_rows = tables["fading"].to_pylist()
    best = best_detectors(pooled)
    if not best:
        return None
    sentences: list[str] = []
    progress: list[Table] = []
    fading: list[Table] = []
    arms = group_by(pooled, arm_of)
    for arm, own in arms.items():
        progress += _progress(arm, own, best)
        rows = [row for row in fading_rows if arm_of(row) == arm]
        for name in fading_detectors(best, len(arms)):
            sentences += _sentences(arm, rows, name)
            fading += _fading_tables(arm, rows, name)
    pictures = _pictures(pooled, fading_rows, best, arm_of)
    return answer(
        "during-training",
        "During training",
        "How does detection change during training?",
        "",
        extra=[*sentences, *pictures, *fading, *map(fold, progress)],
    )


def best_detectors(progress: Sequence[Row]) -> list[str]:
    """Return the detectors worth a line: those with the best mean AUC along training, and `loss`.

    Args:
        progress: rows of trajectory.parquet, datasets pooled.
    """
    tuned = [row for row in progress if row["copies"] == ALL and row["selection"] == "tuned"]
    measured = (row for row in tuned if row["value"] == row["value"])
    rows = group_by(measured, lambda row: str(row["detector"]))
    means = [sum(row["value"] for row in own) / len(own) for own in rows.values()]
    ranked = [list(rows)[at] for at in highest_first(means)]
    if LOSS in ranked[_MAX_DETECTORS:]:
        return [*ranked[: _MAX_DETECTORS - 1], LOSS]
    return ranked[:_MAX_DETECTORS]


def fading_detectors(best: Sequence[str], arms: int) -> list[str]:
    """Return whose fading is shown: the best one's, and with a single arm that of a few more."""
    if arms > 1:
        return list(best[:1])
    few = best[:3]
    return [*few[:2], LOSS] if LOSS in best and LOSS not in few else list(few)


def _pictures(
    progress: Sequence[Row], fading: Sequence[Row], best: Sequence[str], arm_of: ArmOf
) -> list[Picture | None]:
    """Return AUC along training, by copies seen by then, and by the time since the last copy.

    Args:
        progress: rows of the trajectory, datasets pooled.
        fading: rows of the fading.
        best: the detectors worth a line.
        arm_of: the arm of a row, in words.
    """
    arms = list(dict.fromkeys(arm_of(row) for row in progress))
    faded = fading_detectors(best, len(arms))
    steps = [row["step"] for row in progress if row["step"] > 0]
    early = bool(steps) and max(steps) > 16 * min(steps)
    warning = f" {RATE_WARNING}" if not_constant(fading) else ""
    progress_rows = _tuned_first(progress, best, [ALL]) + _tuned_first(progress, best[:1], ["0"])
    by_copies = _tuned_first(progress, best[:1], None)
    by_time = _tuned_first([row for row in fading if row["metric"] == AUC], faded, None)

    def of_detector(row: Row) -> AxisHeading:
        if row["copies"] == "0":
            return _head("not seen yet", row, arm_of)
        return _head(row["detector"], row, arm_of, "chosen" if row["detector"] == best[0] else "")

    return [
        _lines(
            "trajectory",
            "AUC during training",
            progress_rows,
            of_detector,
            early,
            "Each intermediate checkpoint: members of which it had seen a copy by "
            f"then, against all non-members. Members that it had not seen yet, under {best[0]}, "
            "should stay at chance. Thin: the first panel again.",
        ),
        _lines(
            "trajectory-copies",
            f"AUC during training by copies seen so far ({best[0]})",
            by_copies,
            lambda row: _head(_copies_label(row, by_copies), row, arm_of),
            early,
            "Members by the number of copies that the checkpoint had seen by "
            "then, against all non-members.",
        ),
        _lines(
            "fading",
            "AUC by time since the last copy",
            by_time,
            lambda row: _head(f"{row['detector']}, {_copies_label(row, by_time)}", row, arm_of),
            True,
            "Pairs of a member and a model that has seen it, by the copies "
            "seen and the time since the last, each ranked among the non-members under the same "
            "model. The first point is the step with the copy itself. Long times occur only late "
            "in training, when the model has moved far from its start; fading_slope in the table "
            f"compares each example with itself.{warning}",
        ),
    ]


def _tuned_first(
    rows: Sequence[Row], detectors: Sequence[str], copies: Sequence[str] | None
) -> list[Row]:
    """Return the rows of some detectors, in their order; without `copies` those of every dose."""
    return [
        row
        for name in detectors
        for row in sorted(_tuned_rows(rows, name), key=lambda row: copies_order(row["copies"]))
        if (is_dose(row["copies"]) if copies is None else row["copies"] in copies)
    ]


def _head(label: str, row: Row, arm_of: ArmOf, kind: str = "") -> AxisHeading:
    arm = arm_of(row)
    words = f"{label}, {arm}" if arm else label
    return AxisHeading(label, kind, note=arm, said=words, name=words)


def _copies_label(row: Row, rows: Sequence[Row]) -> str:
    # At one checkpoint members of a bin may have had 5 copies, at the next 5 to 8.
    bins = merge_bins({other_row["copies"] for other_row in rows} - {"0"})
    label = next((label for label, bin_labels in bins.items() if row["copies"] in bin_labels), "0")
    return {"0": "none yet", "1": "1 copy"}.get(label, f"{label} copies")


def _lines(
    name: str,
    title: str,
    rows: Sequence[Row],
    head: Callable[[Row], AxisHeading],
    logarithmic: bool,
    caption: str,
) -> Picture | None:
    """Return one panel per head, one point per model or time; None without two points."""
    x = "tokens_since_copy" if name == "fading" else "tokens"
    least = min((row[x] for row in rows if row[x] > 0), default=1)
    crossed = cross(
        rows,
        head,
        lambda row: AxisHeading(
            tokens_label(row[x]),
            name=f"{row[x]}",
            at=doublings(row[x] / least) if logarithmic else float(row[x]),
        ),
        unit=AUCS,
        cell=lambda row: row,
    )
    since = " since the last copy was seen" if name == "fading" else ""
    panels = crossed.panels(title, f"tokens trained on{since}", ghost=name == "trajectory")
    caption += f" Bands: 95 %; datasets pooled, tuned settings. A point: {crossed.behind()}."
    return picture(name, title, caption, panels, 1180, crossed.records("line", x))


def _sentences(arm: str, rows: Sequence[Row], detector: str) -> list[str]:
    whole = [row for row in _tuned_rows(rows, detector) if row["copies"] == ALL]
    slope = next((row for row in whole if row["metric"] == FADING_SLOPE), None)
    points = [row for row in whole if row["metric"] == AUC]
    if slope is None or len(points) < 2 or slope["low"] != slope["low"]:
        return []
    first = points[0]
    # The longest times are those of few examples.
    last = [row for row in points if row["n_members"] >= _MIN_MEMBERS or row is points[1]][-1]
    subject = f"{arm}: under" if arm else "Under"
    if slope["high"] < 0:
        verdict = "examples fade after they were seen"
    elif slope["low"] > 0:
        verdict = "scores rise after examples were seen"
    else:
        verdict = "these data do not show that examples fade after they were seen"
    sentence = (
        f"{subject} {detector}, {verdict}: within examples, the share of non-members that one "
        f"scores above changes by {DIFFERENCE.text(slope['value'], slope['low'], slope['high'])} "
        f"with each doubling of 1 + the steps since its last copy ({slope['n_members']:,} members "
        f"at {slope['pairs'] / slope['n_members']:.1f} checkpoints each)."
    )
    if not_constant(rows):
        return [sentence, RATE_WARNING]
    ends = (f"{Estimate.of(row).text()} {_describe_delay(row)}" for row in (first, last))
    return [f"{sentence} AUC {', '.join(ends)}."]


def _describe_delay(row: Row) -> str:
    if row["steps_since_copy_high"] == 0:
        return "in the step of the last copy"
    steps = "1 step" if row["steps_since_copy"] == "1" else f"{row['steps_since_copy']} steps"
    return f"{steps} after it"


def _tuned_rows(rows: Sequence[Row], detector: str) -> list[Row]:
    return [row for row in rows if row["detector"] == detector and row["selection"] == "tuned"]


def _progress(arm: str, rows: Sequence[Row], best: Sequence[str]) -> list[Table]:
    """Return one row per detector, one column per checkpoint."""
    names = dict.fromkeys([*best, *(row["detector"] for row in rows)])
    lines = {name: (name, ALL) for name in names} | {f"not seen yet, {best[0]}": (best[0], "0")}
    tokens = {row["step"]: row["tokens"] for row in rows}
    tuned = {
        (row["step"], row["detector"], row["copies"]): row
        for row in rows
        if row["selection"] == "tuned"
    }
    heads: dict[int, AxisHeading] = {}
    seen: dict[int, int] = {}
    for step in sorted(tokens):
        *measured, unseen = (tuned.get((step, *line)) for line in lines.values())
        seen[step] = next((row["n_members"] for row in measured if row), 0)
        if any(measured) or unseen:
            note = f"{tokens[step]:,} tokens, {seen[step]:,} members seen"
            heads[step] = AxisHeading(f"step {step:,}", note=note)

    def cell(item: tuple[str, int]) -> Row | None:
        return tuned.get((item[1], *lines[item[0]]))

    crossed = cross(
        ((line, step) for line in lines for step in heads),
        lambda item: AxisHeading(item[0]),
        lambda item: heads[item[1]],
        unit=AUCS,
        cell=cell,
        counted=lambda item: _members(cell(item), seen[item[1]]),
    )
    return crossed.tables(
        "Detectors during training" + (f" ({arm})" if arm else ""),
        "Detector",
        "AUC with its interval; tuned settings (chosen under the last model), all datasets "
        "pooled. Members of which the model had seen at least one whole copy by then; the "
        "last row has the members of which it had seen none, with their count.",
    )


def _members(row: Row | None, usual: int) -> str:
    """Return a number's count of members, unless it is the usual one."""
    return "" if row is None or row["n_members"] == usual else f"{row['n_members']:,} members"


def _fading_tables(arm: str, rows: Sequence[Row], detector: str) -> list[Table]:
    """Return one row per copy count, one column per bin of steps since the last copy."""
    aucs = [row for row in _tuned_rows(rows, detector) if row["metric"] == AUC]
    aucs = [row for row in aucs if row["copies"] == ALL or is_dose(row["copies"])]
    cells = {(row["copies"], row["steps_since_copy"]): row for row in aucs}
    aucs.sort(key=lambda row: row["steps_since_copy_low"])
    bins = dict.fromkeys(row["steps_since_copy"] for row in aucs)
    labels = sorted({label for label, _ in cells}, key=copies_order)
    crossed = cross(
        ((label, since) for label in labels for since in bins),
        lambda item: AxisHeading(item[0]),
        lambda item: AxisHeading("1 step" if item[1] == "1" else f"{item[1]} steps"),
        unit=AUCS,
        cell=cells.get,
        counted=lambda item: _members(cells.get(item), 0),
    )
    return crossed.tables(
        f"By steps since the last copy, {detector}" + (f" ({arm})" if arm else ""),
        "Copies seen",
        "AUC with its interval over pairs of a member and a model that has seen it, "
        "each ranked among the non-members under the same model; tuned "
        f"setting, datasets pooled.{f' {RATE_WARNING}' if not_constant(rows) else ''}",
    )
