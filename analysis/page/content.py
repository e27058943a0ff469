"""The content of a run's page, from its tables and plain values, and the page itself.

What the page shows is decided here and in the modules beside this one; `spikein.runs.publish` only
collects the inputs and writes the folder. The page needs nothing beside it: styles, figures and one
script are inside, and a content security policy forbids loading anything and running any other
script. Every text is escaped by the template engine; the only markup let through is that of our own
figures (`svg.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from analysis.arm import Arm, axis_names
from analysis.checks.validity import Check, check_validity
from analysis.figures.style import ReportFigure
from analysis.metrics_table import split_by_cohort
from analysis.page.cost import (
    DetectorWork,
    NamedArtifact,
    StepRecord,
    cost_section,
    provenance,
    provenance_section,
)
from analysis.page.grids import detector_order, interval
from analysis.page.methods import Methods, MethodsInputs, describe_methods, methods_section
from analysis.page.parts import (
    Card,
    Cards,
    Columns,
    Fold,
    Note,
    Part,
    Picture,
    Section,
    present,
)
from analysis.page.sections.accuracy import accuracy_section
from analysis.page.sections.all_results import all_results
from analysis.page.sections.examples import examples_section
from analysis.page.sections.factors import factors_section
from analysis.page.sections.results import detector_notes, results_section
from analysis.page.sections.trajectory import trajectory_parts, trajectory_section
from analysis.page.sections.unlearning import audits_section, unlearning_section
from analysis.page.setup import (
    ArmSettings,
    PoolReport,
    background_parts,
    datasets_table,
    description,
    pool_notes,
    setup,
)
from analysis.page.streams import Stream, stream_listing, stream_sentences
from analysis.page.svg import inline_svg
from analysis.page.template import render_page
from analysis.page.unlearning.audits import audits_view
from analysis.page.unlearning.view import UnlearningInputs, unlearning_view
from analysis.passage_copies import passage_sentences
from analysis.results import Analysis
from analysis.settings import AnalysisSettings
from analysis.summary import find_headline, summary_sentences
from analysis.table import Column, Entry, Table, facts
from analysis.task_accuracy.accuracy_gain import accuracy_gain_tables
from analysis.trajectory.checkpoints import TrajectoryTables
from detect.detector_table import DetectorFacts
from detect.guarded_call import NO_SCORE
from detect.scoring import LeftOut
from inject.overlap.filter import OverlapFacts
from inject.overlap.index import Overlap
from inject.stream.exposures import CopyOutcomes

_MAX_INTERVALS = 40
"""A longer list of the intervals behind a verdict is not printed on paper."""


@dataclass(frozen=True, kw_only=True)
class PageInputs:
    """Everything that a page is made of."""

    name: str
    """Of the experiment."""
    experiment_yaml: str
    """The resolved experiment file."""
    arms: Sequence[Arm]
    """The scored models: arms, their base models and reported twins."""
    analysis: Analysis
    datasets: Sequence[str] = ()
    seeds: Sequence[int] = ()
    swept: Sequence[str] = ()
    """The swept axes."""
    settings: Sequence[ArmSettings] = ()
    """Of every arm."""
    analysis_settings: AnalysisSettings = field(default_factory=AnalysisSettings)
    figures: Sequence[ReportFigure] = ()
    audits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What the audit of each stream found, by its label; those of shadow models included."""
    copies: Mapping[str, CopyOutcomes] = field(default_factory=dict)
    """What became of the copies of each trained model, by its label."""
    streams: Sequence[Stream] = ()
    """Of the arms and the reported twins."""
    backgrounds: Sequence[tuple[Sequence[Overlap], OverlapFacts]] = ()
    """What the audit of each background's text found."""
    pools: Sequence[PoolReport] = ()
    accuracy: pa.Table | None = None
    """The task accuracies; None where no dataset has closed answers."""
    trajectory: TrajectoryTables | None = None
    """Detection along training; None where no checkpoint was kept."""
    steps: Sequence[StepRecord] = ()
    artifacts: Sequence[NamedArtifact] = ()
    """Those that the page names by their digests."""
    code: str = ""
    """The version of the code that makes the page."""
    libraries: Mapping[str, str] = field(default_factory=dict)
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


class RunPage(NamedTuple):
    """A run's page, and what else is made of its content."""

    html: str
    checks: Sequence[Check]
    sentences: Sequence[str]
    """Detectors that failed, the headline, what stands behind it, detection along training."""
    methods: Methods | None

    @property
    def summary(self) -> list[str]:
        """The lines that a run prints at its end: checks, then sentences."""
        checks = [f"{one.name}: {one.verdict_line}. {one.sentence}" for one in self.checks]
        return [*checks, *self.sentences]


def build_page(inputs: PageInputs) -> RunPage:
    """Return the page of a run."""
    axes = axis_names(inputs.arms)
    tables = split_by_cohort(inputs.analysis.metrics, axes)
    backgrounds = [found for _, found in inputs.backgrounds]
    checks = check_validity(tables, inputs.audits, inputs.copies, backgrounds)
    along = None
    if inputs.trajectory is not None:
        along = trajectory_parts(inputs.trajectory, inputs.swept)
    # The leaderboard lists what was left out.
    listed = {one.note for one in inputs.left_out}
    noted = detector_notes(inputs.arms, besides={*listed, *inputs.notes})
    pictures = {
        figure.name: Picture(
            figure,
            inline_svg(figure.svg, f"fig-{figure.name}", figure.alternative),
            inputs.figure_links,
        )
        for figure in inputs.figures
    }
    methods = _methods(inputs) if inputs.settings else None
    best = find_headline(tables)
    detectors = [] if best is None else detector_order(best.table, tables)
    every = all_results(tables)
    factors = None
    if inputs.analysis.factors is not None:
        factors = factors_section(inputs.analysis.factors, axes, detectors, pictures)
    gains = () if inputs.accuracy is None else accuracy_gain_tables(inputs.accuracy, axes)
    sections = (
        _validity(checks),
        _experiment(inputs, listed),
        _background(inputs),
        results_section(
            inputs.analysis,
            tables,
            best,
            detectors=detectors,
            declared=inputs.detectors,
            left_out=inputs.left_out,
            notes=noted,
            pictures=pictures,
        ),
        factors,
        None if along is None else trajectory_section(along, pictures),
        *_unlearning(inputs.unlearning, pictures),
        accuracy_section(gains, pictures) if gains else None,
        every
        and Section(anchor="all-results", short="All results", title="All results", parts=[every]),
        best and examples_section(inputs.arms, best, show_protected=inputs.show_protected),
        cost_section(inputs.steps, inputs.detector_work),
        methods and methods_section(methods, linked=inputs.figure_links),
        provenance_section(
            provenance(
                inputs.steps, inputs.artifacts, code=inputs.code, libraries=inputs.libraries
            ),
            inputs.experiment_yaml,
        ),
    )
    sentences = summary_sentences(tables)
    return RunPage(
        html=render_page(
            "spikein report",
            inputs.name,
            sentences,
            [section for section in sections if section],
            script=True,
        ),
        checks=checks,
        sentences=(
            *(note for note in noted if NO_SCORE in note),
            *sentences,
            *(along.sentences if along else ()),
        ),
        methods=methods,
    )


def _methods(inputs: PageInputs) -> Methods:
    return describe_methods(
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
    )


def _validity(checks: Sequence[Check]) -> Section:
    cards = [
        Card(one.name, one.verdict, one.verdict_line, one.sentence, _behind(one)) for one in checks
    ]
    return Section(
        anchor="validity",
        short="Validity",
        title="Is this experiment valid?",
        parts=[Cards(cards)],
    )


def _behind(check: Check) -> list[Part]:
    """Return what a verdict rests on: all intervals, or what the audit reported."""
    if check.rows:
        table = Table(
            columns=(Column("Over"), Column("AUC", right=True)),
            rows=tuple(
                (
                    Entry(
                        row.label,
                        notes=(f"{row.cell.n_members:,} + {row.cell.n_nonmembers:,}",),
                        strong=row.pooled,
                    ),
                    interval(row.cell),
                )
                for row in check.rows
            ),
            caption="Bold: over all datasets. Under each: members + non-members.",
            style="plain",
        )
        return [Fold("All intervals", [table], screen_only=len(check.rows) > _MAX_INTERVALS)]
    if not check.facts:
        return []
    alike = " (all alike)" if check.streams is not None else ""
    parts: list[Part] = [facts("", [(f"{name}{alike}", value) for name, value in check.facts])]
    if check.streams is not None and check.streams.columns:
        columns = (Column("Trained"), *(Column(name, right=True) for name in check.streams.columns))
        rows = tuple((label, *values) for label, values in check.streams.rows)
        parts.append(Table(columns=columns, rows=rows))
    return [Fold("What the audit reported", parts)]


def _experiment(inputs: PageInputs, listed: set[str]) -> Section:
    notes = [note for note in inputs.notes if note not in listed] + pool_notes(inputs.pools)
    notes = [*dict.fromkeys(notes), *passage_sentences(inputs.analysis.metrics)]
    settings = inputs.settings
    return Section(
        anchor="experiment",
        short="What was run",
        title="What was run",
        parts=present(
            description(settings, inputs.datasets) if settings else None,
            [Note(note) for note in notes],
            Columns(
                present(
                    setup(settings, swept=inputs.swept, seeds=inputs.seeds) if settings else None,
                    datasets_table(inputs.arms[0].examples) if inputs.arms else None,
                )
            ),
            stream_listing(inputs.streams),
            list(stream_sentences(inputs.streams)),
        ),
    )


def _unlearning(inputs: UnlearningInputs | None, pictures: Mapping[str, Picture]) -> list[Section]:
    if inputs is None:
        return []
    audits = audits_view(inputs.audits, inputs.audit_pages)
    sections = [unlearning_section(unlearning_view(inputs), pictures)]
    return [*sections, audits_section(audits)] if audits else sections


def _background(inputs: PageInputs) -> Section | None:
    if not inputs.backgrounds:
        return None
    return Section(
        anchor="background",
        short="Background",
        title="Was the background clean?",
        parts=[part for found in inputs.backgrounds for part in background_parts(*found)],
    )
