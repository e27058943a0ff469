"""Figures along training: the loss, AUC by copies seen so far, and by time since the last copy."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import Arm, Cohort, axis_column
from analysis.copy_bins import ALL, is_dose, merge_bins
from analysis.figures.captions import further_text, seeds_text
from analysis.figures.lines import Point, line, lines_figure
from analysis.figures.panel import (
    FAINT,
    MAX_PANELS,
    MUTED,
    PALETTE,
    Axis,
    Figure,
    Panel,
    Series,
    dose_colours,
    tokens_label,
)
from analysis.metrics import Floats
from analysis.selection.ranking import highest_first
from analysis.tables import AUC, POOLED
from analysis.trajectory.checkpoints import TrajectoryTables
from analysis.trajectory.fading import RATE_WARNING, not_constant
from inject.stream.exposures import read_exposures
from train.loop.log import read_log

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


class _Training(NamedTuple):
    """What one model saw, and how its loss fell."""

    arm: str
    tokens: list[int]
    loss: list[float]
    smooth: list[float]
    """Running median of the loss."""
    copies: list[int]
    """Tokens before each copy was first read."""


def training_figure(arms: Sequence[tuple[Cohort, Arm]]) -> Figure | None:
    """Return one panel an arm (its first seed); None where no arm has a log."""
    logged = [(cohort.label(), arm) for cohort, arm in arms if arm.training is not None]
    if not logged:
        return None
    shown = [_read(label, arm) for label, arm in logged[:MAX_PANELS]]
    losses = [loss for one in shown for loss in one.loss]
    low, high = (min(losses), max(losses)) if losses else (0.0, 1.0)
    room = 0.05 * (high - low) or 0.05
    y = Axis(limits=(low - 5 * room, high + room))
    copies = sum(len(one.copies) for one in shown)
    return Figure(
        name="training",
        title="Training loss and exposures",
        caption="Thin: loss of each logged step; thick: its running median. Each stroke under a "
        "curve is one copy of a member, where the model first read any of it "
        f"({copies:,} copies). First training seed of each arm."
        + further_text(len(logged) - len(shown), "arms are not drawn"),
        alternative="Curves of the training loss, copies marked where they were read. "
        + " ".join(map(_text, shown)),
        panels=[
            Panel(
                title=one.arm or "contaminated",
                series=[
                    Series(x=one.tokens, y=one.loss, line="solid", colour=FAINT, width=0.8),
                    Series(x=one.tokens, y=one.smooth, line="solid", colour=PALETTE[1]),
                    Series(x=one.copies, y=[low - 4 * room] * len(one.copies), mark="|",
                           colour=PALETTE[0], size=9, width=0.7),
                ],
                x=Axis(text=tokens_label),
                y=y,
                note=f"{len(one.copies):,} copies",
            )
            for one in shown
        ],
        rows=[
            {"arm": one.arm, "tokens": tokens, "loss": loss, "running_median": middle}
            for one in shown
            for tokens, loss, middle in zip(one.tokens, one.loss, one.smooth, strict=True)
        ],
        height=2.7,
        x="Tokens",
        y="Training loss (nats a token)",
    )  # fmt: skip


def _read(label: str, arm: Arm) -> _Training:
    assert arm.training is not None
    # A step whose windows hold no label has no loss.
    log = [row for row in read_log(arm.training) if np.isfinite(row.loss)]
    loss = np.array([row.loss for row in log], dtype=np.float64)
    first: dict[tuple[str, int], int] = {}
    # A copy that straddles windows, or is read in several epochs, has several rows.
    columns = ["example_id", "copy", "tokens_before"]
    for row in read_exposures(arm.training, columns=columns).to_pylist():
        if row["tokens_before"] is not None:
            copy = (row["example_id"], row["copy"])
            first[copy] = min(first.get(copy, row["tokens_before"]), row["tokens_before"])
    tokens = [row.tokens for row in log]
    return _Training(label, tokens, loss.tolist(), _smooth(loss).tolist(), list(first.values()))


def _text(one: _Training) -> str:
    ends = f"from {one.smooth[0]:.2f} to {one.smooth[-1]:.2f}" if one.smooth else "without a loss"
    return f"{one.arm or 'The contaminated model'}: {ends}, {len(one.copies):,} copies."


def _smooth(loss: Floats) -> Floats:
    """Running median over a tenth of the steps, at least five."""
    half = max(2, len(loss) // 20)
    return np.array([np.median(loss[max(0, at - half) : at + half + 1]) for at in range(len(loss))])
