"""Draws docs/images/coverage.svg from docs/data/coverage.csv: one panel a table, one dot a cell.

python -m scripts.calibration.plots
"""

import csv
from collections import Counter
from pathlib import Path

from scripts.calibration.cells.__main__ import FILE
from scripts.calibration.coverage import HIGH, LOW

PICTURE = FILE.parents[1] / "images" / "coverage.svg"
FLOOR = 0.9
"""Lower cells stand at the left edge."""


def draw(file: Path = FILE, picture: Path = PICTURE) -> None:
    """Draw every table of a file."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "coverage", "font.size": 9})
    import matplotlib.pyplot as plt

    with file.open(encoding="utf-8", newline="") as lines:
        cells = list(csv.DictReader(lines))
    tables = list(dict.fromkeys(cell["table"] for cell in cells))
    figure, axes = plt.subplots(
        len(tables), 1, figsize=(7, 0.7 * len(tables) + 0.8), sharex=True, squeeze=False
    )
    for axis, table in zip(axes[:, 0], tables, strict=True):
        held = [float(cell["coverage"]) for cell in cells if cell["table"] == table]
        places = [max(round(200 * share) / 200, FLOOR) for share in held]
        height: Counter[float] = Counter()
        points = []
        for place in sorted(places):
            points.append((100 * place, height[place]))
            height[place] += 1
        axis.axvspan(100 * LOW, 100 * HIGH, color="#dfeadf", zorder=0)
        axis.axvline(95, color="#6b8f71", linewidth=0.8)
        axis.scatter(*zip(*points, strict=True), s=10, color="#1f4e79", zorder=2)
        axis.set_ylim(-1, max(max(height.values()), 4))
        axis.set_yticks([])
        axis.set_ylabel(f"{table} ({len(held)})", rotation=0, ha="right", va="center")
        for side in ("top", "right", "left"):
            axis.spines[side].set_visible(False)
    axes[-1, 0].set_xlim(100 * FLOOR - 0.5, 100.5)
    axes[-1, 0].set_xlabel("studies whose interval holds the truth, % (95 asked for)")
    figure.tight_layout()
    figure.savefig(picture, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    draw()
