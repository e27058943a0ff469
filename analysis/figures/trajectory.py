"""Figures of trajectories: AUC along training, by copies seen, and by time since the last copy."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from analysis.arm import Cohort, axis_column
from analysis.copy_bins import ALL, is_dose, merge_bins
from analysis.figures.captions import seeds_text
from analysis.figures.lines import Point, line, lines_figure
from analysis.figures.panel import MUTED, PALETTE, Figure, Series, dose_colours, tokens_label
from analysis.selection.ranking import highest_first
from analysis.tables import AUC, POOLED
from analysis.trajectory.checkpoints import TrajectoryTables
from analysis.trajectory.fading import RATE_WARNING, not_constant

MAX_DETECTORS = 4
_UNSEEN = "0"

Row = Mapping[str, Any]


def trajectory_figures(found: TrajectoryTables, axes: Sequence[str]) -> list[Figure | None]:
    """Return the figures of both tables; None for one without data."""
    progress = [row for row in found.progress.to_pylist() if row["dataset"] == POOLED]
    fading = [row for row in found.fading.to_pylist() if row["metric"] == AUC]
    best = best_detectors(progress)
    if not best:
        return []
    arms = _by_arm([*progress, *fading], axes)
    warning = f"{RATE_WARNING} " if not_constant(found.fading.to_pylist()) else ""
    return [
        lines_figure(
            "trajectory",
            "AUC during training",
            {arm: list(_along(rows, best)) for arm, rows in arms.items()},
            x="Tokens trained on",
            caption="Each model that was kept along the way, with 95 % bands: members of which it "
            "had seen a copy by then, against all non-members. Dashed: members that it had not "
            f"seen yet, under {best[0]}; they should stay at chance. "
            + _counts(row for row in progress if row["copies"] == ALL),
            logarithmic=_early(progress),
            written=tokens_label,
        ),
        lines_figure(
            "trajectory-copies",
            f"AUC during training by copies seen so far ({best[0]})",
            {arm: list(_by_copies(rows, best[0], "tokens")) for arm, rows in arms.items()},
            x="Tokens trained on",
            caption="Members by the number of copies that the model had seen by then, against all "
            "non-members, with 95 % bands. "
            + _counts(row for row in progress if is_dose(row["copies"])),
            logarithmic=_early(progress),
            written=tokens_label,
        ),
        lines_figure(
            "fading",
            "AUC by time since the last copy",
            {
                f"{arm} · {name}" if arm else name: list(_by_copies(rows, name, "tokens_since"))
                for arm, rows in arms.items()
                for name in fading_detectors(best, len(arms))
            },
            x="Tokens trained on since the last copy was seen",
            caption="Pairs of a member and a model that has seen it, by the number of copies seen "
            "and the time since the last, each placed among the non-members under the same model; "
            "95 % bands count whole groups of examples. The first point is the very step that held "
            "the copy. Long times there are only late in training, when the model has moved far "
            "from where it began; fading_slope in the table compares each example with itself. "
            f"{warning}{_counts(fading)}",
            logarithmic=True,
            written=tokens_label,
        ),
    ]


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
    arms: dict[str, list[Row]] = {}
    for row in rows:
        cohort = Cohort(tuple((axis, row[axis_column(axis)]) for axis in axes), "contaminated")
        arms.setdefault(cohort.label(), []).append(row)
    return arms


def _early(progress: Sequence[Row]) -> bool:
    """Say whether the first models are so early that only a logarithm shows them."""
    steps = [row["step"] for row in progress if row["step"] > 0]
    return bool(steps) and max(steps) > 16 * min(steps)


def _along(rows: Sequence[Row], best: Sequence[str]) -> Iterator[Series]:
    for look, (name, colour) in enumerate(zip(best, PALETTE, strict=False)):
        if points := _points(rows, name, {ALL}, "tokens"):
            yield line(name, colour, points, look=look)
    if points := _points(rows, best[0], {_UNSEEN}, "tokens"):
        yield line("not seen yet", MUTED, points)


def _by_copies(rows: Sequence[Row], detector: str, x: str) -> Iterator[Series]:
    if x == "tokens" and (points := _points(rows, detector, {_UNSEEN}, x)):
        yield line("none yet", MUTED, points)
    # At one checkpoint members of a bin may have had 5 copies, at the next 5 to 8.
    bins = merge_bins({row["copies"] for row in rows if is_dose(row["copies"])} - {_UNSEEN})
    shades = dose_colours(len(bins))
    for look, ((label, same), shade) in enumerate(zip(bins.items(), shades, strict=True)):
        if points := _points(rows, detector, set(same), x):
            yield line(f"{label} {'copy' if label == '1' else 'copies'}", shade, points, look=look)


def _points(rows: Sequence[Row], detector: str, copies: set[str], x: str) -> list[Point]:
    return sorted(
        Point(row[x], row["value"], row["low"], row["high"])
        for row in rows
        if x in row
        and row["detector"] == detector
        and row["selection"] == "tuned"
        and row["copies"] in copies
        and row["low"] == row["low"]
    )


def _counts(rows: Iterable[Row]) -> str:
    counts = [(row["n_members"], row["n_nonmembers"], row["n_seeds"]) for row in rows]
    if not counts:
        return ""
    members, others, seeds = zip(*counts, strict=True)
    return (
        f"{min(members):,} to {max(members):,} members a point, up to {max(others):,} non-members; "
        f"datasets pooled, tuned settings, {seeds_text(seeds)}"
    )
