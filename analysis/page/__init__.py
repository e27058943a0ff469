"""The page of a run: its content, assembled from artifacts, and one self-contained HTML file."""

from analysis.page.content import PageInputs, PageSummary, build_report, page_summary
from analysis.page.render import write_report
from analysis.page.report import CostRow, Fact, Report
from analysis.page.template import page_template

__all__ = [
    "CostRow",
    "Fact",
    "PageInputs",
    "PageSummary",
    "Report",
    "build_report",
    "page_summary",
    "page_template",
    "write_report",
]
