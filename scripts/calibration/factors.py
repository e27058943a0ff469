"""Writes the tables of docs/factors.md: how often intervals about factors hold the truth.

python -m scripts.calibration.factors            # 1,000 studies a line: some 20 minutes on one core
python -m scripts.calibration.factors --studies 100 --print

What is simulated: `factor_studies.py`.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from scripts.calibration.factor_studies import (
    ArmsDesign,
    LineDesign,
    PlacedDesign,
    count_best,
    count_coefficients,
    count_contrasts,
    count_kappa,
    count_lines,
    count_seen,
    expected_power,
)
from scripts.calibration.page import write_tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "factors.md"

LINES = tuple(
    LineDesign(rows, slope, seeds, deviation, group)
    for rows, group in ((40, 1), (100, 1), (400, 1), (100, 4))
    for seeds, deviation in ((1, 0.0), (3, 0.0), (3, 0.03), (5, 0.03))
    for slope in (0.0, 0.15, 0.3)
)
ARMS = tuple(
    ArmsDesign(rows, aucs, seeds, deviation, group)
    for rows, group in ((30, 1), (100, 1), (100, 4))
    for seeds, deviation in ((1, 0.0), (3, 0.0), (3, 0.03), (5, 0.03))
    for aucs in ((0.5, 0.5, 0.5, 0.5), (0.6, 0.7, 0.8, 0.9))
)
BESTS = tuple(
    ArmsDesign(rows, (best, *[0.65] * 5), seeds, deviation)
    for rows in (40, 150)
    for seeds, deviation in ((1, 0.0), (3, 0.0), (3, 0.03), (5, 0.03))
    for best in (0.65, 0.7)
)
PLACED = tuple(
    PlacedDesign(rows, slope, axis, seeds, deviation, group)
    for rows, group in ((60, 1), (150, 1), (150, 3))
    for seeds, deviation in ((1, 0.0), (3, 0.0), (3, 0.1), (5, 0.1))
    for slope, axis in ((0.0, 0.0), (0.15, 0.3))
)
POWERS = tuple(
    ArmsDesign(rows, aucs, seeds, deviation)
    for rows, aucs in ((40, (0.63, 0.75)), (150, (0.57, 0.63)))
    for seeds, deviation in ((1, 0.0), (3, 0.0), (3, 0.03), (5, 0.03), (10, 0.03))
)


def line_table(studies: int) -> Iterator[list[str]]:
    """Yield a line a design."""
    yield ["rows a side", "seeds", "deviation", "slope", "slope held", "dose held", "line refused"]
    for design in LINES:
        found = count_lines(design, studies)
        yield [
            f"{design.rows}" + ("" if design.group == 1 else f", groups of {design.group}"),
            f"{design.seeds}",
            f"{design.deviation:g}",
            f"{design.slope:g}",
            *(f"{100 * value:.1f}" for value in found[:3]),
        ]


def arms_table(studies: int) -> Iterator[list[str]]:
    """Yield a line a design."""
    yield ["rows a side", "seeds", "deviation", "AUCs", "band holds all", "one interval holds"]
    for design in ARMS:
        found = count_contrasts(design, studies)
        yield [
            f"{design.rows}" + ("" if design.group == 1 else f", groups of {design.group}"),
            f"{design.seeds}",
            f"{design.deviation:g}",
            ", ".join(f"{auc:g}" for auc in design.aucs),
            *(f"{100 * value:.1f}" for value in found),
        ]


def regression_table(studies: int) -> Iterator[list[str]]:
    """Yield a line a design."""
    yield ["rows a side", "seeds", "deviation", "dose", "axis", "dose held", "axis held"]
    for design in PLACED:
        yield [
            f"{design.rows}" + ("" if design.group == 1 else f", groups of {design.group}"),
            f"{design.seeds}",
            f"{design.deviation:g}",
            f"{design.slope:g}",
            f"{design.axis:g}",
            *(f"{100 * value:.1f}" for value in count_coefficients(design, studies)),
        ]


def best_table(studies: int) -> Iterator[list[str]]:
    """Yield a line a design."""
    yield ["rows a side", "seeds", "deviation", "AUCs", "holds the best", "detectors in it"]
    for design in BESTS:
        held, size = count_best(design, studies)
        yield [
            f"{design.rows}",
            f"{design.seeds}",
            f"{design.deviation:g}",
            f"{design.aucs[0]:g}, then {design.aucs[1]:g}",
            f"{100 * held:.1f}",
            f"{size:.1f}",
        ]


def kappa_table(studies: int) -> Iterator[list[str]]:
    """Yield a line a design."""
    yield ["rows of the pool", "seeds", "correlation", "held"]
    for rows, group in ((100, 1), (400, 1), (400, 4)):
        for seeds in (2, 3, 5):
            for together in (0.0, 0.5):
                held = count_kappa(rows, group, seeds, together, studies)
                name = f"{rows}" + ("" if group == 1 else f", groups of {group}")
                shown = "none" if np.isnan(held) else f"{100 * held:.1f}"
                yield [name, f"{seeds}", f"{together:g}", shown]


def power_table(studies: int) -> Iterator[list[str]]:
    """Yield a line a design."""
    yield [
        "rows a side",
        "seeds",
        "deviation",
        "AUCs",
        "AUC: seen",
        "said",
        "difference: seen",
        "said",
    ]
    for design in POWERS:
        seen, said = count_seen(design, studies), expected_power(design)
        yield [
            f"{design.rows}",
            f"{design.seeds}",
            f"{design.deviation:g}",
            ", ".join(f"{auc:g}" for auc in design.aucs),
            *(f"{100 * value:.0f}" for pair in zip(seen, said, strict=True) for value in pair),
        ]


def main() -> None:
    """Simulate, and write or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    makers = {
        "factor-lines": line_table,
        "factor-contrasts": arms_table,
        "power": power_table,
        "best": best_table,
        "kappa": kappa_table,
        "regression": regression_table,
    }
    tables = {name: list(make(options.studies)) for name, make in makers.items()}
    counted = f"{options.studies:,} studies a line."
    write_tables(tables, page=PAGE, counted=counted, only_print=options.print)


if __name__ == "__main__":
    main()
