"""Writes the tables of docs/statistics.md: how often intervals hold the truth.

python -m scripts.calibration            # 1,000 studies a cell: some minutes on one core
python -m scripts.calibration --studies 100 --print
python -m scripts.calibration --only trends fading
"""

import argparse
from collections.abc import Iterator, Sequence
from math import sqrt
from pathlib import Path

import numpy as np

from analysis.intervals.bounds import Scale, find_interval
from scripts.calibration.adjusted import pairs, studies_of
from scripts.calibration.fading import slopes, trainings
from scripts.calibration.levels import level_cases
from scripts.calibration.others import (
    Case,
    coverage,
    difference_cases,
    intervals,
    pooled_cases,
    pooled_rate_cases,
    rate_cases,
    realised_rates,
    trend_cases,
)
from scripts.calibration.page import write_tables
from scripts.calibration.simulation import Design, simulate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "statistics.md"
ROWS = (20, 40, 100, 400)
AUCS = (0.5, 0.65, 0.8, 0.9, 0.95, 0.98)
SEEDS = ((1, 0.0), (3, 0.0), (3, 0.03), (3, 0.07), (5, 0.0), (5, 0.03), (5, 0.07))
LOW, HIGH = 0.92, 0.975
"""What is asked of every cell."""


def auc_table(studies: int, group: int) -> Iterator[list[str]]:
    """Yield the coverage of AUC intervals: a line a number of seeds and rows, a column an AUC."""
    yield ["seeds", "deviation", "rows a side", *(f"AUC {auc}" for auc in AUCS)]
    for seeds, deviation in SEEDS:
        for rows in ROWS:
            cells = []
            for auc in AUCS:
                made = simulate(Design(rows, group, auc, seeds, deviation), studies)
                found = find_interval(made.found, Scale.AUC, confidence=0.95, grouped=group > 1)
                cells.append(shown(*coverage(found, made.truth)))
            yield [str(seeds), f"{deviation:g}", str(rows), *cells]


def case_table(cases: Sequence[Case], studies: int) -> Iterator[list[str]]:
    """Yield a line a case."""
    yield ["case", "truth", "coverage"]
    for case in cases:
        found = coverage(intervals(case, studies), case.truth)
        yield [case.name, f"{case.truth:.3f}", shown(*found)]


def slope_table(studies: int) -> Iterator[list[str]]:
    """Yield the coverage of slopes within examples, and how often times of examples mislead."""
    yield ["training", "truth", "coverage", "times of different texts say something"]
    for training in trainings():
        truth, held, without, misled = slopes(training, studies)
        # Rounded to nothing, but for its sign.
        yield [training.name, f"{truth + 0.0:.3f}", shown(held, without), f"{100 * misled:.0f} %"]


def adjusted_table(studies: int) -> Iterator[list[str]]:
    """Yield the coverage of raw and adjusted AUCs, and how much narrower the latter are."""
    yield ["case", "raw", "adjusted", "width"]
    for pair in pairs():
        found = studies_of(pair, studies)
        width = np.nanmedian(found.adjusted.high - found.adjusted.low)
        narrower = width / np.nanmedian(found.raw.high - found.raw.low)
        cells = [shown(*coverage(one, found.truth)) for one in (found.raw, found.adjusted)]
        yield [pair.name, *cells, f"× {narrower:.2f}"]


def rate_table(studies: int) -> Iterator[list[str]]:
    """Yield the FPR that a threshold really has, by the non-members that it was set on."""
    yield ["FPR asked", "non-members of a dataset", "k / m", "(k + 1) / (m + 1)"]
    for rate, outside in ((0.1, 10), (0.1, 25), (0.1, 100), (0.05, 20), (0.05, 50), (0.01, 100)):
        plain, careful = realised_rates(rate, outside, 10 * studies)
        yield [f"{rate:g}", str(outside), f"{plain:.3f}", f"{careful:.3f}"]


def shown(held: float, without: float) -> str:
    """Return a cell: coverage in percent, bold outside of what is asked, and who has none."""
    if np.isnan(held):
        return "none"
    text = f"{100 * held:.1f}"
    if not LOW <= held <= HIGH:
        text = f"**{text}**"
    return text if without < 0.0005 else f"{text} ({100 * without:.0f} % none)"


def main() -> None:
    """Simulate, and write or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="these tables alone")
    options = parser.parse_args()
    studies = options.studies
    tables = {
        "auc": auc_table(studies, 1),
        "auc-groups": auc_table(studies, 4),
        "pooled": case_table(pooled_cases(), studies),
        "differences": case_table(difference_cases(), studies),
        "adjusted": adjusted_table(studies),
        "trends": case_table(trend_cases(), studies),
        "levels": case_table(level_cases(), studies),
        "fading": slope_table(studies),
        "tpr": case_table(rate_cases(), studies),
        "pooled-tpr": case_table(pooled_rate_cases(), studies),
        "realised-fpr": rate_table(studies),
    }
    if unknown := set(options.only or ()) - tables.keys():
        parser.error(
            f"no table is called {', '.join(sorted(unknown))}; there are {', '.join(tables)}"
        )
    wanted = options.only or list(tables)
    found = {name: list(tables[name]) for name in wanted}
    error = 100 * sqrt(0.95 * 0.05 / studies)
    counted = f"{studies:,} studies a cell; a true 95 % has a standard error of {error:.1f} points."
    write_tables(found, page=PAGE, counted=counted, only_print=options.print)


if __name__ == "__main__":
    main()
