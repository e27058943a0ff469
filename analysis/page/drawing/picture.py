"""Pictures and their files: a drawing of the page as SVG and PNG, its numbers as CSV.

Colours are those of the light scheme. PNG is drawn in two fonts from this folder, and in no
other: without a font resvg draws no text and reports no error. The same picture gives the same
bytes.
Cost: 0.1 s a picture.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from analysis.page.drawing.elements import Drawing
from analysis.page.drawing.matrix import Grid, Matrix
from analysis.page.drawing.panels import Panels
from inject.files import write_text
from inject.tables import csv_text

_FOLDER = Path(__file__).parent
_FONTS = [str(_FOLDER / f"DejaVuSans{weight}.ttf") for weight in ("", "-Bold")]
_MARGIN = 8.0
_ZOOM = 2.0


class Picture(NamedTuple):
    """A figure, drawn here and nowhere else."""

    name: str
    """Anchor in the page, and stem of its files."""
    title: str
    caption: str
    drawing: Drawing
    rows: Sequence[Mapping[str, object]]
    """Its numbers, never rounded, one row per point: the content of NAME.csv."""
    width: float
    """Of the drawing for a column."""


def picture(
    name: str,
    title: str,
    caption: str,
    figure: Matrix | Panels | Grid | None,
    width: float,
    rows: Sequence[Mapping[str, object]] | None = None,
) -> Picture | None:
    """Return a picture; its numbers are those that are drawn unless there are more.

    Without a figure there is no picture.
    """
    if figure is None:
        return None
    numbers = figure.numbers() if rows is None else rows
    return Picture(name, title, caption, figure.draw(width), numbers, width)


def write_pictures(folder: Path, pictures: Iterable[Picture]) -> None:
    """Write NAME.svg, NAME.png and NAME.csv of each picture."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        svg = svg_file(picture.drawing)
        write_text(folder / f"{picture.name}.svg", svg)
        (folder / f"{picture.name}.png").write_bytes(png_bytes(svg))
        write_rows(folder / f"{picture.name}.csv", picture.rows)


def svg_file(drawing: Drawing) -> str:
    """Return the drawing for a column as a separate file."""
    head, _, marks = str(drawing.wide).partition(">")
    width, height = map(float, re.findall(r'viewBox="0 0 (\S+) (\S+)"', head)[0])
    wide, high = width + 2 * _MARGIN, height + 2 * _MARGIN
    for name, size in (("width", wide), ("height", high)):
        head = re.sub(rf' {name}="[^"]*"', f' {name}="{size:g}"', head)
    view = f'viewBox="{-_MARGIN:g} {-_MARGIN:g} {wide:g} {high:g}"'
    head = re.sub(r'viewBox="[^"]*"', view, head)
    paper = (
        f'<rect class="paper" x="{-_MARGIN:g}" y="{-_MARGIN:g}" width="{wide:g}" '
        f'height="{high:g}"/>'
    )
    return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{_style()}</style>{paper}{marks}\n'


def png_bytes(svg: str) -> bytes:
    """Return an SVG file as PNG."""
    import resvg_py

    return resvg_py.svg_to_bytes(
        svg_string=svg, zoom=_ZOOM, skip_system_fonts=True, font_files=_FONTS,
        font_family="DejaVu Sans", sans_serif_family="DejaVu Sans",
    )  # fmt: skip


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows as CSV (RFC 4180, UTF-8).

    Columns are in the order in which they first appear; a value that a row lacks is empty, as is
    NaN.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    write_text(path, csv_text(names, ([row.get(name) for name in names] for row in rows)))


@cache
def _style() -> Markup:
    """Return the rules of pictures, with the colours of the light scheme in place."""
    page = (_FOLDER.parent / "style.css").read_text(encoding="utf-8")
    root = re.findall(r":root \{(.*?)\}", page, re.DOTALL)[0]
    colours = dict(re.findall(r"--(\w+):\s*([^;]*);", root))
    rules = (_FOLDER / "drawing.css").read_text(encoding="utf-8")
    return Markup(re.sub(r"var\(--(\w+)\)", lambda used: colours[used[1]], rules))
