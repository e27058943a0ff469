"""One look for all figures, and deterministic files.

Colours are Okabe and Ito's, which colour-blind readers can tell apart, darkened so far that text in
them stands out from paper as WCAG asks (4.5 to 1). Text is drawn as
paths, so a figure looks the same in any browser; `$` in names stays a dollar sign. The same
data give the same bytes (fixed hash salt, no dates). Only `matplotlib.figure` is used: no
pyplot, hence no global figures and no display.
"""

import itertools
import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

from analysis.figures.data import write_rows

FIGURES = "figures.json"
INK = "#1f2933"
MUTED = "#66717d"
GRID = "#e1e5ea"
PAPER = "#ffffff"
FAINT = "#87919c"
PALETTE = ("#bf5300", "#0072b2", "#007f5c", "#a5548f")
ON_LIGHT, ON_DARK = "#15191d", "#fdfdfd"
"""Letters on a coloured ground, which is the same on a dark page: so these colours stay, too."""
LINE_LOOKS: tuple[tuple[Any, str], ...] = (
    ("-", "o"),
    ((0, (5, 2)), "s"),
    ((0, (1.5, 1.5)), "^"),
    ((0, (6, 2, 1.5, 2)), "v"),
)
"""Dashes and marks of the lines of a panel: nobody needs colours to tell them apart."""
WIDTH = 9.0
"""Inches of every figure; the page shows it at full width."""
_RC: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "axes.axisbelow": True,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "svg.fonttype": "path",
    "svg.hashsalt": "spikein",
    "path.simplify": True,
}


@dataclass(frozen=True, kw_only=True)
class ReportFigure:
    """One finished figure."""

    name: str
    """File stem, and anchor in the page."""
    title: str
    caption: str
    """What is shown and how many examples and seeds stand behind it."""
    alternative: str
    """The same in words, for readers who do not see it: what stands where, with numbers."""
    svg: Path
    png: Path

    @property
    def csv(self) -> Path | None:
        """The numbers that are drawn, NAME.csv; None for a figure that has no such table."""
        path = self.svg.with_suffix(".csv")
        return path if path.is_file() else None

    @property
    def files(self) -> tuple[Path, ...]:
        """The drawing in both forms, and its numbers."""
        drawn, numbers = (self.svg, self.png), self.csv
        return drawn if numbers is None else (*drawn, numbers)


def write_figures(out: Path, figures: Sequence[ReportFigure]) -> None:
    """Write down which figures lie below a folder."""
    record = [
        {**asdict(one), "svg": str(one.svg.relative_to(out)), "png": str(one.png.relative_to(out))}
        for one in figures
    ]
    (out / FIGURES).write_text(json.dumps(record, indent=1))


def read_figures(folder: Path) -> list[ReportFigure]:
    """Return the figures of a folder."""
    return [
        ReportFigure(**{**one, "svg": folder / one["svg"], "png": folder / one["png"]})
        for one in json.loads((folder / FIGURES).read_text())
    ]


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style; matplotlib's settings are restored afterwards."""
    import matplotlib

    with matplotlib.rc_context(_RC):
        yield


def new_figure(height: float) -> Any:
    """Return an empty figure of the common width on an Agg canvas."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def panel_columns(count: int) -> int:
    """Return how many panels stand side by side: up to three, four as two by two."""
    return 2 if count == 4 else min(3, count)


def panels(figure: Any, count: int, *, columns: int, sharey: bool = True) -> list[Any]:
    """Return `count` axes in a grid; surplus places stay empty."""
    rows = -(-count // columns)
    grid = figure.subplots(rows, columns, sharex=True, sharey=sharey, squeeze=False)
    axes = list(grid.ravel())
    for surplus in axes[count:]:
        surplus.set_visible(False)
    for at, axis in enumerate(axes[:count]):
        if at + columns >= count:
            axis.tick_params(labelbottom=True)
    return axes[:count]


def panel_title(axis: Any, text: str, *, columns: int) -> None:
    """Write a panel's title, broken into lines that its width holds.

    A bold letter is about 0.095 inches wide.
    """
    letters = int((WIDTH / columns - 0.55) / 0.095)
    axis.set_title(textwrap.fill(text, letters))


def write_files(figure: Any, folder: Path, name: str) -> tuple[Path, Path]:
    """Write NAME.svg and NAME.png into `folder` and return their paths, SVG first."""
    folder.mkdir(parents=True, exist_ok=True)
    svg, png = folder / f"{name}.svg", folder / f"{name}.png"
    # The layout is solved once; solving it again for each file costs a third of the time.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    figure.savefig(svg, format="svg", dpi=200, metadata={"Date": None, "Creator": None})
    figure.savefig(png, format="png", dpi=160, metadata={"Software": None})
    return svg, png


def save_figure(
    figure: Any,
    folder: Path,
    *,
    name: str,
    title: str,
    caption: str,
    alternative: str,
    data: Iterable[Mapping[str, object]] = (),
) -> ReportFigure:
    """Save a figure and describe it.

    Args:
        figure: what was drawn.
        folder: where to write NAME.svg, NAME.png and NAME.csv.
        name: file stem, and anchor in the page.
        title: of the figure.
        caption: what is shown.
        alternative: the same in words.
        data: the numbers that are drawn, a row a point; without any there is no CSV.
    """
    svg, png = write_files(figure, folder, name)
    write_rows(svg.with_suffix(".csv"), list(data))
    return ReportFigure(
        name=name, title=title, caption=caption, alternative=alternative, svg=svg, png=png
    )


def detector_colours(detectors: Sequence[str], emphasised: Sequence[str]) -> dict[str, str]:
    """Give the emphasised detectors a colour each, in order, and all others a faint grey."""
    given = dict(zip(emphasised, PALETTE, strict=False))
    return {detector: given.get(detector, FAINT) for detector in detectors}


def draw_chance_line(axis: Any, *, vertical: bool) -> None:
    """Mark AUC 0.5."""
    line = axis.axvline if vertical else axis.axhline
    line(0.5, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), zorder=1)


def spread_labels(positions: Sequence[float], gap: float, *, top: float = inf) -> list[float]:
    """Move label positions apart until neighbours are `gap` away, keeping their order.

    Args:
        positions: where labels would stand.
        gap: the least distance.
        top: none stands above it.
    """
    order = sorted(range(len(positions)), key=lambda at: positions[at])
    placed = list(positions)
    for _ in range(200):
        moved = False
        for below, above in itertools.pairwise(order):
            lack = gap - (placed[above] - placed[below])
            if lack > 1e-9:
                placed[below] -= lack / 2
                placed[above] += lack / 2
                moved = True
        if not moved:
            break
    limit = top
    for at in reversed(order):
        placed[at] = min(placed[at], limit)
        limit = placed[at] - gap
    return placed


def dose_colours(count: int) -> list[str]:
    """Return colours from blue (few copies) to vermilion (many)."""
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    ramp = LinearSegmentedColormap.from_list("dose", [PALETTE[1], "#96588a", PALETTE[0]])
    return [to_hex(ramp(at / max(1, count - 1))) for at in range(count)]


def tokens_label(value: float, _: int) -> str:
    """Return a number of tokens as an axis shows it: `300k`."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
