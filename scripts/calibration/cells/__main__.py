"""Simulates the coverage cells and writes docs/data/coverage.csv.

python -m scripts.calibration.cells                    # 1,000 studies per cell, all cells
python -m scripts.calibration.cells --only "t2" --studies 2000 --print

All other modules of this package with `CELLS` are read. Simulated cells replace their own lines in
the file; the others stay. A cell outside its limits is simulated again with ten times as many new
studies, and only these are written.
"""

import argparse
import csv
import importlib
import pkgutil
from pathlib import Path

from scripts.calibration import cells as package
from scripts.calibration.cells.cell import Cell, Counted, count
from scripts.calibration.coverage import AGAIN

FILE = Path(__file__).resolve().parents[3] / "docs" / "data" / "coverage.csv"


def all_cells() -> list[Cell]:
    """Return the cells of all other modules of this package."""
    names = sorted(submodule.name for submodule in pkgutil.iter_modules(package.__path__))
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names
               if not name.startswith("_")]  # fmt: skip
    return [cell for module in modules for cell in getattr(module, "CELLS", ())]


def write(counted: list[Counted], file: Path = FILE) -> None:
    """Write lines into the file, replacing those of the same cells."""
    lines: dict[tuple[str, str], list[str]] = {}
    if file.exists():
        with file.open(encoding="utf-8", newline="") as old:
            lines = {(line[0], line[1]): line for line in list(csv.reader(old))[1:]}
    for cell in counted:
        values = [
            f"{cell.coverage:.4f}",
            f"{cell.refused:.4f}",
            str(cell.studies),
            f"{cell.width:.4f}",
        ]
        lines[cell.table, cell.cell] = [cell.table, cell.cell, f"{cell.nominal:g}", *values]
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as new:
        writer = csv.writer(new, lineterminator="\n")
        writer.writerows([list(Counted._fields), *sorted(lines.values())])


def main() -> None:
    """Simulate, print each cell, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--only", default="", help="cells whose `table: name` has this in it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--print", action="store_true", help="write nothing")
    options = parser.parse_args()
    counted = []
    for cell in all_cells():
        if options.only not in f"{cell.table}: {cell.name}":
            continue
        result = count(cell, options.studies, seed=options.seed)
        if not result.holds:
            # One cell in many fails by chance: count only new studies.
            result = count(cell, AGAIN * options.studies, seed=options.seed + 1)
        counted.append(result)
        mark = " " if result.holds else "*"
        print(
            f"{mark} {result.table}: {result.cell:<60} {100 * result.coverage:5.1f} "
            f"refused {100 * result.refused:5.1f} width {result.width:.3f}",
            flush=True,
        )
    if not options.print:
        write(counted, FILE)


if __name__ == "__main__":
    main()
