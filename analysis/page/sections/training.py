"""The training loss of each arm, and where the copies were read."""

from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from analysis.arm import Arm, Cohort, cohorts
from analysis.arm_words import arm_words
from analysis.metrics import Floats
from analysis.page.drawing.elements import Dot, round_ticks
from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.page.parts import Picture, picture
from analysis.page.table import tokens_label, with_noun
from inject.stream.exposures import read_exposures
from train.loop.log import read_log

_MAX_PANELS = 6


class _Training(NamedTuple):
    """What one model saw, and how its loss fell."""

    arm: str
    words: str
    tokens: list[int]
    loss: list[float]
    smooth: list[float]
    """Running median of the loss."""
    copies: list[int]
    """Tokens before each copy was first read."""


def training_picture(arms: Sequence[Arm]) -> Picture | None:
    """Return one panel an arm (its first seed); None where no arm has a log."""
    first = {cohort: same[0] for cohort, same in cohorts(arms).items()}
    logged = {
        cohort: arm.training
        for cohort, arm in first.items()
        if cohort.model == "contaminated" and arm.training is not None
    }
    read = [_read(cohort, folder) for cohort, folder in [*logged.items()][:_MAX_PANELS]]
    shown = [training for training in read if training.loss]
    if not shown:
        return None
    losses = [loss for training in shown for loss in training.loss]
    heights = round_ticks(min(losses), max(losses) + 1e-6)
    tokens = round_ticks(0, max(training.tokens[-1] for training in shown))
    copies = sum(len(training.copies) for training in shown)
    panels = Panels(
        panels=[
            LinePanel(
                training.words or "contaminated",
                [
                    Line(_points(training.tokens, training.loss), "faint", marks=False),
                    Line(_points(training.tokens, training.smooth), marks=False),
                    Line(_points(training.copies, training.copies), "strokes", marks=False),
                ],
                f"{len(training.copies):,} copies",
            )
            for training in shown
        ],
        x=[(at, tokens_label(at)) for at in tokens],
        y=[(at, f"{at:g}") for at in heights],
        centre=nan,
        x_label="tokens trained on",
        label="Curves of the training loss, copies marked where they were read. "
        + " ".join(map(_text, shown)),
        height=280.0,
        per_row=3,
    )
    caption = (
        "Nats a token. Thin: loss of each logged step; thick: its running median. Each stroke at "
        f"the foot is a copy of a member, where the model first read any of it ({copies:,} "
        "copies). First training seed of each arm."
    )
    if len(logged) > len(shown):
        caption += f" {with_noun(len(logged) - len(shown), 'further arm')} not drawn."
    rows = [
        {"arm": training.arm, "tokens": at, "loss": loss, "running_median": middle}
        for training in shown
        for at, loss, middle in zip(training.tokens, training.loss, training.smooth, strict=True)
    ]
    return picture("training", "Training loss and exposures", caption, panels, 1180, rows)


def _points(x: Sequence[float], y: Sequence[float]) -> list[tuple[float, Dot]]:
    return [(at, Dot(value, nan, nan, "")) for at, value in zip(x, y, strict=True)]


def _read(cohort: Cohort, folder: Path) -> _Training:
    # A step whose windows hold no label has no loss.
    log = [row for row in read_log(folder) if np.isfinite(row.loss)]
    loss = np.array([row.loss for row in log], dtype=np.float64)
    first: dict[tuple[str, int], int] = {}
    # A copy that straddles windows, or is read in several epochs, has several rows.
    columns = ["example_id", "copy", "tokens_before"]
    for row in read_exposures(folder, columns=columns).to_pylist():
        if row["tokens_before"] is not None:
            copy = (row["example_id"], row["copy"])
            first[copy] = min(first.get(copy, row["tokens_before"]), row["tokens_before"])
    return _Training(
        cohort.label(), arm_words(cohort.axes), [row.tokens for row in log], loss.tolist(),
        _smooth(loss).tolist(), list(first.values()),
    )  # fmt: skip


def _text(training: _Training) -> str:
    ends = f"from {training.smooth[0]:.2f} to {training.smooth[-1]:.2f}"
    return f"{training.words or 'The contaminated model'}: {ends}, {len(training.copies):,} copies."


def _smooth(loss: Floats) -> Floats:
    """Running median over a tenth of the steps, at least five."""
    half = max(2, len(loss) // 20)
    return np.array([np.median(loss[max(0, at - half) : at + half + 1]) for at in range(len(loss))])
