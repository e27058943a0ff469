"""Fill the template: the report's data in, one HTML file out.

The file needs nothing beside it: styles and figures are inside, there is no script, and a
content security policy forbids loading anything. Every text is escaped by the template
engine; the only markup let through is our own figures' (see `svg.py`).
"""

from math import isfinite
from pathlib import Path
from typing import Any

from analysis.arm import axis_names, cohorts
from analysis.lookup import Cell, by_cohort, contaminated
from analysis.page.examples import shown_examples
from analysis.page.report import Report
from analysis.page.svg import inline_svg
from analysis.page.views import (
    arms_grid,
    copies_grid,
    dataset_grid,
    detector_order,
    difference_rows,
    rates_grid,
    retrained_grid,
    variants_grid,
)
from analysis.summary import find_headline, summary_sentences, varied_doses
from analysis.validity import check_validity
from inject.example import read_examples
from inject.files import write_text


def write_report(out: Path, report: Report) -> Path:
    """Write `report.html` into the folder `out` and return its path."""
    path = out / "report.html"
    write_text(path, render(report))
    return path


def render(report: Report) -> str:
    """Return the page as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("analysis.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": _number, "signed": _signed, "seconds": _seconds}
    environment.globals["share"] = _share
    # Our own stylesheet, not data: the one file besides figures that enters unescaped.
    style = Markup((Path(__file__).parent / "style.css").read_text(encoding="utf-8"))
    template = environment.get_template("report.html.j2")
    return template.render(style=style, **_context(report))


def _context(report: Report) -> dict[str, Any]:
    tables = by_cohort(report.analysis.metrics, axis_names(report.arms))
    best = find_headline(tables)
    context: dict[str, Any] = {
        "report": report,
        "sentences": summary_sentences(tables),
        "checks": check_validity(
            tables, report.audits, report.fed, [one.facts for one in report.backgrounds]
        ),
        "arms": _arm_rows(report),
        "datasets": _dataset_rows(report),
        "figures": {
            figure.name: (figure, inline_svg(figure.svg, f"fig-{figure.name}", figure.title))
            for figure in report.figures
        },
        "apart": [u for u in report.analysis.unscored if u.apart],
        "left_out": [u for u in report.analysis.unscored if u.left_out],
        "set_apart": _set_apart(report),
        "choices": [
            (" · ".join(x for x in (found.cohort.model, found.cohort.label()) if x), found.choices)
            for found in report.analysis.choices
        ],
        "grids": [],
        "differences": [],
        "examples": [],
        "best": best,
        "total_seconds": sum(row.seconds for row in report.cost if not row.from_store),
    }
    if best is not None:
        detectors = detector_order(best.table, tables)
        context["grids"] = {
            "tuned": arms_grid(tables, detectors, "tuned"),
            "default": arms_grid(tables, detectors, "default"),
            "dataset": dataset_grid(best.table, detectors),
            "copies": copies_grid(varied_doses(tables, best) or best.table, detectors),
            "variants": variants_grid(contaminated(tables), detectors),
            "retrained": retrained_grid(tables, detectors),
            "rates": rates_grid(best, detectors),
        }
        context["differences"] = difference_rows(report.analysis, best, detectors)
        context["examples"] = shown_examples(report, best)
    return context


def _arm_rows(report: Report) -> list[dict[str, str]]:
    """One row a cohort: its model, axes and seeds, and how many copies were spiked."""
    rows = []
    for cohort, same in cohorts(report.arms).items():
        copies = [sum(arm.copies.values()) for arm in same if arm.copies is not None]
        rows.append(
            {
                "model": cohort.model,
                "axes": cohort.label() or "all arms",
                "seeds": ", ".join(str(arm.seed) for arm in same),
                "copies": f"{round(sum(copies) / len(copies)):,}" if copies else "–",
            }
        )
    return rows


def _set_apart(report: Report) -> list[dict[str, Any]]:
    """Sum up, by setting, the rows and the pools on which it was set apart."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for place in report.analysis.unscored:
        for one in place.apart:
            detector, setting = one.column
            row = found.setdefault(
                (detector, setting),
                {"detector": detector, "setting": setting, "failed": 0, "rows": 0, "places": 0},
            )
            row["failed"] += one.failed
            row["rows"] += place.rows
            row["places"] += 1
    return list(found.values())


def _dataset_rows(report: Report) -> list[dict[str, Any]]:
    """One row a dataset: members and non-members of the first arm's pool, by split."""
    found: dict[str, dict[str, Any]] = {}
    if not report.arms:
        return []
    for example in read_examples(report.arms[0].examples):
        row = found.setdefault(
            example.dataset,
            {"name": example.dataset, "protected": False, "tune": [0, 0], "test": [0, 0]},
        )
        row["protected"] |= example.protected
        row[example.split][example.side == "nonmember"] += 1
    return list(found.values())


def _number(value: float) -> str:
    return f"{value:.2f}" if isfinite(value) else "–"


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−") if isfinite(value) else "–"


def _seconds(value: float) -> str:
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def _share(cell: Cell, part: str) -> str:
    """Return a position on the bar under a number as a percentage, 0 to 100."""
    return f"{100 * min(1.0, max(0.0, getattr(cell, part))):.1f}%"
