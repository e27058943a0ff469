"""Figures of trajectories: AUC along training, by copies seen, and by time since the last copy."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from analysis.arm import Cohort, axis_column
from analysis.copy_bins import ALL, is_dose, merge_bins
from analysis.figures.lines import Line, Point, draw_lines
from analysis.figures.style import MUTED, PALETTE, ReportFigure, dose_colours, tokens_label
from analysis.selection.ranking import highest_first
from analysis.tables import AUC, POOLED
from analysis.trajectory.checkpoints import TrajectoryTables
from analysis.trajectory.fading import RATE_WARNING, not_constant

MAX_DETECTORS = 4
_UNSEEN = "0"

Row = Mapping[str, Any]


def trajectory_figures(
    out: Path, found: TrajectoryTables, axes: Sequence[str]
) -> tuple[ReportFigure, ...]:
    """Write figures/*.svg and *.png under `out`; figures without data are left out."""
    progress = [row for row in found.progress.to_pylist() if row["dataset"] == POOLED]
    fading = [row for row in found.fading.to_pylist() if row["metric"] == AUC]
    best = best_detectors(progress)
    if not best:
        return ()
    arms = _by_arm([*progress, *fading], axes)
    draw = partial(draw_lines, out / "figures", written=tokens_label)
    drawn = [
        draw(
            "trajectory",
            "AUC during training",
            {arm: _along(rows, best) for arm, rows in arms.items()},
            x="Tokens trained on",
            caption="Each model that was kept along the way, with 95 % bands: members of which it "
            "had seen a copy by then, against all non-members. Dashed: members that it had not "
            f"seen yet, under {best[0]}; they should stay at chance. "
            + _counts([row for row in progress if row["copies"] == ALL]),
            logarithmic=_early(progress),
        ),
        draw(
            "trajectory-copies",
            f"AUC during training by copies seen so far ({best[0]})",
            {arm: _by_copies(rows, best[0], "tokens") for arm, rows in arms.items()},
            x="Tokens trained on",
            caption="Members by the number of copies that the model had seen by then, against all "
            "non-members, with 95 % bands. "
            + _counts([row for row in progress if is_dose(row["copies"])]),
            logarithmic=_early(progress),
        ),
        draw(
            "fading",
            "AUC by time since the last copy",
            {
                f"{arm} · {name}" if arm else name: _by_copies(rows, name, "tokens_since")
                for arm, rows in arms.items()
                for name in fading_detectors(best, len(arms))
            },
            x="Tokens trained on since the last copy was seen",
            caption="Pairs of a member and a model that has seen it, by the number of copies seen "
            "and the time since the last, each placed among the non-members under the same model; "
            "95 % bands count whole groups of examples. The first point is the very step that held "
            "the copy. Long times there are only late in training, when the model has moved far "
            "from where it began; fading_slope in the table compares each example with itself. "
            + (f"{RATE_WARNING} " if not_constant(found.fading.to_pylist()) else "")
            + _counts(fading),
            logarithmic=True,
        ),
    ]
    return tuple(figure for figure in drawn if figure is not None)


def best_detectors(progress: Sequence[Row]) -> list[str]:
    """Return the detectors worth a line: those with the best mean AUC along training, and `loss`.

    Args:
        progress: rows of trajectory.parquet, datasets pooled.
    """
    quality: dict[str, list[float]] = {}
    for row in progress:
        if row["copies"] == ALL and row["selection"] == "tuned" and row["value"] == row["value"]:
            quality.setdefault(row["detector"], []).append(row["value"])
    names = list(quality)
    means = [sum(values) / len(values) for values in quality.values()]
    ranked = [names[at] for at in highest_first(means)]
    if "loss" in ranked[MAX_DETECTORS:]:
        return [*ranked[: MAX_DETECTORS - 1], "loss"]
    return ranked[:MAX_DETECTORS]


def fading_detectors(best: Sequence[str], arms: int) -> list[str]:
    """Return whose fading is shown: the best one's, and with a single arm that of a few more."""
    if arms > 1:
        return list(best[:1])
    few = best[:3]
    return [*few[:2], "loss"] if "loss" in best and "loss" not in few else list(few)


def _by_arm(rows: Sequence[Row], axes: Sequence[str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        cohort = Cohort(tuple((axis, row[axis_column(axis)]) for axis in axes), "contaminated")
        found.setdefault(cohort.label(), []).append(row)
    return found


def _early(progress: Sequence[Row]) -> bool:
    """Say whether the first models are so early that only a logarithm shows them."""
    steps = [row["step"] for row in progress if row["step"] > 0]
    return bool(steps) and max(steps) > 16 * min(steps)


def _along(rows: Sequence[Row], best: Sequence[str]) -> list[Line]:
    lines = []
    for name, colour in zip(best, PALETTE, strict=False):
        points = _points(rows, name, ALL, "tokens")
        lines.append(Line(name, colour, points))
    lines.append(Line("not seen yet", MUTED, _points(rows, best[0], _UNSEEN, "tokens"), True))
    return [line for line in lines if line.points]


def _by_copies(rows: Sequence[Row], detector: str, x: str) -> list[Line]:
    doses = {row["copies"] for row in rows if is_dose(row["copies"])} - {_UNSEEN}
    # At one checkpoint members of a bin may have had 5 copies, at the next 5 to 8.
    bins = merge_bins(doses)
    lines = []
    if x == "tokens":
        lines.append(Line("none yet", MUTED, _points(rows, detector, _UNSEEN, x), True))
    for (label, same), shade in zip(bins.items(), dose_colours(len(bins)), strict=True):
        words = f"{label} {'copy' if label == '1' else 'copies'}"
        found = [point for one in same for point in _points(rows, detector, one, x)]
        lines.append(Line(words, shade, sorted(found)))
    return [line for line in lines if line.points]


def _points(rows: Sequence[Row], detector: str, copies: str, x: str) -> list[Point]:
    found = [
        Point(row[x], row["value"], row["low"], row["high"])
        for row in rows
        if x in row
        and row["detector"] == detector
        and row["selection"] == "tuned"
        and row["copies"] == copies
        and row["low"] == row["low"]
    ]
    return sorted(found)


def _counts(rows: Sequence[Row]) -> str:
    members = [row["n_members"] for row in rows]
    if not members:
        return ""
    seeds = max(row["n_seeds"] for row in rows)
    return (
        f"{min(members):,} to {max(members):,} members a point, up to "
        f"{max(row['n_nonmembers'] for row in rows):,} non-members; datasets pooled, tuned "
        + ("settings, one training seed." if seeds == 1 else f"settings, {seeds} training seeds.")
    )
