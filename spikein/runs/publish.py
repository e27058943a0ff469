"""Write the content of a run's folder: the page, the tables, the figures, and links to artifacts.

`analysis.page` determines the page's text. Users share run folders, so tables and page omit the
texts of protected datasets; only artifacts contain them, and are marked.
"""

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.arm import axis_column
from analysis.checks.check import QUESTION as CHECKS
from analysis.checks.check import checks_table
from analysis.findings import (
    Row,
    as_findings,
    as_table,
    group_by,
    join_findings,
    read_findings,
    read_table,
    read_tables,
)
from analysis.page.content import build_page
from analysis.page.drawing.picture import write_pictures
from analysis.page.methods import write_methods
from analysis.page.unlearning.audit_page import write_audit_page
from analysis.page.unlearning.methods import MethodEntry
from analysis.page.unlearning.sections import UnlearningInputs
from analysis.results import read_analysis
from analysis.trajectory.insertion import QUESTION as INSERTION
from analysis.trajectory.insertion import missing_insertion
from analysis.unlearning_audit.audit import AUDITS
from detect.scores.table import SCORES_FILE
from inject.examples.example import EXAMPLES_FILE, examples_table, read_examples
from inject.files import write_text
from inject.settings import plain
from inject.stream.exposures import read_exposures, write_exposures
from spikein.config.load import resolved_yaml
from spikein.executors import RunReport
from spikein.pipeline.arm_nodes import ArmNodes
from spikein.pipeline.build_graph import ExperimentGraph
from spikein.pipeline.models import MODELS_FILE, models_table
from spikein.runs.folder import link_artifact
from spikein.runs.index_page import write_summary
from spikein.runs.page_inputs import page_inputs
from spikein.runs.record import EXPERIMENT

PAGE = "report.html"
"""The tables of a run."""
PAGES = "audits"
"""Folder of the unlearning audits' pages, one per unlearned model."""


def fill_run(
    folder: Path,
    experiment_graph: ExperimentGraph,
    report: RunReport,
    *,
    show_protected: bool = False,
    page_alone: bool = False,
) -> list[str]:
    """Write everything into the (hidden) run folder and return the summary's lines.

    Args:
        folder: the folder to fill.
        experiment_graph: the experiment and its steps.
        report: the outcomes of the steps.
        show_protected: show the texts of protected datasets in the page.
        page_alone: the page will be elsewhere, so it links to no file of the folder.
    """
    results_folder = report.artifact(experiment_graph.results).path
    write_text(folder / EXPERIMENT, resolved_yaml(experiment_graph.experiment))
    shutil.copyfile(results_folder / SCORES_FILE, folder / SCORES_FILE)
    unlearned = _copy_unlearning(folder, experiment_graph, report, page_alone=page_alone)
    _write_models(folder, experiment_graph, report)
    _write_examples(folder, experiment_graph, report)
    _write_exposures(folder, experiment_graph, report)
    for outcome in report.outcomes:
        link_artifact(folder, outcome.artifact)
    page = build_page(
        page_inputs(
            experiment_graph,
            report,
            analysis=read_analysis(results_folder),
            trajectory=None
            if experiment_graph.trajectory is None
            else read_tables(report.artifact(experiment_graph.trajectory).path),
            unlearning=unlearned,
            figure_links=not page_alone,
            show_protected=show_protected,
        )
    )
    steps = (experiment_graph.results, experiment_graph.accuracy_gain, experiment_graph.trajectory)
    folders = [report.artifact(step).path for step in steps if step is not None]
    parts = [*map(read_findings, folders), *_unlearning_findings(experiment_graph, report)]
    axes = list(experiment_graph.nodes[0].arm.labels)
    if experiment_graph.trajectory is None:
        parts.append(as_findings(INSERTION, missing_insertion(axes)))
    join_findings(folder, [*parts, as_findings(CHECKS, checks_table(page.checks, axes))])
    write_text(folder / PAGE, page.html)
    write_pictures(folder / "figures", page.pictures)
    for name, html in page.siblings.items():
        write_text(folder / name, html)
    if page.methods is not None:
        write_methods(folder, page.methods)
    write_summary(folder, page, arms=len(experiment_graph.nodes))
    return page.summary


def _write_models(folder: Path, experiment_graph: ExperimentGraph, report: RunReport) -> None:
    """Write a row for each built model."""
    folders = {
        outcome.step.digest: "/".join(outcome.artifact.path.parts[-2:])
        for outcome in report.outcomes
    }
    models = [
        model
        for node in experiment_graph.nodes
        for model in node.models
        if model.node.step is None or model.node.step.digest in folders
    ]
    pq.write_table(models_table(models, folders), folder / MODELS_FILE)


def _write_examples(folder: Path, experiment_graph: ExperimentGraph, report: RunReport) -> None:
    """Write the examples of all pools, without protected texts.

    Columns: `seed`, and the axes on which the pool of a seed depends, since one text may be a
    member in one arm and not in another.
    """
    tables = []
    pools = group_by(experiment_graph.nodes, lambda node: node.examples.digest)
    for nodes in pools.values():
        rows = read_examples(report.artifact(nodes[0].examples).path)
        readable = [
            replace(row, text="", fields={}, spans={}, paraphrases=()) if row.protected else row
            for row in rows
        ]
        table = examples_table(readable)
        labels = nodes[0].arm.labels
        columns = {axis_column(axis): labels[axis] for axis in _pool_axes([*pools.values()])}
        for name, value in {**columns, "seed": nodes[0].arm.seed}.items():
            table = table.append_column(name, pa.array([value] * len(table)))
        tables.append(table)
    pq.write_table(pa.concat_tables(tables), folder / EXAMPLES_FILE)


def _pool_axes(pools: Sequence[Sequence[ArmNodes]]) -> list[str]:
    """Return the axes that have one value in each pool; none if seeds have one pool each."""
    if len(pools) == len({nodes[0].arm.seed for nodes in pools}):
        return []
    axes = pools[0][0].arm.labels
    return [
        axis
        for axis in axes
        if all(len({node.arm.labels[axis] for node in nodes}) == 1 for nodes in pools)
    ]


def _write_exposures(folder: Path, experiment_graph: ExperimentGraph, report: RunReport) -> None:
    """Write the exposures of all arms, with the swept axes and the seed as columns."""
    tables = []
    for node in experiment_graph.nodes:
        table = read_exposures(report.artifact(node.trained).path)
        columns = {**node.arm.labels, "seed": node.arm.seed}
        for position, (name, value) in enumerate(columns.items()):
            table = table.add_column(position, name, pa.array([value] * len(table)))
        tables.append(table)
    write_exposures(folder, pa.concat_tables(tables))


def _copy_unlearning(
    folder: Path,
    experiment_graph: ExperimentGraph,
    report: RunReport,
    *,
    page_alone: bool = False,
) -> UnlearningInputs | None:
    """Write the unlearning audits' pages into a run's folder; None without unlearned models.

    Args:
        folder: the run's.
        experiment_graph: the experiment and its steps.
        report: the outcomes of the steps.
        page_alone: the run's page will be elsewhere, so it links to no file of the folder.
    """
    section = experiment_graph.experiment.unlearning
    if experiment_graph.unlearning is None or section is None:
        return None
    measures = read_findings(report.artifact(experiment_graph.unlearning).path)
    audited: list[Row] = []
    pages: list[str] = []
    if (audits := experiment_graph.unlearning_audits) is not None:
        audited = read_table(report.artifact(audits).path, AUDITS).to_pylist()
        (folder / PAGES).mkdir()
        for step in audits.inputs.values():
            method, arm = step.settings["method"], step.settings["arm"]
            pages.append(f"{PAGES}/{_safe_name(f'{method}, {arm}')}.html")
            write_audit_page(
                folder / pages[-1],
                report.artifact(step).path,
                title=f"Audit of {method}, {arm}",
                about={"Unlearned": method, "Arm": arm},
            )
    return UnlearningInputs(
        measures=as_table(measures, "unlearning").to_pylist(),
        verdicts=as_table(measures, "verdict").to_pylist(),
        methods=_methods(experiment_graph),
        margin=section.measures.utility_margin,
        audits=audited,
        audit_pages=() if page_alone else sorted(pages),
    )


def _safe_name(name: str) -> str:
    return re.sub(r"[^\w.=,-]", "-", name.replace(", ", ","))


def _unlearning_findings(experiment_graph: ExperimentGraph, report: RunReport) -> list[pa.Table]:
    """Return the results on unlearned models, as findings."""
    steps = (experiment_graph.unlearning, experiment_graph.unlearning_audits)
    return [read_findings(report.artifact(step).path) for step in steps if step is not None]


def _methods(experiment_graph: ExperimentGraph) -> list[MethodEntry]:
    """Return every method setting of the experiment once, in the requested order."""
    settings = {
        model.setting.label: model.setting
        for node in experiment_graph.nodes
        if node.unlearning is not None
        for model in node.unlearning.unlearned
        if model.setting is not None
    }
    return [
        MethodEntry(label=label, method=setting.reference, settings=plain(setting.settings))
        for label, setting in settings.items()
    ]
