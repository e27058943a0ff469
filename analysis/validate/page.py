"""The page of a validation: one self-contained HTML file, in the look of a run's report.

Styles and the figure are inside, there is no script, and a content security policy forbids loading
anything. Every text is escaped by the template engine; the figure is let through as `inline_svg`
has checked it.
"""

import tempfile
from math import isfinite
from pathlib import Path

from analysis.metrics_table import Cell
from analysis.page.grids import copies_tables, dataset_tables
from analysis.page.parts import FILTERS
from analysis.page.svg import inline_svg
from analysis.page.table import Table
from analysis.page.template import page_template
from analysis.validate.figure import draw_forest
from analysis.validate.ranking import Difference
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
    template = page_template(
        "analysis.validate", "validation.html.j2", filters={"masked": masked, **FILTERS}
    )
    with tempfile.TemporaryDirectory() as folder:
        figure = draw_forest(Path(folder), found)
        drawn = None if figure is None else inline_svg(figure.svg, "forest", figure.alternative)
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
