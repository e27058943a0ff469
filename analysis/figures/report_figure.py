"""A figure on disk: its drawing in two forms, its numbers, and what is said of it."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from analysis.figures.panel import Figure, Row
from analysis.figures.render import write_drawing
from inject.files import write_text
from inject.tables import csv_text

FIGURES = "figures.json"


@dataclass(frozen=True, kw_only=True)
class ReportFigure:
    """One finished figure; what it says is `analysis.figures.panel.Figure`'s."""

    name: str
    title: str
    caption: str
    alternative: str
    files: tuple[Path, ...]
    """The drawing as SVG and as PNG, and the numbers that are drawn, if any, as CSV."""

    @property
    def svg(self) -> Path:
        """The drawing, for the page."""
        return self.files[0]


def write_figures(out: Path, figures: Iterable[Figure]) -> list[ReportFigure]:
    """Write figures/NAME.svg, .png and .csv below a folder, and which there are."""
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    written = [_write_figure(figure, folder) for figure in figures]
    record = [
        {**asdict(figure), "files": [path.name for path in figure.files]} for figure in written
    ]
    (out / FIGURES).write_text(json.dumps(record, indent=1))
    return written


def read_figures(out: Path) -> list[ReportFigure]:
    """Return the figures of a folder."""
    return [
        ReportFigure(**{**entry, "files": tuple(out / "figures" / name for name in entry["files"])})
        for entry in json.loads((out / FIGURES).read_text())
    ]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV (RFC 4180, UTF-8).

    Columns stand in the order in which they first appear; what a row lacks is empty, NaN too.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    write_text(path, csv_text(names, ([row.get(name) for name in names] for row in rows)))


def _write_figure(figure: Figure, folder: Path) -> ReportFigure:
    files = tuple(folder / f"{figure.name}{form}" for form in (".svg", ".png", ".csv"))
    write_drawing(figure, *files[:2])
    if figure.rows:
        write_rows(files[2], figure.rows)
    said = {key: getattr(figure, key) for key in ("name", "title", "caption", "alternative")}
    return ReportFigure(**said, files=files if figure.rows else files[:2])
