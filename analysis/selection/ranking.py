"""What is called best, everywhere: in the headline, in bold, in the figures and in differences.

The best detector of an arm has the highest AUC on the `tune` rows, which no reported number is
measured on: the best of 16 equal pairs, chosen on the rows that it is reported on, looks .02 to .04
better than it is. Contestants look at the model, know no more than an auditor can, and were
measured on the rows that the others were measured on. Where there are no tune rows the lower bound
decides, to the two digits that are shown, then the AUC; the page says so.
"""

from collections import Counter
from collections.abc import Mapping
from math import inf, isfinite

from analysis.arm import MODEL_FREE, UPPER_BOUNDS
from analysis.metrics_table import Cell, CohortMetrics


def reported_cell(
    table: CohortMetrics, detector: str, *, dataset: str = "all", copies: str = "all"
) -> Cell | None:
    """Return the AUC that stands for a detector: the tuned setting's, else the default's."""
    tuned = table.get(detector, dataset=dataset, selection="tuned", copies=copies)
    return tuned or table.get(detector, dataset=dataset, copies=copies)


def common_rows(cells: Mapping[str, Cell | None]) -> tuple[int, int]:
    """Return how many members and non-members most of the detectors were measured on."""
    counts = Counter(
        (cell.n_members, cell.n_nonmembers) for cell in cells.values() if cell is not None
    )
    return max(counts, key=lambda rows: (counts[rows], rows), default=(0, 0))


def rank_detectors(cells: Mapping[str, Cell | None]) -> list[str]:
    """Return the contestants, best first.

    Args:
        cells: of one arm and selection, by detector.
    """
    there = {name: cell for name, cell in cells.items() if cell is not None and cell.available}
    rows = common_rows({name: c for name, c in there.items() if name not in MODEL_FREE})
    found = [
        name
        for name, cell in there.items()
        if name not in MODEL_FREE and (cell.n_members, cell.n_nonmembers) == rows
    ]
    contestants = [name for name in found if name not in UPPER_BOUNDS] or found
    return sorted(contestants, key=lambda name: rank_key(there[name]), reverse=True)


def rank_key(cell: Cell) -> tuple[float, float, float]:
    """Return what cells are ranked by, highest best."""
    return cell.tune if isfinite(cell.tune) else -inf, round(cell.low, 2), cell.value
