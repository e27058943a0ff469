"""The report: one self-contained HTML file."""

from analysis.page.render import write_report
from analysis.page.report import CostRow, Fact, Report

__all__ = ["CostRow", "Fact", "Report", "write_report"]
