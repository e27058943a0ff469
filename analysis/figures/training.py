"""Training loss over tokens, with the moments marked at which a copy was read."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.arm import Arm, Cohort
from analysis.figures.captions import further_text
from analysis.figures.panel import (
    FAINT,
    MAX_PANELS,
    PALETTE,
    Axis,
    Figure,
    Panel,
    Series,
    tokens_label,
)
from analysis.metrics import Floats
from inject.stream.exposures import read_exposures
from train.loop.log import read_log


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
