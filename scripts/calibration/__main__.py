"""Writes the tables of docs/statistics.md: how often intervals hold the truth.

python -m scripts.calibration            # 1,000 studies a cell: some minutes on one core
python -m scripts.calibration --studies 100 --print
python -m scripts.calibration --only trends fading
"""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from math import sqrt
from pathlib import Path

import numpy as np

from analysis.intervals.bounds import Scale, find_interval
from scripts.calibration.adjusted import Pair, pairs, studies_of
from scripts.calibration.coverage import AGAIN, Coverage, coverage, simulated
from scripts.calibration.fading import Slopes, Training, slopes, trainings
from scripts.calibration.levels import level_cases
from scripts.calibration.others import (
    Case,
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
from scripts.calibration.unlearning import level_table, unlearning_table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "statistics.md"
ROWS = (20, 40, 100, 400)
AUCS = (0.5, 0.65, 0.8, 0.9, 0.95, 0.98)
SEEDS = ((1, 0.0), (3, 0.0), (3, 0.03), (3, 0.07), (5, 0.0), (5, 0.03), (5, 0.07))


def auc_table(studies: int, group: int) -> Iterator[list[str]]:
    """Yield the coverage of AUC intervals: a line a number of seeds and rows, a column an AUC."""
    yield ["seeds", "deviation", "rows a side", *(f"AUC {auc}" for auc in AUCS)]
    for seeds, deviation in SEEDS:
        for rows in ROWS:
            designs = [Design(rows, group, auc, seeds, deviation) for auc in AUCS]
            cells = [simulated(partial(auc_coverage, one, studies)) for one in designs]
            yield [str(seeds), f"{deviation:g}", str(rows), *cells]


def auc_coverage(design: Design, studies: int, draw: str) -> Coverage:
    """Return the coverage of one cell of the table."""
    made = simulate(design, studies, draw)
    found = find_interval(made.found, Scale.AUC, confidence=0.95, grouped=design.group > 1)
    return coverage(found, made.truth)


def case_table(cases: Sequence[Case], studies: int) -> Iterator[list[str]]:
    """Yield a line a case."""
    yield ["case", "truth", "coverage"]
    for case in cases:
        cell = simulated(partial(case_coverage, case, studies))
        yield [case.name, f"{case.truth:.3f}", cell]


def case_coverage(case: Case, studies: int, draw: str) -> Coverage:
    """Return the coverage of one case."""
    return coverage(intervals(case, studies, draw), case.truth)


def slope_table(studies: int) -> Iterator[list[str]]:
    """Yield the coverage of slopes within examples, and how often times of examples mislead."""
    yield ["training", "truth", "coverage", "times of different texts say something"]
    for training in trainings():
        first = slopes(training, studies)

        def drawn(draw: str, training: Training = training, first: Slopes = first) -> Coverage:
            return slopes(training, studies, draw).coverage if draw else first.coverage

        # Rounded to nothing, but for its sign.
        truth = f"{first.truth + 0.0:.3f}"
        yield [training.name, truth, simulated(drawn), f"{100 * first.misled:.0f} %"]


def adjusted_table(studies: int) -> Iterator[list[str]]:
    """Yield the coverage of raw and adjusted AUCs, and how much narrower the latter are."""
    yield ["case", "raw", "adjusted", "width"]
    for pair in pairs():
        found = studies_of(pair, studies)
        width = np.nanmedian(found.adjusted.high - found.adjusted.low)
        narrower = width / np.nanmedian(found.raw.high - found.raw.low)
        cells = [
            simulated(partial(adjusted_coverage, pair, studies, adjusted=adjusted))
            for adjusted in (False, True)
        ]
        yield [pair.name, *cells, f"× {narrower:.2f}"]


def adjusted_coverage(pair: Pair, studies: int, draw: str, *, adjusted: bool) -> Coverage:
    """Return the coverage of raw or of adjusted AUCs of one line."""
    found = studies_of(pair, studies, draw)
    return coverage(found.adjusted if adjusted else found.raw, found.truth)


def rate_table(studies: int) -> Iterator[list[str]]:
    """Yield the FPR that a threshold really has, by the non-members that it was set on."""
    yield ["FPR asked", "non-members of a dataset", "k / m", "(k + 1) / (m + 1)"]
    for rate, outside in ((0.1, 10), (0.1, 25), (0.1, 100), (0.05, 20), (0.05, 50), (0.01, 100)):
        plain, careful = realised_rates(rate, outside, 10 * studies)
        yield [f"{rate:g}", str(outside), f"{plain:.3f}", f"{careful:.3f}"]


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
        "unlearning": unlearning_table(studies),
        "forget-quality": level_table(studies),
    }
    if unknown := set(options.only or ()) - tables.keys():
        parser.error(
            f"no table is called {', '.join(sorted(unknown))}; there are {', '.join(tables)}"
        )
    wanted = options.only or list(tables)
    found = {name: list(tables[name]) for name in wanted}
    error = 100 * sqrt(0.95 * 0.05 / studies)
    counted = (
        f"{studies:,} studies a cell; a true 95 % has a standard error of {error:.1f} points. "
        f"†: {AGAIN * studies:,} new studies."
    )
    write_tables(found, page=PAGE, counted=counted, only_print=options.print)


if __name__ == "__main__":
    main()
