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


def write_figures(out: Path, figures: Iterable[Figure]) -> list[ReportFigure]:
    """Write figures/NAME.svg, .png and .csv below a folder, and which there are."""
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    written = [_write_figure(figure, folder) for figure in figures]
    record = [
        {**asdict(one), "svg": str(one.svg.relative_to(out)), "png": str(one.png.relative_to(out))}
        for one in written
    ]
    (out / FIGURES).write_text(json.dumps(record, indent=1))
    return written


def read_figures(folder: Path) -> list[ReportFigure]:
    """Return the figures of a folder."""
    return [
        ReportFigure(**{**entry, "svg": folder / entry["svg"], "png": folder / entry["png"]})
        for entry in json.loads((folder / FIGURES).read_text())
    ]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV (RFC 4180, UTF-8); no file where there are none.

    Columns stand in the order in which they first appear; what a row lacks is empty, NaN too.
    """
    if rows:
        names = list(dict.fromkeys(name for row in rows for name in row))
        write_text(path, csv_text(names, ([row.get(name) for name in names] for row in rows)))


def _write_figure(figure: Figure, folder: Path) -> ReportFigure:
    svg, png = folder / f"{figure.name}.svg", folder / f"{figure.name}.png"
    write_drawing(figure, svg, png)
    write_rows(svg.with_suffix(".csv"), figure.rows)
    said = {key: getattr(figure, key) for key in ("name", "title", "caption", "alternative")}
    return ReportFigure(**said, svg=svg, png=png)
