"""Fill the template: the report's data in, one HTML file out.

The file needs nothing beside it: styles, figures and one script are inside, and a content security
policy forbids loading anything and running any other script. The script sorts and filters a table
and holds no data; without it the page is whole. Every text is escaped by the template engine; the
only markup let through is our own figures' (see `svg.py`).
"""

from pathlib import Path
from typing import Any

from analysis.arm import axis_names
from analysis.checks.validity import check_validity
from analysis.metrics_table import contaminated_cohorts, split_by_cohort
from analysis.page.examples import extreme_examples
from analysis.page.factors import factors_view
from analysis.page.report import Report
from analysis.page.streams import stream_rows, stream_sentences
from analysis.page.svg import inline_svg
from analysis.page.tables.all_results import all_results
from analysis.page.tables.dataset_findings import dataset_assumptions, dataset_findings
from analysis.page.tables.detector_costs import detector_cost_listing
from analysis.page.tables.flagged_rows import flagged_view
from analysis.page.tables.leaderboard import leaderboard, left_out_listing
from analysis.page.tables.listing import Listing, listing, seconds_text
from analysis.page.tables.views import (
    adjusted_grids,
    arms_grids,
    copies_grids,
    dataset_grids,
    detector_order,
    difference_rows,
    grids_differ,
    rates_grids,
    retrained_grids,
    variants_grids,
)
from analysis.page.template import number_text, page_script, page_template
from analysis.summary import find_headline, find_trend_arm, summary_sentences
from inject.examples.example import read_examples, read_held_out
from inject.files import write_text


def write_report(out: Path, report: Report) -> Path:
    """Write `report.html` into the folder `out` and return its path."""
    path = out / "report.html"
    write_text(path, render(report))
    return path


def render(report: Report) -> str:
    """Return the page as text."""
    template = page_template("analysis.page", "report.html.j2", filters={"seconds": seconds_text})
    return template.render(**_context(report))


def _context(report: Report) -> dict[str, Any]:
    tables = split_by_cohort(report.analysis.metrics, axis_names(report.arms))
    best = find_headline(tables)
    context: dict[str, Any] = {
        "report": report,
        "sentences": summary_sentences(tables),
        "checks": check_validity(
            tables, report.audits, report.copy_outcomes, [one.facts for one in report.backgrounds]
        ),
        "lists": {
            "datasets": _datasets(report),
            "streams": listing(
                "Training streams",
                ("Arm", "Model", "Seed", "Tokens", "Copies planned", "Read", "Share of copies"),
                stream_rows(report.streams),
                "Copies are summed over seeds; their share is that of the stream's tokens.",
            ),
            "choices": _choices(report),
            "costs": _costs(report),
            "detectors_left_out": left_out_listing(report.left_out),
            "detector_costs": detector_cost_listing(report.detector_work),
        },
        "stream_sentences": stream_sentences(report.streams),
        "figures": {
            figure.name: (figure, inline_svg(figure.svg, f"fig-{figure.name}", figure.alternative))
            for figure in report.figures
        },
        "apart": [u for u in report.analysis.unscored if u.apart],
        "left_out": [u for u in report.analysis.unscored if u.left_out],
        "set_apart": _set_apart(report),
        "grids": [],
        "differences": [],
        "examples": [],
        "factors": None,
        "best": best,
        "all_results": all_results(tables),
        "script": page_script(),
        "total_seconds": sum(row.seconds for row in report.cost),
    }
    if best is not None:
        detectors = detector_order(best.table, tables)
        tuned = arms_grids(tables, detectors, "tuned")
        default = arms_grids(tables, detectors, "default")
        context["grids"] = {
            "tuned": tuned,
            "default": default if grids_differ(tuned, default) else [],
            "adjusted": adjusted_grids(contaminated_cohorts(tables), detectors),
            "dataset": dataset_grids(best.table, detectors),
            "copies": copies_grids(find_trend_arm(tables, best) or best.table, detectors),
            "variants": variants_grids(contaminated_cohorts(tables), detectors),
            "retrained": retrained_grids(tables, detectors),
            "rates": rates_grids(best, detectors),
        }
        if report.analysis.factors is not None:
            axes = axis_names(report.arms)
            context["factors"] = factors_view(report.analysis.factors, axes, detectors)
        differences = difference_rows(report.analysis, best, detectors)
        context["differences"] = differences
        context["dataset_findings"] = dataset_findings(report.analysis, best.table.cohort)
        context["dataset_assumptions"] = dataset_assumptions(report.analysis)
        context["flagged"] = flagged_view(report.analysis, best.table.cohort, detectors)
        context["board"] = leaderboard(
            best,
            tables,
            report.analysis,
            facts=report.detectors,
            to_loss={row.detector: row.to_loss for row in differences},
        )
        context["examples"] = extreme_examples(report, best)
    return context


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


def _datasets(report: Report) -> Listing | None:
    """One row a dataset: members and non-members of the first arm's pool, by split."""
    found: dict[str, dict[str, Any]] = {}
    for example in read_examples(report.arms[0].examples) if report.arms else ():
        row = found.setdefault(
            example.dataset, {"protected": False, "tune": [0, 0], "test": [0, 0], "held out": 0}
        )
        row["protected"] |= example.protected
        row[example.split][example.side == "nonmember"] += 1
    for example in read_held_out(report.arms[0].examples) if report.arms else ():
        found[example.dataset]["held out"] += 1
    any_held_out = any(row["held out"] for row in found.values())
    return listing(
        "Examples",
        ("Dataset", "Tune", "Test", *(("Held out",) if any_held_out else ()), "Texts"),
        [
            (
                name,
                f"{row['tune'][0]:,} + {row['tune'][1]:,}",
                f"{row['test'][0]:,} + {row['test'][1]:,}",
                *((f"{row['held out']:,}",) if any_held_out else ()),
                "protected" if row["protected"] else "",
            )
            for name, row in found.items()
        ],
        "Members + non-members, first seed."
        + (" No model saw a held-out row, and none is scored." if any_held_out else ""),
    )


def _choices(report: Report) -> Listing | None:
    """One row a choice; a detector whose only setting is its default had none to make."""
    return listing(
        "Chosen settings",
        ("Detector", "Model", "Default", "Tuned", "Tune AUC"),
        [
            (
                choice.detector,
                " · ".join(x for x in (found.cohort.model, found.cohort.label()) if x),
                choice.default,
                "no tune rows" if choice.tuned is None else choice.tuned,
                number_text(choice.tune_auc),
            )
            for found in report.analysis.choices
            for choice in found.choices
            if choice.default not in ("default", "-") or choice.tuned != choice.default
        ],
        "The choice was made by the tune AUC, which is therefore optimistic. Detectors without "
        "settings are left out.",
    )


def _costs(report: Report) -> Listing | None:
    return listing(
        "Steps",
        ("Step", "Tokens", "Time"),
        [
            (
                row.step,
                "" if row.tokens is None else f"{row.tokens:,}",
                seconds_text(row.seconds),
            )
            for row in report.cost
        ],
    )
