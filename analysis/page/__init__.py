"""The page of a run: its content, assembled from artifacts, and one self-contained HTML file."""

from analysis.page.content import PageInputs, build_report, summary_lines
from analysis.page.render import write_report
from analysis.page.report import CostRow, Fact, Report

__all__ = [
    "CostRow",
    "Fact",
    "PageInputs",
    "Report",
    "build_report",
    "summary_lines",
    "write_report",
]
