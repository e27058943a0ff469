"""The definition of best, used in the headline, in bold, in the figures and in differences.

The best detector of an arm has the highest AUC on the `tune` rows, which no reported number is
measured on: the best of 16 equal pairs, chosen on the rows that it is reported on, looks .02 to .04
better than it is. Contestants look at the model, know no more than an auditor can, and were
measured on the rows that the others were measured on. Without tuning rows the lower bound decides,
and the page states it. AUCs that differ only by rounding are equal, and the first is chosen:
processors differ in the last bits of a score, and no choice may depend on them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf, isfinite, nan

from analysis.arm import MODEL_FREE, UPPER_BOUNDS
from analysis.findings import Findings, Key
from analysis.intervals.estimate import Estimate
from analysis.metrics import TUNE_AUC

TIE = 1e-6
"""AUCs that are not further apart are equal; two rows that change places move one by more."""


def common_rows(cells: Mapping[str, Estimate | None]) -> tuple[int, int]:
    """Return the counts of members and non-members that most of the detectors were measured on."""
    counts = Counter((cell.members, cell.nonmembers) for cell in cells.values() if cell is not None)
    return max(counts, key=lambda rows: (counts[rows], rows), default=(0, 0))


def tune_auc(table: Findings, detector: str) -> float:
    """Return the AUC on the `tune` rows of the setting that stands for a detector; NaN without."""
    estimate = table.reported(detector, metric=TUNE_AUC)
    return nan if estimate is None else estimate.value


def ranked(table: Findings) -> list[str]:
    """Return the contestants of an arm by what is reported of them, best first."""
    names = table.values("detector")
    return rank_detectors(
        {name: table.reported(name) for name in names},
        {name: tune_auc(table, name) for name in names},
    )


def rank_detectors(cells: Mapping[str, Estimate | None], tune: Mapping[str, float]) -> list[str]:
    """Return the contestants, best first.

    Args:
        cells: of one arm and selection, by detector.
        tune: their AUCs on the `tune` rows.
    """
    available = {name: cell for name, cell in cells.items() if cell is not None and cell.available}
    rows = common_rows({name: c for name, c in available.items() if name not in MODEL_FREE})
    comparable = [
        name
        for name, cell in available.items()
        if name not in MODEL_FREE and (cell.members, cell.nonmembers) == rows
    ]
    contestants = [name for name in comparable if name not in UPPER_BOUNDS] or comparable
    return best_first({name: available[name] for name in contestants}, tune)


def best_first(cells: Mapping[Key, Estimate], tune: Mapping[Key, float]) -> list[Key]:
    """Return the keys of cells in the order of their AUC on `tune`, or of their lower bounds."""
    names = list(cells)
    values = [tune[name] for name in names]
    if not any(map(isfinite, values)):
        values = [cell.low for cell in cells.values()]
    return [names[at] for at in highest_first(values)]


def highest_first(values: Sequence[float]) -> list[int]:
    """Return the positions of values in falling order; ties in their own order, NaN last."""
    heights = [value if isfinite(value) else -inf for value in values]
    left, ordered = list(range(len(heights))), []
    while left:
        top = max(heights[at] for at in left)
        ordered += [at for at in left if heights[at] >= top - TIE]
        left = [at for at in left if heights[at] < top - TIE]
    return ordered
