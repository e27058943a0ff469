"""What a run's folder and its page hold of unlearned models: tables, and a page an audit."""

from pathlib import Path

import pyarrow as pa

from analysis.figures.unlearning.measured import Row
from analysis.findings import as_table, read_findings, read_table
from analysis.page.unlearning.audit_page import write_audit_page
from analysis.page.unlearning.methods import UnlearningMethod
from analysis.page.unlearning.view import UnlearningInputs
from analysis.unlearning_audit.audit import QUESTION
from inject.settings import plain
from spikein.executors import RunReport
from spikein.pipeline.build_graph import ExperimentGraph

PAGES = "audits"
"""Folder of the pages, one an unlearned model."""


def copy_unlearning(
    folder: Path,
    experiment_graph: ExperimentGraph,
    report: RunReport,
    *,
    page_alone: bool = False,
) -> UnlearningInputs | None:
    """Write the audits' pages into a run's folder; None without unlearned models.

    Args:
        folder: the run's.
        experiment_graph: the experiment and its steps.
        report: what became of the steps.
        page_alone: the run's page will lie elsewhere, so it links to no file beside it.
    """
    if experiment_graph.unlearning is None:
        return None
    made = read_findings(report.artifact(experiment_graph.unlearning).path)
    audited: list[Row] = []
    pages: list[str] = []
    if (audits := experiment_graph.unlearning_audits) is not None:
        audited = read_table(report.artifact(audits).path, QUESTION).to_pylist()
        (folder / PAGES).mkdir()
        for step in audits.inputs.values():
            method, arm = step.settings["method"], step.settings["arm"]
            pages.append(f"{PAGES}/{_safe(f'{method}, {arm}')}.html")
            write_audit_page(
                folder / pages[-1],
                report.artifact(step).path,
                title=f"Audit of {method}, {arm}",
                about={"Unlearned": method, "Arm": arm},
            )
    return UnlearningInputs(
        measures=as_table(made, "unlearning").to_pylist(),
        verdicts=as_table(made, "verdict").to_pylist(),
        methods=_methods(experiment_graph),
        audits=audited,
        audit_pages=() if page_alone else sorted(pages),
    )


def _safe(name: str) -> str:
    return "".join(
        sign if sign.isalnum() or sign in "-_.=," else "-" for sign in name.replace(", ", ",")
    )


def unlearning_findings(experiment_graph: ExperimentGraph, report: RunReport) -> list[pa.Table]:
    """Return what is found of unlearned models, as findings."""
    steps = (experiment_graph.unlearning, experiment_graph.unlearning_audits)
    return [read_findings(report.artifact(step).path) for step in steps if step is not None]


def _methods(experiment_graph: ExperimentGraph) -> list[UnlearningMethod]:
    """Return every method setting of the experiment once, in the order asked for."""
    settings = [
        model.setting
        for node in experiment_graph.nodes
        if node.unlearning is not None
        for model in node.unlearning.unlearned
        if model.setting is not None
    ]
    found = {
        setting.label: UnlearningMethod(
            label=setting.label, method=setting.reference, settings=plain(setting.settings)
        )
        for setting in settings
    }
    return list(found.values())
