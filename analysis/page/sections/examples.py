"""Scores and examples, on a separate page.

The highest- and lowest-scoring examples let a reader see what the scores are about. The text of a
protected dataset never enters the page unless requested; its id, copies and score do.
Below them is the distribution of the chosen detector's scores, one density per copy count, and
the training loss of each arm, with the steps at which copies were read.
"""

from collections.abc import Sequence
from math import nan
from pathlib import Path

import numpy as np

from analysis.arm import DetectorColumn, LoadedArm, cohorts
from analysis.copy_bins import copies_cells, is_dose
from analysis.intervals.influence import Floats
from analysis.page.drawing.elements import round_ticks
from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.page.drawing.picture import Picture, picture
from analysis.page.inputs import PageInputs
from analysis.page.parts import Heading, Part, Section, answer
from analysis.page.table import (
    PROTECTED,
    Table,
    TableColumn,
    copies_text,
    numbers,
    tokens_label,
    with_noun,
)
from analysis.page.view import CohortRows, ReportView, setting_words
from analysis.settings import AnalysisSettings
from analysis.unit import Dot, Entry
from inject.stream.exposures import read_exposures
from train.loop.log import read_log

EXAMPLES = "examples"
"""Anchor of the section on examples."""
_COLUMNS = (TableColumn("Example"), *numbers("Score", "Copies"), TableColumn("Text", long=True))
_STYLE = "stack examples"
_EXAMPLES_PER_KIND = 3
_MAX_LENGTH = 280


def examples_section(view: ReportView, *, show_protected: bool) -> Section | None:
    """Return the highest and lowest members and non-members of the headline's first seed.

    Ranked within each dataset's own scale: by the share of the dataset's other examples
    that score lower, ties by score.
    """
    best, loaded = view.best, view.loaded[0]
    setting = best.setting
    scores = loaded.scores[:, loaded.index[DetectorColumn(best.detector, setting)]]
    usable = loaded.test & np.isfinite(scores)
    place = np.full(len(scores), np.nan)
    for dataset in dict.fromkeys(loaded.dataset[usable]):
        in_dataset = usable & (loaded.dataset == dataset)
        below = np.searchsorted(np.sort(scores[in_dataset]), scores[in_dataset])
        place[in_dataset] = (below + 0.5) / in_dataset.sum()
    exposed = loaded.member & (loaded.copies > 0)
    named = "" if setting in ("default", "-") else f" ({setting})"
    arm = f", {view.arm}" if view.arm else ""
    parts: list[Part] = [f"By {view.name}{named}{arm}, first seed, ranked within each dataset."]
    for kind, side in (("Members", exposed), ("Non-members", ~loaded.member)):
        for end, direction in (("highest", -1), ("lowest", 1)):
            rows = np.flatnonzero(usable & side)
            order = np.lexsort((direction * scores[rows], direction * place[rows]))
            tables = [
                _example(loaded, int(row), scores[row], show_protected)
                for row in rows[order[:_EXAMPLES_PER_KIND]]
            ]
            if tables:
                heading = Heading(f"{kind} with the {end} scores")
                parts += [heading, Table(columns=_COLUMNS, rows=tuple(tables), style=_STYLE)]
    title = "Examples with the highest and lowest scores"
    return answer(EXAMPLES, "Examples", title, "", extra=parts)


def _example(
    loaded: LoadedArm, row: int, score: float, show_protected: bool
) -> tuple[str | Entry, ...]:
    example = loaded.examples[row]
    return (
        Entry(example.dataset, notes=(example.example_id,)),
        f"{score:.4g}",
        str(loaded.copies[row]) if loaded.member[row] else "withheld",
        PROTECTED if example.protected and not show_protected else shorten(example.text),
    )


def shorten(text: str) -> str:
    """Shorten a text to a few lines, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX_LENGTH else flat[: _MAX_LENGTH - 1].rstrip() + "…"


_LIMITS = (0.005, 0.995)
"""Quantiles of the scores that the picture reaches to."""
_STEPS = 160


def scores_picture(view: ReportView) -> Picture | None:
    """Return a density a group, of members by their copies, with that of non-members in each."""
    best, settings = view.best, view.inputs.analysis_settings
    rows = view.rows(best.detector)
    if len(rows.nonmembers) < 2 or len(rows.members) < 2:
        return None
    groups = _score_groups(rows, settings)
    low, high = np.quantile(np.concatenate([rows.nonmembers, rows.members]), _LIMITS)
    margin = 0.12 * (high - low) or 1.0
    places = np.linspace(low - margin, high + margin, _STEPS)
    lines = {name: _density(values, places) for name, values in groups.items()}
    medians = {name: f"{np.median(values):+.2f}".replace("-", "−")
               for name, values in groups.items()}  # fmt: skip
    faint = Line(lines["non-members"], "faint", marks=False)
    members = [name for name in groups if name != "non-members"]
    curves = {name: Line(lines[name], "chosen", marks=False) for name in members}
    ticks = round_ticks(low - margin, high + margin)
    panels = Panels(
        panels=[
            LinePanel(name, [faint, curves[name]], f"median {medians[name]}") for name in curves
        ],
        x=[(tick, f"{tick:g}".replace("-", "−")) for tick in ticks],
        y=[(0.0, ""), (1.0, "")],
        centre=0.0,
        x_label="robust deviations from the median non-member",
        label="Distributions of scores, their medians in robust standard deviations: "
        + ", ".join(f"{name} {median}" for name, median in medians.items()),
        height=230.0,
    )
    setting = setting_words(view.column(best.detector).setting)
    title = f"Scores of {', '.join(filter(None, (view.name, setting, view.arm)))}"
    sizes = ", ".join(f"{len(groups[name]):,}" for name in members)
    caption = (
        "Kernel densities of equal height, in robust standard deviations from the median of each "
        f"dataset's non-members. Orange: members by their copies (n {sizes}); grey: non-members, "
        f"median {medians['non-members']}. {len(rows.members):,} members and "
        f"{len(rows.nonmembers):,} non-members of the test split, "
        f"{with_noun(len(view.loaded), 'training seed')}."
    )
    scores = [{"group": name, "score": float(value)}
              for name, values in groups.items() for value in values]  # fmt: skip
    return picture("scores", title, caption, panels if members else None, 1180, scores)


def _score_groups(rows: CohortRows, settings: AnalysisSettings) -> dict[str, Floats]:
    groups = {"non-members": rows.nonmembers}
    for cell in copies_cells(rows.copies.tolist(), high_copies=settings.high_copies):
        values = rows.members[cell.holds(rows.copies)]
        if is_dose(cell.label) and len(values) >= settings.min_members:
            groups[copies_text(cell.label)] = values
    return groups


def _density(values: Floats, places: Floats) -> list[tuple[float, Dot]]:
    """Return a Gaussian kernel density with Silverman's bandwidth; a spike if all are equal."""
    deviation = float(np.std(values))
    spread = min(deviation, float(np.subtract(*np.quantile(values, [0.75, 0.25]))) / 1.34)
    width = 0.9 * (spread or deviation) * len(values) ** -0.2
    width = max(width, float(places[1] - places[0]))
    density = np.exp(-0.5 * ((places[:, None] - values) / width) ** 2).sum(axis=1)
    heights = density / density.max() if density.max() > 0 else np.ones_like(density)
    points = zip(places.tolist(), heights.tolist(), strict=True)
    return [(x, Dot(y, 0.0, y, "")) for x, y in points]


_MAX_PANELS = 6


def training_picture(inputs: PageInputs) -> Picture | None:
    """Return one panel per arm (its first seed); None if no arm has a log."""
    logged = {
        cohort: cohort_arms[0].training
        for cohort, cohort_arms in cohorts(inputs.arms).items()
        if cohort.model == "contaminated" and cohort_arms[0].training is not None
    }
    panels, rows, sentences, copies = [], list[dict[str, object]](), [], 0
    for cohort, folder in [*logged.items()][:_MAX_PANELS]:
        # A step whose windows contain no label has no loss.
        log = [row for row in read_log(folder) if np.isfinite(row.loss)]
        if not log:
            continue
        tokens, loss = [row.tokens for row in log], [row.loss for row in log]
        smooth, read = _running_median(np.array(loss)), _first_reads(folder)
        lines = (("faint", tokens, loss), ("", tokens, smooth), ("strokes", read, read))
        counted, name = f"{len(read):,} copies", inputs.arm_words(cohort) or "contaminated"
        panels.append(LinePanel(name, [_line(*line) for line in lines], counted))
        rows += [
            {"arm": cohort.label(), "tokens": at, "loss": value, "running_median": middle}
            for at, value, middle in zip(tokens, loss, smooth, strict=True)
        ]
        sentences.append(f"{name}: from {smooth[0]:.2f} to {smooth[-1]:.2f}, {counted}.")
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
        label=f"Training loss, copies marked where they were read. {' '.join(sentences)}",
        height=280.0,
        per_row=3,
    )
    caption = (
        "Nats per token. Thin: loss of each logged step; thick: its running median. Each stroke at "
        "the bottom is a copy of a member, at the model's first read of any part of it "
        f"({copies:,} copies). First training seed of each arm."
    )
    if len(logged) > _MAX_PANELS:
        caption += f" Not shown: {with_noun(len(logged) - _MAX_PANELS, 'further arm')}."
    return picture("training", "Training loss and exposures", caption, figure, 1180, rows)


def _first_reads(folder: Path) -> list[int]:
    """Return the tokens before each copy was first read."""
    # A copy that straddles windows, or is read in several epochs, has several rows.
    rows = read_exposures(folder, columns=["example_id", "copy", "tokens_before"])
    first = rows.group_by(["example_id", "copy"]).aggregate([("tokens_before", "min")])
    return first["tokens_before_min"].drop_null().to_pylist()


def _line(kind: str, x: Sequence[float], y: Sequence[float]) -> Line:
    points = [(at, Dot(value, nan, nan, "")) for at, value in zip(x, y, strict=True)]
    return Line(points, kind, marks=False)


def _running_median(loss: Floats) -> list[float]:
    """Running median over a tenth of the steps, at least five."""
    half = max(2, len(loss) // 20)
    windows = (loss[max(0, at - half) : at + half + 1] for at in range(len(loss)))
    return [float(np.median(window)) for window in windows]
