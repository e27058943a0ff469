"""A validation for people and for programs: a page, and plain JSON values.

The page is one self-contained HTML file, in the look of a run's report.

Styles and the figure are inside, there is no script, and a content security policy forbids loading
anything. Every text is escaped by the template engine; the figure is let through as `inline_svg`
has checked it.
"""

import tempfile
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from markupsafe import Markup

from analysis.figures.captions import seeds_text
from analysis.figures.panel import MUTED, PALETTE, Axis, Figure, Panel, Rule, Series
from analysis.figures.render import write_drawing
from analysis.metrics_table import Cell
from analysis.page.grids import copies_tables, dataset_tables
from analysis.page.parts import FILTERS
from analysis.page.svg import inline_svg
from analysis.page.table import Table
from analysis.page.template import page_template
from analysis.validate.ranking import Difference, Ranked
from analysis.validate.validation import Judged, Validation
from inject.files import write_text
from inject.secrets import masked

_VERDICTS = {"wrong": "failed", "look": "", "note": "", "passed": "passed"}


def write_page(path: Path, found: Validation) -> Path:
    """Write the page of a validation to a file, whole or not at all; return its path."""
    write_text(path, render(found))
    return path


def render(found: Validation) -> str:
    """Return the page as text."""
    filters = {"masked": masked, **FILTERS}
    template = page_template("analysis.validate", "validation.html.j2", filters=filters)
    figure = forest_figure(found)
    drawn = None if figure is None else _inline(figure)
    return template.render(
        verdicts=_VERDICTS,
        found=found,
        figure=figure,
        drawn=drawn,
        sentences=[_sentence(found, one) for one in found.judged],
        rates=[
            rate
            for rate in found.settings.false_positive_rates
            if any(_there(line.tpr[rate]) for line in found.ranking.lines)
        ],
        grids=_grids(found),
        differences=[(one.name, _differences(found, one.name)) for one in found.judged],
    )


def _inline(figure: Figure) -> Markup:
    with tempfile.TemporaryDirectory() as folder:
        svg = Path(folder) / "forest.svg"
        write_drawing(figure, svg)
        return inline_svg(svg, "forest", figure.alternative)


def forest_figure(found: Validation) -> Figure | None:
    """Return the ranking as a dot plot, the highest AUC on top; None where no detector has one."""
    cells = [
        (line, line.auc) for line in found.ranking.lines if line.auc and isfinite(line.auc.value)
    ]
    if not cells:
        return None
    shared = next((cell for line, cell in cells if not line.own_rows), cells[0][1])
    apart = [line.detector for line, _ in cells if line.own_rows]
    own = f" On rows of their own: {', '.join(apart)}." if apart else ""
    names = [line.detector for line, _ in cells]
    return Figure(
        name="forest",
        title="AUC by detector",
        caption=f"AUC over all members with at least one copy in the arm {found.arm}, with "
        f"{found.settings.confidence:.0%} intervals (from influence values, summed by group). "
        "Diamonds: the judged detectors; grey: a control or an upper bound. Settings were chosen "
        f"on the tune split. The dashed line is chance. {shared.n_members} members and "
        f"{shared.n_nonmembers} non-members of the test split, {seeds_text([shared.n_seeds])}{own}",
        alternative="Forest plot, the highest first: "
        + "; ".join(f"{line.detector} {_auc_text(cell)}" for line, cell in cells)
        + ".",
        panels=[
            Panel(
                series=[_dot(at, line, cell) for at, (line, cell) in enumerate(cells)],
                x=Axis(label="AUC"),
                y=Axis(
                    names=names, strong=frozenset(one.detector for one, _ in cells if one.judged)
                ),
                rules=[Rule(0.5, "x")],
            )
        ],
        height=0.9 + 0.3 * len(cells),
    )


def _dot(at: int, line: Ranked, cell: Cell) -> Series:
    return Series(
        x=[cell.value], y=[at], low=[cell.low], high=[cell.high], interval="x",
        colour=PALETTE[0] if line.judged else MUTED if line.role else PALETTE[1],
        mark="D" if line.judged else "o", hollow=line.own_rows, width=2.6 if line.judged else 1.6,
        size=7 if line.judged else 5,
    )  # fmt: skip


def _auc_text(cell: Cell) -> str:
    ends = f" ({cell.low:.2f} to {cell.high:.2f})" if isfinite(cell.low) else ""
    return f"{cell.value:.2f}{ends}"


def _sentence(found: Validation, one: Judged) -> str:
    line = found.ranking.line(one.name)
    ranked = sum(1 for other in found.ranking.lines if other.rank is not None)
    wrong = [finding.check for finding in one.findings if finding.severity == "wrong"]
    cell = line.auc
    if line.rank is None or cell is None:
        place = f"{one.name} has no AUC"
    else:
        place = (
            f"{one.name} has AUC {cell.value:.2f} [{cell.low:.2f}, {cell.high:.2f}] and ranks "
            f"{line.rank} of {ranked} detectors"
        )
    if not wrong:
        return f"{place}; the checks find nothing wrong."
    return f"{place}; the checks find something wrong: {', '.join(wrong)}."


def _grids(found: Validation) -> list[Table]:
    names = [line.detector for line in found.ranking.lines]
    table = found.ranking.table
    return [*dataset_tables(table, names), *copies_tables(table, names)]


def _differences(found: Validation, name: str) -> list[Difference]:
    every = (found.ranking.difference(name, line.detector) for line in found.ranking.lines)
    return [one for one in every if one is not None and isfinite(one.estimate.value)]


def _there(cell: Cell | None) -> bool:
    return cell is not None and isfinite(cell.value)


def plain_validation(found: Validation) -> dict[str, Any]:
    """Return everything that a validation says; what could not be measured is null."""
    return {
        "experiment": found.name,
        "source": found.source,
        "content": found.content or None,
        "provenance": found.provenance.model_dump(mode="json"),
        "arm": found.arm,
        "arms": list(found.arms),
        "confidence": found.settings.confidence,
        "ranking": [_line(one) for one in found.ranking.lines],
        "metrics": [_finite(row) for row in found.ranking.metrics.to_pylist()],
        "differences": [_difference(one) for one in found.ranking.differences],
        "detectors": [_judged(one) for one in found.judged],
        "refused": [asdict(one) for one in found.refused],
    }


def _line(one: Ranked) -> dict[str, Any]:
    return {
        "rank": one.rank,
        "detector": one.detector,
        "setting": one.setting,
        "selection": one.selection,
        "judged": one.judged,
        "role": one.role or None,
        "own_rows": one.own_rows,
        "auc": _cell(one.auc),
        "tpr": {f"{rate:g}": _cell(cell) for rate, cell in one.tpr.items()},
    }


def _judged(one: Judged) -> dict[str, Any]:
    return {
        "detector": one.name,
        "given": one.candidate.given,
        "takes": one.candidate.takes,
        "seconds_per_thousand_rows": one.seconds,
        "findings": [finding._asdict() for finding in one.findings],
        "arms": {arm: _cell(cell) for arm, cell in one.arms},
        "notes": list(one.notes),
    }


def _difference(one: Difference) -> dict[str, Any]:
    plain = one._asdict()
    estimate = plain.pop("estimate")
    return {**plain, **_finite(estimate._asdict())}


def _cell(cell: Cell | None) -> dict[str, Any] | None:
    return None if cell is None else _finite(asdict(cell))


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not isfinite(value) else value
        for name, value in values.items()
    }
