"""The view of a run that page sections receive."""

from analysis.arm import axis_names
from analysis.findings import split_by_cohort
from analysis.page.inputs import PageInputs
from analysis.page.view import ReportView
from analysis.summary import find_headline


def view_of(arms, analysis, **more) -> ReportView:
    inputs = PageInputs(name="x", experiment_yaml="", arms=arms, analysis=analysis, **more)
    tables = split_by_cohort(analysis.metrics, axis_names(arms))
    return ReportView(inputs=inputs, tables=tables, best=find_headline(tables))
