"""The training loss of each arm, and where the copies were read."""

from collections.abc import Sequence
from math import nan
from pathlib import Path

import numpy as np

from analysis.arm import Arm, cohorts
from analysis.arm_words import arm_words
from analysis.metrics import Floats
from analysis.page.drawing.elements import Dot, round_ticks
from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.page.drawing.picture import Picture, picture
from analysis.page.table import tokens_label, with_noun
from inject.stream.exposures import read_exposures
from train.loop.log import read_log

_MAX_PANELS = 6


def training_picture(arms: Sequence[Arm]) -> Picture | None:
    """Return one panel an arm (its first seed); None if no arm has a log."""
    logged = {
        cohort: same[0].training
        for cohort, same in cohorts(arms).items()
        if cohort.model == "contaminated" and same[0].training is not None
    }
    panels, rows, said, copies = [], list[dict[str, object]](), [], 0
    for cohort, folder in [*logged.items()][:_MAX_PANELS]:
        # A step whose windows hold no label has no loss.
        log = [row for row in read_log(folder) if np.isfinite(row.loss)]
        if not log:
            continue
        tokens, loss = [row.tokens for row in log], [row.loss for row in log]
        smooth, read = _smooth(np.array(loss)), _first_reads(folder)
        lines = (("faint", tokens, loss), ("", tokens, smooth), ("strokes", read, read))
        counted, name = f"{len(read):,} copies", arm_words(cohort.axes) or "contaminated"
        panels.append(LinePanel(name, [_line(*line) for line in lines], counted))
        rows += [
            {"arm": cohort.label(), "tokens": at, "loss": value, "running_median": middle}
            for at, value, middle in zip(tokens, loss, smooth, strict=True)
        ]
        said.append(f"{name}: from {smooth[0]:.2f} to {smooth[-1]:.2f}, {counted}.")
        copies += len(read)
    if not panels:
        return None
    losses = [dot.value for panel in panels for _, dot in panel.lines[0].points]
    last = max(panel.lines[0].points[-1][0] for panel in panels)
    figure = Panels(
        panels=panels,
        x=[(at, tokens_label(at)) for at in round_ticks(0, last)],
        y=[(at, f"{at:g}") for at in round_ticks(min(losses), max(losses) + 1e-6)],
        centre=nan,
        x_label="tokens trained on",
        label=f"Training loss, copies marked where they were read. {' '.join(said)}",
        height=280.0,
        per_row=3,
    )
    caption = (
        "Nats a token. Thin: loss of each logged step; thick: its running median. Each stroke at "
        f"the foot is a copy of a member, where the model first read any of it ({copies:,} "
        "copies). First training seed of each arm."
    )
    if len(logged) > _MAX_PANELS:
        caption += f" Not drawn: {with_noun(len(logged) - _MAX_PANELS, 'further arm')}."
    return picture("training", "Training loss and exposures", caption, figure, 1180, rows)


def _first_reads(folder: Path) -> list[int]:
    """Return the tokens before each copy was first read."""
    first: dict[tuple[str, int], int] = {}
    # A copy that straddles windows, or is read in several epochs, has several rows.
    columns = ["example_id", "copy", "tokens_before"]
    for row in read_exposures(folder, columns=columns).to_pylist():
        if row["tokens_before"] is not None:
            copy = (row["example_id"], row["copy"])
            first[copy] = min(first.get(copy, row["tokens_before"]), row["tokens_before"])
    return list(first.values())


def _line(kind: str, x: Sequence[float], y: Sequence[float]) -> Line:
    points = [(at, Dot(value, nan, nan, "")) for at, value in zip(x, y, strict=True)]
    return Line(points, kind, marks=False)


def _smooth(loss: Floats) -> list[float]:
    """Running median over a tenth of the steps, at least five."""
    half = max(2, len(loss) // 20)
    windows = (loss[max(0, at - half) : at + half + 1] for at in range(len(loss)))
    return [float(np.median(window)) for window in windows]
