"""The measures of unlearning in a run's folder: findings, and what the page is given."""

import shutil
from pathlib import Path

import pyarrow as pa

from analysis.figures.unlearning.measured import Row
from analysis.findings import as_findings
from analysis.page.unlearning.methods import UnlearningMethod
from analysis.page.unlearning.view import UnlearningInputs
from analysis.unlearning.table import read_tables
from analysis.unlearning_audit.audit_step import AUDITS_FILE, PAGES
from inject.settings import plain
from inject.tables import read_parquet
from spikein.executors import RunReport
from spikein.pipeline.build_graph import ExperimentGraph


def copy_unlearning(
    folder: Path,
    experiment_graph: ExperimentGraph,
    report: RunReport,
    *,
    page_alone: bool = False,
) -> UnlearningInputs | None:
    """Copy the audits' pages into a run's folder; None without unlearned models.

    Args:
        folder: the run's.
        experiment_graph: the experiment and its steps.
        report: what became of the steps.
        page_alone: the run's page will lie elsewhere, so it links to no file beside it.
    """
    if experiment_graph.unlearning is None:
        return None
    made = report.artifact(experiment_graph.unlearning).path
    audited: list[Row] = []
    if experiment_graph.unlearning_audits is not None:
        audits = report.artifact(experiment_graph.unlearning_audits).path
        shutil.copytree(audits / PAGES, folder / PAGES)
        audited = read_parquet(audits / AUDITS_FILE).to_pylist()
    pages = sorted(f"{PAGES}/{path.name}" for path in folder.glob(f"{PAGES}/*.html"))
    tables = read_tables(made)
    return UnlearningInputs(
        measures=tables.measures.to_pylist(),
        verdicts=tables.verdict.to_pylist(),
        methods=_methods(experiment_graph),
        audits=audited,
        audit_pages=() if page_alone else pages,
    )


def unlearning_findings(experiment_graph: ExperimentGraph, report: RunReport) -> list[pa.Table]:
    """Return what is found of unlearned models, as findings."""
    if experiment_graph.unlearning is None:
        return []
    tables = read_tables(report.artifact(experiment_graph.unlearning).path)
    found = [as_findings("unlearning", tables.measures), as_findings("verdict", tables.verdict)]
    if experiment_graph.unlearning_audits is not None:
        audits = report.artifact(experiment_graph.unlearning_audits).path
        found.append(as_findings("unlearning_audits", read_parquet(audits / AUDITS_FILE)))
    return found


def _methods(experiment_graph: ExperimentGraph) -> list[UnlearningMethod]:
    """Return every method setting of the experiment once, in the order asked for."""
    found = {
        one.setting.label: UnlearningMethod(
            label=one.setting.label,
            method=one.setting.reference,
            settings=plain(one.setting.settings),
        )
        for node in experiment_graph.nodes
        if node.unlearning is not None
        for one in node.unlearning.unlearned
    }
    return list(found.values())
