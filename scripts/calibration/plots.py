"""Draw docs/images/coverage.svg from docs/data/coverage.csv: one panel per table, one dot per cell.

python -m scripts.calibration.plots
"""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from analysis.page.drawing.elements import Scale, both_sizes, box, element, path, text
from analysis.page.drawing.picture import svg_file
from scripts.calibration.cells.__main__ import FILE
from scripts.calibration.coverage import HIGH, LOW

PICTURE = FILE.parents[1] / "images" / "coverage.svg"
FLOOR = 0.9
"""Lower cells are at the left edge."""
LEFT, DOT = 130.0, 4.4


def draw(file: Path = FILE, picture: Path = PICTURE) -> None:
    """Draw all tables of a file."""
    with file.open(encoding="utf-8", newline="") as lines:
        cells = list(csv.DictReader(lines))
    tables: dict[str, list[float]] = {}
    for cell in cells:
        tables.setdefault(cell["table"], []).append(float(cell["coverage"]))
    label = f"How often 95 % intervals hold the truth: {len(cells)} cells of {len(tables)} tables"
    drawing = both_sizes(lambda width, _: _strips(tables, width), 640.0, label)
    picture.write_text(svg_file(drawing), encoding="utf-8")


def _strips(tables: Mapping[str, Sequence[float]], width: float) -> tuple[Markup, float]:
    """Return a strip a table, in which equal cells are above each other."""
    along = Scale(FLOOR - 0.003, 1.003, LEFT, width)
    marks, top = [], 0.0
    for table, shares in tables.items():
        heights = Counter(max(round(200 * share) / 200, FLOOR) for share in shares)
        bottom = top + DOT * max(4, *heights.values()) + 8
        marks.append(box(along(LOW), top, along(HIGH) - along(LOW), bottom - top, "zone"))
        marks.append(path([(along(0.95), top), (along(0.95), bottom)], "ch"))
        marks.append(path([(LEFT, bottom), (width, bottom)], "gr"))
        name = f"{table} ({len(shares)})"
        marks.append(text(LEFT - 8, (top + bottom) / 2 + 4, name, "sm", "end"))
        marks += [
            element("circle", cx=along(place), cy=bottom - DOT * (at + 0.7), r=1.9, cls="do")
            for place, count in heights.items()
            for at in range(count)
        ]
        top = bottom + 4
    for tick in range(90, 101, 2):
        marks.append(text(along(tick / 100), top + 12, f"{tick}", "m xs", "middle"))
    axis_label = "studies whose interval holds the truth, % (95 expected)"
    marks.append(text((LEFT + width) / 2, top + 28, axis_label, "m sm", "middle"))
    return Markup("").join(marks), top + 34


if __name__ == "__main__":
    draw()
