"""The measures of unlearning in a run's folder: two tables, and what the page is given."""

import shutil
from pathlib import Path

from analysis.figures.unlearning.measured import Row
from analysis.page.unlearning.methods import UnlearningMethod
from analysis.page.unlearning.view import UnlearningInputs
from analysis.unlearning.table import MEASURES_FILE, VERDICT_FILE, read_tables
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
    """Copy tables and the audits' pages into a run's folder; None without unlearned models.

    Args:
        folder: the run's.
        experiment_graph: the experiment and its steps.
        report: what became of the steps.
        page_alone: the run's page will lie elsewhere, so it links to no file beside it.
    """
    if experiment_graph.unlearning is None:
        return None
    made = report.artifact(experiment_graph.unlearning).path
    for name in (MEASURES_FILE, VERDICT_FILE):
        shutil.copyfile(made / name, folder / name)
    audited: list[Row] = []
    if experiment_graph.unlearning_audits is not None:
        audits = report.artifact(experiment_graph.unlearning_audits).path
        shutil.copyfile(audits / AUDITS_FILE, folder / AUDITS_FILE)
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
