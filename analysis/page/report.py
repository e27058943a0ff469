"""What a report is made of. The page shows exactly this, and all of it escaped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from analysis.arm import Arm
from analysis.figures.report_figure import ReportFigure
from analysis.page.background import BackgroundAudit
from analysis.page.streams import Stream
from analysis.page.tables.detector_costs import DetectorWork
from analysis.page.trajectory import TrajectoryView
from analysis.page.unlearning.audits import AuditsView
from analysis.page.unlearning.view import UnlearningView
from analysis.references import Reference, references_text
from analysis.results import Analysis
from analysis.task_accuracy.accuracy_gain import AccuracyGainTable
from detect.detector_table import DetectorFacts
from detect.scoring import LeftOut
from inject.stream.exposures import CopyOutcomes


class Fact(NamedTuple):
    """A name and its value, both text."""

    name: str
    value: str


class CostRow(NamedTuple):
    """What one step of the graph cost."""

    step: str
    """The artifact's label."""
    tokens: int | None
    """Tokens trained on or scored; None where the step has none."""
    seconds: float
    """Wall-clock seconds when it was computed."""


class Methods(NamedTuple):
    """The paragraphs, and what they cite."""

    name: str
    """Of the experiment."""
    paragraphs: tuple[str, ...]
    references: tuple[Reference, ...]

    @property
    def bibtex(self) -> str:
        """The content of `references.bib`."""
        return references_text(self.references)


@dataclass(frozen=True, kw_only=True)
class Report:
    """One experiment, ready to be shown."""

    name: str
    arms: Sequence[Arm]
    analysis: Analysis
    experiment_yaml: str
    """The resolved experiment file."""
    description: str = ""
    """What was run, in words; a paragraph."""
    setup: Sequence[Fact] = ()
    """What was run, as a table: model, parameters, corpus, placement, …"""
    audits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By label; see `analysis.checks.validity.check_validity`."""
    streams: Sequence[Stream] = ()
    """What each model was trained on."""
    copy_outcomes: Mapping[str, CopyOutcomes] = field(default_factory=dict)
    """What became of the copies of each trained model, by its label."""
    backgrounds: Sequence[BackgroundAudit] = ()
    """What the audit of each background's text found."""
    accuracy_gains: Sequence[AccuracyGainTable] = ()
    """What the benchmark scores gained; empty where no dataset has closed answers."""
    trajectory: TrajectoryView | None = None
    """Detection along training; None where no checkpoint was kept."""
    unlearning: UnlearningView | None = None
    """What unlearned models still know; None where none was made."""
    unlearning_audits: AuditsView | None = None
    """What an audit says of them; None where none was made."""
    figures: Sequence[ReportFigure] = ()
    cost: Sequence[CostRow] = ()
    detectors: Sequence[DetectorFacts] = ()
    """What the detectors of the run declare."""
    left_out: Sequence[LeftOut] = ()
    """Detectors of `all` that could not run."""
    detector_work: Sequence[DetectorWork] = ()
    """What each detector's scores are drawn from, a model at a time."""
    provenance: Sequence[Fact] = ()
    """Digests, versions, seeds."""
    methods: Methods | None = None
    """What was done, as paragraphs for a paper, with their sources."""
    notes: Sequence[str] = ()
    """Anything a reader must know: licences, dropped rows, protected data."""
    detector_notes: Sequence[str] = ()
    """What detectors note on their scores."""
    figure_links: bool = False
    """Whether the page links to the files of its figures, which then lie in `figures/` beside
    it."""
    show_protected: bool = False
    """Whether the texts of protected datasets may appear in this page."""
