"""Training loss over tokens, with the moments marked at which a copy was read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from analysis.arm import Arm, Cohort
from analysis.figures.style import (
    FAINT,
    INK,
    PALETTE,
    ReportFigure,
    house_style,
    new_figure,
    panel_columns,
    panel_title,
    panels,
    save_figure,
    tokens_label,
)
from analysis.metrics import Floats
from inject.stream.exposures import read_exposures
from train.loop.log import read_log

MAX_PANELS = 6


def draw_training(folder: Path, arms: Sequence[tuple[Cohort, Arm]]) -> ReportFigure | None:
    """Draw one panel an arm (its first seed); None where no arm has a log."""
    logged = [(cohort, arm, arm.training) for cohort, arm in arms if arm.training is not None]
    if not logged:
        return None
    shown = logged[:MAX_PANELS]
    columns = panel_columns(len(shown))
    total = 0
    descriptions = []
    points: list[dict[str, object]] = []
    with house_style():
        figure = new_figure(0.5 + 2.7 * -(-len(shown) // columns))
        axes = panels(figure, len(shown), columns=columns)
        for axis, (cohort, arm, folder_of_model) in zip(axes, shown, strict=True):
            log = read_log(folder_of_model)
            tokens = np.array([row.tokens for row in log], dtype=np.int64)
            loss = np.array([row.loss for row in log], dtype=np.float64)
            # A step whose windows hold no label has no loss.
            tokens, loss = tokens[np.isfinite(loss)], loss[np.isfinite(loss)]
            axis.plot(tokens, loss, color=FAINT, linewidth=0.8)
            smooth = _smooth(loss)
            axis.plot(tokens, smooth, color=PALETTE[1], linewidth=2)
            points += [
                {"arm": cohort.label(), "tokens": int(at), "loss": float(raw),
                 "running_median": float(middle)}
                for at, raw, middle in zip(tokens, loss, smooth, strict=True)
            ]  # fmt: skip
            copies = _rug(axis, arm)
            total += copies
            ends = f"from {smooth[0]:.2f} to {smooth[-1]:.2f}" if len(smooth) else "without a loss"
            arm_name = cohort.label() or "The contaminated model"
            descriptions.append(f"{arm_name}: {ends}, {copies:,} copies.")
            panel_title(axis, cohort.label() or "contaminated", columns=columns)
            axis.grid(True, axis="y")
            axis.xaxis.set_major_formatter(tokens_label)
            axis.locator_params(axis="x", nbins=5)
        low, high = axes[0].get_ylim()
        axes[0].set_ylim(low - 0.2 * (high - low), high)
        for axis in axes[-columns:]:
            axis.set_xlabel("Tokens")
        for axis in axes[::columns]:
            axis.set_ylabel("Training loss (nats a token)")
        rest = len(logged) - len(shown)
        caption = (
            "Thin: loss of each logged step; thick: its running median. Each stroke under a "
            "curve is one copy of a member, where the model first read any of it "
            f"({total:,} copies). First training seed of each arm."
        )
        if rest > 0:
            caption += f" {rest} further arms are not drawn."
        return save_figure(
            figure,
            folder,
            name="training",
            title="Training loss and exposures",
            caption=caption,
            alternative="Curves of the training loss, copies marked where they were read. "
            + " ".join(descriptions),
            data=points,
        )


def _rug(axis: Any, arm: Arm) -> int:
    """Draw each copy where it was first read, and return how many copies there are."""
    if arm.training is None:
        return 0
    columns = ["example_id", "copy", "tokens_before"]
    first: dict[tuple[str, int], int] = {}
    # A copy that straddles windows, or is read in several epochs, has several rows.
    for row in read_exposures(arm.training, columns=columns).to_pylist():
        if row["tokens_before"] is not None:
            name = (row["example_id"], row["copy"])
            first[name] = min(first.get(name, row["tokens_before"]), row["tokens_before"])
    at = np.array(list(first.values()), dtype=np.float64)
    axis.plot(
        at, np.full(len(at), 0.035), "|", color=PALETTE[0], markersize=9, alpha=0.25,
        markeredgewidth=0.7, transform=axis.get_xaxis_transform(), rasterized=len(at) > 200,
    )  # fmt: skip
    axis.text(
        0.985, 0.09, f"{len(at):,} copies", transform=axis.transAxes, ha="right", fontsize=8.5,
        color=INK,
    )  # fmt: skip
    return len(at)


def _smooth(loss: Floats) -> Floats:
    """Running median over a tenth of the steps, at least five."""
    half = max(2, len(loss) // 20)
    return np.array([np.median(loss[max(0, at - half) : at + half + 1]) for at in range(len(loss))])
