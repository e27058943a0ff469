"""What a run's folder holds: the page, the tables, the figures, and links to the artifacts.

Made to be shared, so the texts of protected datasets are left out of its tables and of its
page; the artifacts that it links to hold them, and carry the mark.
"""

import platform
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.arm import axis_names
from analysis.checks.validity import check_validity
from analysis.figures import ReportFigure
from analysis.metrics_table import split_by_cohort
from analysis.page import CostRow, Fact, Report, write_report
from analysis.page.background import BackgroundAudit, background_audit
from analysis.page.trajectory import trajectory_view
from analysis.passage_copies import passage_sentences
from analysis.result_files import TABLE_FILES
from analysis.summary import summary_sentences
from analysis.task_accuracy.accuracy_gain import AccuracyGainTable, accuracy_gain_tables
from analysis.task_accuracy.contamination import read_accuracy_table
from detect.task_accuracy.answers import ACCURACY_FILE
from inject.examples.example import EXAMPLES_FILE, examples_table, read_examples
from inject.files import write_text
from inject.overlap.filter import read_overlaps
from inject.stream.exposures import read_exposures, write_exposures
from spikein.config.load import resolved_yaml
from spikein.executors import RunReport
from spikein.pipeline.build_graph import ExperimentGraph
from spikein.pipeline.steps.examples import read_pool_reports
from spikein.pipeline.steps.results import Results, load_results, open_arms, recorded_figures
from spikein.pipeline.steps.trajectory import FADING, PROGRESS, Along, load_trajectory
from spikein.runs.folder import link_artifact
from spikein.runs.settings_summary import description, setup
from spikein.runs.streams import audited_streams, fed_streams, run_streams
from spikein.store.environment import CODE, MACHINE, code_version
from spikein.store.manifest import Manifest, library_versions

EXPERIMENT = "experiment.yaml"
"""The resolved experiment in a run's folder."""
PAGE = "report.html"
"""What a run is read from."""

_LIBRARIES = ("torch", "transformers", "accelerate", "tokenizers", "numpy", "scikit-learn")


def fill_run(
    folder: Path,
    experiment_graph: ExperimentGraph,
    report: RunReport,
    *,
    show_protected: bool = False,
) -> list[str]:
    """Write everything into the (hidden) run folder and return the summary's lines.

    Args:
        folder: where to write.
        experiment_graph: the experiment and its steps.
        report: what became of the steps.
        show_protected: let the page show the texts of protected datasets.
    """
    results_folder = report.artifact(experiment_graph.results).path
    results = load_results(results_folder)
    write_text(folder / EXPERIMENT, resolved_yaml(experiment_graph.experiment))
    for name in TABLE_FILES:
        shutil.copyfile(results_folder / name, folder / name)
    if experiment_graph.accuracy_gain is not None:
        shutil.copyfile(
            report.artifact(experiment_graph.accuracy_gain).path / ACCURACY_FILE,
            folder / ACCURACY_FILE,
        )
    along = None
    if experiment_graph.trajectory is not None:
        made = report.artifact(experiment_graph.trajectory).path
        for name in (PROGRESS, FADING):
            shutil.copyfile(made / name, folder / name)
        along = load_trajectory(made)
    (folder / "figures").mkdir()
    figures = [
        *results.figures,
        *(along.figures if along else ()),
        *(
            recorded_figures(report.artifact(experiment_graph.accuracy_gain).path)
            if experiment_graph.accuracy_gain
            else ()
        ),
    ]
    for figure in figures:
        for path in (figure.svg, figure.png):
            shutil.copyfile(path, folder / "figures" / path.name)
    _write_examples(folder, experiment_graph, report)
    _write_exposures(folder, experiment_graph, report)
    for outcome in report.outcomes:
        link_artifact(folder, outcome.artifact)
    page = _page(experiment_graph, report, results, along, figures, show_protected)
    write_report(folder, page)
    tables = split_by_cohort(page.analysis.metrics, axis_names(page.arms))
    checks = [
        f"{check.name}: {check.verdict}. {check.sentence}"
        for check in check_validity(
            tables, page.audits, page.fed, [one.facts for one in page.backgrounds]
        )
    ]
    told = page.along.sentences if page.along else ()
    return [*checks, *summary_sentences(tables), *told]


def _write_examples(folder: Path, experiment_graph: ExperimentGraph, report: RunReport) -> None:
    """Write the examples of all pools with a column `seed`, protected texts left out."""
    tables = []
    pools = {node.examples.digest: node for node in experiment_graph.nodes}
    for node in pools.values():
        rows = read_examples(report.artifact(node.examples).path)
        shown = [
            replace(row, text="", fields={}, spans={}, paraphrases=()) if row.protected else row
            for row in rows
        ]
        table = examples_table(shown)
        tables.append(table.append_column("seed", pa.array([node.arm.seed] * len(table))))
    pq.write_table(pa.concat_tables(tables), folder / EXAMPLES_FILE)


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


def _page(
    experiment_graph: ExperimentGraph,
    report: RunReport,
    results: Results,
    along: Along | None,
    figures: list[ReportFigure],
    show_protected: bool,
) -> Report:
    experiment = experiment_graph.experiment
    inputs = {name: report.artifact(step) for name, step in experiment_graph.results.inputs.items()}
    return Report(
        name=experiment.name,
        arms=open_arms(experiment_graph.arms, inputs),
        analysis=results.analysis,
        experiment_yaml=resolved_yaml(experiment),
        description=description(experiment_graph),
        setup=setup(experiment_graph),
        audits=audited_streams(experiment_graph, report),
        fed=fed_streams(experiment_graph, report),
        streams=run_streams(experiment_graph, report),
        backgrounds=_backgrounds(experiment_graph, report),
        gains=_gains(experiment_graph, report),
        along=None
        if along is None
        else trajectory_view(along.tables, list(experiment_graph.experiment.sweep)),
        figures=figures,
        cost=[
            CostRow(
                step=outcome.step.name,
                tokens=outcome.step.cost.tokens if outcome.step.cost else None,
                seconds=outcome.artifact.manifest.seconds,
                from_store=not outcome.built,
            )
            for outcome in report.outcomes
        ],
        provenance=_provenance(experiment_graph, report),
        notes=_page_notes(experiment_graph, report) + passage_sentences(results.analysis.metrics),
        show_protected=show_protected,
    )


def _gains(experiment_graph: ExperimentGraph, report: RunReport) -> list[AccuracyGainTable]:
    if experiment_graph.accuracy_gain is None:
        return []
    table = read_accuracy_table(report.artifact(experiment_graph.accuracy_gain).path)
    axes = list(dict.fromkeys(key for node in experiment_graph.nodes for key in node.arm.labels))
    return accuracy_gain_tables(table, axes)


def _backgrounds(experiment_graph: ExperimentGraph, report: RunReport) -> list[BackgroundAudit]:
    corpora = {node.corpus.digest: node.corpus for node in experiment_graph.nodes}
    audits = [read_overlaps(report.artifact(step).path) for step in corpora.values()]
    return [background_audit(*audit) for audit in audits if audit is not None]


def _provenance(experiment_graph: ExperimentGraph, report: RunReport) -> list[Fact]:
    made = [outcome.artifact.manifest for outcome in report.outcomes]
    created = sorted(
        manifest.created.replace("T", " ").replace("+00:00", " UTC") for manifest in made
    )
    facts = [
        Fact("Steps computed", " to ".join(dict.fromkeys((created[0], created[-1])))),
        Fact("Page made by spikein", code_version()),
        *_made_by("Computed by spikein", CODE, made),
        *_made_by("Computed on", MACHINE, made),
        Fact("Python of the page", platform.python_version()),
        *(Fact(name, version) for name, version in library_versions(_LIBRARIES).items()),
    ]
    steps = {"results": experiment_graph.results}
    for node in experiment_graph.nodes:
        steps[f"corpus {node.corpus.label}"] = node.corpus
        if node.base is not None and node.base.step is not None:
            steps[f"base model {node.base.label}"] = node.base.step
        steps[f"model {node.arm.label}"] = node.trained
        steps |= {f"model {one.twin.trained.label}": one.twin.trained for one in node.reported}
    facts += [
        Fact(name, f"{step.digest[:12]} · content {report.artifact(step).manifest.content[:12]}")
        for name, step in steps.items()
    ]
    return facts


def _made_by(name: str, part: str, made: Sequence[Manifest]) -> list[Fact]:
    """Tell one part of the environments that made the steps, with their number where it varies."""
    counts = Counter(manifest.environment.get(part, "not recorded") for manifest in made)
    if len(counts) == 1:
        return [Fact(name, next(iter(counts)))]
    told = "; ".join(f"{text} ({count} of {len(made)} steps)" for text, count in counts.items())
    return [Fact(name, told)]


def _page_notes(experiment_graph: ExperimentGraph, report: RunReport) -> list[str]:
    notes = list(experiment_graph.notes)
    pools = {node.examples.digest: node.examples for node in experiment_graph.nodes}
    for step in pools.values():
        where = f"{step.label} · " if len(pools) > 1 else ""
        facts = read_pool_reports(report.artifact(step).path)
        for name, found in facts.items():
            dropped = {
                "duplicates": found["duplicates"],
                "empty": found["empty"],
                "without an answer": found["unanswered"],
                "for their length (shorter than pool.min_tokens)": found["too_short"],
                "for their length (longer than the context)": (
                    found["too_long"] if found["long_examples"] == "drop" else 0
                ),
                "near-duplicates": len(found["near_duplicates"]),
                "near-duplicates of rows of other datasets": len(found["near_duplicates_across"]),
            }
            told = ", ".join(f"{count} {what}" for what, count in dropped.items() if count)
            if told:
                notes.append(f"{where}{name}: dropped {told}.")
            if pooled := found["strata_pooled"]["strata"]:
                notes.append(
                    f"{where}{name}: {pooled} of {found['strata']} strata "
                    f"({found['strata_pooled']['rows']} rows) are too small to be balanced on "
                    "both sides (or their groups too large); they were drawn from as one."
                )
            if found["too_long"] and found["long_examples"] != "drop":
                kept = {"truncate": "cut to it", "split": "left whole, over several windows"}
                notes.append(
                    f"{where}{name}: {found['too_long']} rows are longer than the context and were "
                    f"{kept[found['long_examples']]}."
                )
            if found["protected"]:
                notes.append(
                    f"{name} is a protected dataset: its texts appear neither here nor in the "
                    "tables of this folder. Do not share the artifacts that hold them."
                )
    return list(dict.fromkeys(notes))
