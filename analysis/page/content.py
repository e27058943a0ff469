"""The content of a page, from the artifacts of a run and plain values.

What the page shows is decided here and in the modules beside this one. `spikein.runs.publish` only
collects the inputs and writes the folder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from analysis.arm import Arm, axis_names
from analysis.checks.validity import Check, check_validity
from analysis.figures.report_figure import ReportFigure
from analysis.metrics_table import split_by_cohort
from analysis.page.background import background_audit
from analysis.page.methods import MethodsInputs, describe_methods
from analysis.page.notes import PoolReport, detector_notes, pool_notes
from analysis.page.provenance import NamedArtifact, StepRecord, provenance
from analysis.page.report import CostRow, Report
from analysis.page.settings_summary import ArmSettings, description, setup
from analysis.page.streams import Stream, TrainedModel, audit_facts, copies_by_model
from analysis.page.tables.detector_costs import DetectorWork
from analysis.page.trajectory import trajectory_view
from analysis.page.unlearning.audits import audits_view
from analysis.page.unlearning.view import UnlearningInputs, unlearning_view
from analysis.passage_copies import passage_sentences
from analysis.results import Analysis
from analysis.settings import AnalysisSettings
from analysis.summary import summary_sentences
from analysis.task_accuracy.accuracy_gain import accuracy_gain_tables
from analysis.task_accuracy.contamination import read_accuracy_table
from analysis.trajectory.checkpoints import TrajectoryTables
from detect.detector_table import DetectorFacts
from detect.guarded_call import NO_SCORE
from detect.scoring import LeftOut
from inject.overlap.filter import read_overlaps


@dataclass(frozen=True, kw_only=True)
class PageInputs:
    """Everything that a page is made of."""

    name: str
    """Of the experiment."""
    experiment_yaml: str
    """The resolved experiment file."""
    datasets: Sequence[str]
    seeds: Sequence[int]
    swept: Sequence[str]
    """The swept axes."""
    settings: Sequence[ArmSettings]
    """Of every arm."""
    arms: Sequence[Arm]
    """The scored models: arms, their base models and reported twins."""
    analysis: Analysis
    analysis_settings: AnalysisSettings
    figures: Sequence[ReportFigure]
    audited: Sequence[TrainedModel]
    """All models whose streams were audited, shadow models included."""
    trained: Sequence[TrainedModel]
    """All models that were trained on a contaminated stream, or on that of a twin."""
    streams: Sequence[Stream]
    """Of the arms and the reported twins."""
    corpora: Sequence[Path]
    """The folders of the corpora."""
    pools: Sequence[PoolReport]
    accuracy: Path | None
    """The folder of the task accuracies; None where no dataset has closed answers."""
    trajectory: TrajectoryTables | None
    """Detection along training; None where no checkpoint was kept."""
    steps: Sequence[StepRecord]
    artifacts: Sequence[NamedArtifact]
    """Those that the page names by their digests."""
    code: str
    """The version of the code that makes the page."""
    libraries: dict[str, str]
    """Name → version of the libraries that matter."""
    detectors: Sequence[DetectorFacts] = ()
    """What the detectors of the run declare."""
    left_out: Sequence[LeftOut] = ()
    """Detectors of `all` that could not run."""
    detector_work: Sequence[DetectorWork] = ()
    """What each detector's scores are drawn from, a model at a time."""
    notes: Sequence[str] = ()
    """What the graph left out, and why."""
    unlearning: UnlearningInputs | None = None
    """What unlearned models still know; None where none was made."""
    figure_links: bool = False
    """Whether the files of the figures lie beside the page."""
    show_protected: bool = False
    """Whether the texts of protected datasets may appear in the page."""


def build_report(inputs: PageInputs) -> Report:
    """Return the report, ready to be rendered."""
    audits = [read_overlaps(folder) for folder in inputs.corpora]
    axes = list(dict.fromkeys(axis for arm in inputs.settings for axis in arm.axes))
    # The leaderboard lists what was left out.
    listed = {one.note for one in inputs.left_out}
    notes = [note for note in inputs.notes if note not in listed]
    notes += pool_notes(inputs.pools)
    return Report(
        name=inputs.name,
        arms=inputs.arms,
        analysis=inputs.analysis,
        experiment_yaml=inputs.experiment_yaml,
        description=description(inputs.settings, inputs.datasets),
        setup=setup(inputs.settings, swept=inputs.swept, seeds=inputs.seeds),
        audits=audit_facts(inputs.audited, several_seeds=len(inputs.seeds) > 1),
        copy_outcomes=copies_by_model(inputs.trained),
        streams=inputs.streams,
        backgrounds=[background_audit(*audit) for audit in audits if audit is not None],
        accuracy_gains=[]
        if inputs.accuracy is None
        else accuracy_gain_tables(read_accuracy_table(inputs.accuracy), axes),
        trajectory=None
        if inputs.trajectory is None
        else trajectory_view(inputs.trajectory, inputs.swept),
        unlearning=None if inputs.unlearning is None else unlearning_view(inputs.unlearning),
        unlearning_audits=None
        if inputs.unlearning is None
        else audits_view(inputs.unlearning.audits, inputs.unlearning.audit_pages),
        figures=inputs.figures,
        cost=[CostRow(one.name, one.tokens, one.seconds) for one in inputs.steps],
        detectors=inputs.detectors,
        left_out=inputs.left_out,
        detector_work=inputs.detector_work,
        provenance=provenance(
            inputs.steps, inputs.artifacts, code=inputs.code, libraries=inputs.libraries
        ),
        methods=describe_methods(
            MethodsInputs(
                name=inputs.name,
                arms=inputs.settings,
                seeds=inputs.seeds,
                detectors=inputs.detectors,
                analysis=inputs.analysis_settings,
                artifacts=inputs.artifacts,
                code=inputs.code,
                libraries=inputs.libraries,
                unlearning=() if inputs.unlearning is None else inputs.unlearning.methods,
            )
        ),
        notes=[*dict.fromkeys(notes), *passage_sentences(inputs.analysis.metrics)],
        detector_notes=detector_notes(inputs.arms, besides={*listed, *inputs.notes}),
        figure_links=inputs.figure_links,
        show_protected=inputs.show_protected,
    )


class PageSummary(NamedTuple):
    """What a page says first."""

    checks: tuple[Check, ...]
    sentences: tuple[str, ...]
    """Detectors that failed, the headline, what stands behind it, detection along training."""

    @property
    def lines(self) -> list[str]:
        """The lines that a run prints at its end: checks, then sentences."""
        checks = [f"{one.name}: {one.verdict_line}. {one.sentence}" for one in self.checks]
        return [*checks, *self.sentences]


def page_summary(report: Report) -> PageSummary:
    """Return what a page says first."""
    tables = split_by_cohort(report.analysis.metrics, axis_names(report.arms))
    backgrounds = [one.facts for one in report.backgrounds]
    checks = check_validity(tables, report.audits, report.copy_outcomes, backgrounds)
    trajectory = report.trajectory.sentences if report.trajectory else ()
    failed = [note for note in report.detector_notes if NO_SCORE in note]
    return PageSummary(tuple(checks), (*failed, *summary_sentences(tables), *trajectory))
