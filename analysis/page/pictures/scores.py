"""How the chosen detector's scores are distributed: a density a number of copies."""

import numpy as np

from analysis.copy_bins import copies_cells, is_dose
from analysis.metrics import Floats
from analysis.page.cohort import CohortRows
from analysis.page.drawing.elements import Dot, round_ticks
from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.page.drawing.picture import Picture, picture
from analysis.page.grids import copies_text
from analysis.page.table import with_noun
from analysis.page.view import View, setting_words
from analysis.settings import AnalysisSettings

_LIMITS = (0.005, 0.995)
"""Quantiles of the scores that the picture reaches to."""
_STEPS = 160


def scores_picture(view: View) -> Picture | None:
    """Return a density a group, of members by their copies, with that of non-members in each."""
    best, settings = view.best, view.inputs.analysis_settings
    rows = view.data.rows(best.detector, best.selection, settings)
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
    panels = Panels(
        panels=[
            LinePanel(
                name,
                [faint, Line(lines[name], "chosen", marks=False)],
                f"median {medians[name]}",
            )
            for name in members
        ],
        x=[
            (tick, f"{tick:g}".replace("-", "−"))
            for tick in round_ticks(low - margin, high + margin)
        ],
        y=[(0.0, ""), (1.0, "")],
        centre=0.0,
        x_label="robust deviations from the median non-member",
        label="Distributions of scores, their medians in robust standard deviations: "
        + ", ".join(f"{name} {median}" for name, median in medians.items()),
        height=230.0,
    )
    setting = setting_words(view.data.column(best.detector, best.selection).setting)
    title = f"Scores of {', '.join(filter(None, (view.name, setting, view.arm)))}"
    sizes = ", ".join(f"{len(groups[name]):,}" for name in members)
    caption = (
        "Kernel densities of equal height, in robust standard deviations from the median of each "
        f"dataset's non-members. Orange: members by their copies (n {sizes}); grey: non-members, "
        f"median {medians['non-members']}. {len(rows.members):,} members and "
        f"{len(rows.nonmembers):,} non-members of the test split, "
        f"{with_noun(len(view.data.loaded), 'training seed')}."
    )
    numbers = [{"group": name, "score": float(value)}
               for name, values in groups.items() for value in values]  # fmt: skip
    return picture("scores", title, caption, panels, 1180, numbers) if members else None


def _score_groups(rows: CohortRows, settings: AnalysisSettings) -> dict[str, Floats]:
    groups = {"non-members": rows.nonmembers}
    for cell in copies_cells(rows.copies.tolist(), high_copies=settings.high_copies):
        values = rows.members[cell.holds(rows.copies)]
        if is_dose(cell.label) and len(values) >= settings.min_members:
            groups[copies_text(cell.label)] = values
    return groups


def _density(values: Floats, places: Floats) -> list[tuple[float, Dot]]:
    """Return a Gaussian kernel density with Silverman's bandwidth; a spike where all are equal."""
    spread = min(
        float(np.std(values)), float(np.subtract(*np.quantile(values, [0.75, 0.25]))) / 1.34
    )
    width = 0.9 * (spread or float(np.std(values))) * len(values) ** -0.2
    width = max(width, float(places[1] - places[0]))
    density = np.exp(-0.5 * ((places[:, None] - values) / width) ** 2).sum(axis=1)
    heights = density / density.max() if density.max() > 0 else np.ones_like(density)
    return [
        (float(x), Dot(float(y), 0.0, float(y), "")) for x, y in zip(places, heights, strict=True)
    ]
