"""Simulates what `scripts.calibration.cells` leaves: lines of docs/data/coverage.csv by table.

python -m scripts.calibration                          # 1,000 studies a line: some minutes
python -m scripts.calibration --studies 100 --print
python -m scripts.calibration --only trends fading

A line outside of 92 to 97.5 % is simulated again with ten times as many new studies, and only
these are written. The studies are drawn here; the report's functions compute the intervals.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from math import nan
from typing import NamedTuple

from scripts.calibration.adjusted import Pair, pairs, studies_of
from scripts.calibration.cells.__main__ import write
from scripts.calibration.cells.cell import Counted
from scripts.calibration.coverage import Coverage, coverage, settled
from scripts.calibration.fading import Training, slopes, trainings
from scripts.calibration.levels import level_cases
from scripts.calibration.others import (
    Case,
    intervals,
    pooled_cases,
    pooled_rate_cases,
    rate_cases,
    trend_cases,
)
from scripts.calibration.unlearning import case_coverage, unlearning_cases


class Line(NamedTuple):
    """One line of the file."""

    table: str
    name: str
    draw: Callable[[int, str], Coverage]
    """Simulates so many studies; another name is another draw."""


def lines() -> Iterator[Line]:
    """Yield every line."""
    cases = {
        "datasets": pooled_cases(),
        "trends": trend_cases(),
        "levels": level_cases(),
        "tpr": rate_cases(),
        "tpr-datasets": pooled_rate_cases(),
    }
    for table, of_table in cases.items():
        for case in of_table:
            yield Line(table, case.name, partial(_case_coverage, case))
    for pair in pairs():
        yield Line("adjusted", pair.name, partial(_adjusted, pair))
    for training in trainings():
        yield Line("fading", training.name, partial(_fading, training))
    for unlearning_case in unlearning_cases():
        name = (
            f"{unlearning_case.measure}, {unlearning_case.design.text()}, {unlearning_case.named}"
        )
        yield Line("unlearning", name, partial(case_coverage, unlearning_case))


def _case_coverage(case: Case, studies: int, draw: str) -> Coverage:
    return coverage(intervals(case, studies, draw), case.truth)


def _adjusted(pair: Pair, studies: int, draw: str) -> Coverage:
    studies_found = studies_of(pair, studies, draw)
    return coverage(studies_found.adjusted, studies_found.truth)


def _fading(training: Training, studies: int, draw: str) -> Coverage:
    return slopes(training, studies, draw).coverage


def main() -> None:
    """Simulate, print each line, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--print", action="store_true", help="write nothing")
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="only these tables")
    options = parser.parse_args()
    all_lines = list(lines())
    tables = list(dict.fromkeys(line.table for line in all_lines))
    if unknown := set(options.only or ()) - set(tables):
        parser.error(
            f"no table is called {', '.join(sorted(unknown))}; there are {', '.join(tables)}"
        )
    counted = []
    for line in all_lines:
        if line.table not in (options.only or tables):
            continue
        cell = settled(partial(line.draw, options.studies))
        refused = 1 - cell.given / cell.studies
        result = Counted(line.table, line.name, 0.95, cell.share, refused, cell.studies, nan)
        counted.append(result)
        print(f"{line.table}: {line.name}: {100 * result.coverage:.1f} refused {100 * refused:.1f}")
    if not options.print:
        write(counted)


if __name__ == "__main__":
    main()
