"""The inputs of a page: tables, settings and facts of a run, collected by `spikein.runs`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from analysis.arm import Arm, Cohort, axis_column, axis_names
from analysis.arm_labels import arm_words
from analysis.findings import Row
from analysis.page.unlearning.sections import UnlearningInputs
from analysis.results import Analysis
from analysis.settings import AnalysisSettings
from detect.detector_table import DetectorFacts
from detect.scoring import SkippedDetector
from detect.settings import DetectSettings
from inject.examples.contaminant import Contaminant, PoolSettings
from inject.examples.twin_membership import Twins
from inject.overlap.filter import OverlapFacts
from inject.overlap.index import Overlap
from inject.plan.settings import Copies, Placement
from inject.stream.exposures import CopyOutcomes
from inject.variants.settings import Variants
from train.settings import BaseSettings, ModelSettings, TrainSettings


@dataclass(frozen=True, kw_only=True)
class ArmSettings:
    """The settings of one arm that the page shows."""

    name: str = ""
    """Of an arm in `arms`; empty in a sweep."""
    axes: Mapping[str, str]
    """Swept axis → its value in this arm."""
    background: str
    """The sources of the background."""
    tokens: int
    """Of the training stream, copies included."""
    contaminants: Sequence[Contaminant]
    model: ModelSettings
    base: BaseSettings | None
    train: TrainSettings
    copies: Copies
    placement: Placement
    variants: Variants
    twins: Twins
    pool: PoolSettings
    detect: DetectSettings


@dataclass(frozen=True, kw_only=True)
class ModelStream:
    """The training data of one model."""

    axes: Mapping[str, str]
    model: str
    seed: int
    tokens: int
    """Of the stream, copies included."""
    payload: int
    """Tokens of it that are copies, with the text around them."""
    copies: CopyOutcomes
    """Its copies, by whether training read them."""

    @property
    def share(self) -> float:
        """The part of the stream that is copies."""
        return self.payload / self.tokens if self.tokens else 0.0


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One step of the run."""

    name: str
    tokens: int | None
    """Tokens trained on or scored; None if the step has none."""
    seconds: float
    """Wall-clock seconds when it was computed."""
    created: str
    """When it was computed: UTC, ISO 8601."""
    code: str | None
    """The version of the code that computed it; None if it was not recorded."""
    machine: str | None
    """The kind of machine; None if it was not recorded."""


class NamedArtifact(NamedTuple):
    """An artifact that the page names by its digests."""

    name: str
    digest: str
    content: str
    """The digest of its content."""


@dataclass(frozen=True, kw_only=True)
class EvidenceStep:
    """One step that detectors' scores are drawn from."""

    key: str
    """The same step has the same key everywhere."""
    seconds: float
    """When it was computed."""
    tokens_in: int | None = None
    """Tokens scored, or of prompts; None if the step asked no model, or did not count."""
    tokens_out: int | None = None
    """Tokens that a model wrote."""


@dataclass(frozen=True, kw_only=True)
class DetectorWork:
    """What one detector's scores of one model are drawn from."""

    detector: str
    cost: str
    """Passes over each text, as the detector's needs declare it."""
    steps: tuple[EvidenceStep, ...]
    scoring_seconds: float | None
    """From evidence to scores, all its settings; None if it was not recorded."""


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
    claims: str = ""
    """The digest of the claims and their design; empty without any."""
    settings: Sequence[ArmSettings] = ()
    """Of every arm."""
    analysis_settings: AnalysisSettings = field(default_factory=AnalysisSettings)
    audits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The findings of each stream's audit, by label, including those of shadow models."""
    copies: Mapping[str, CopyOutcomes] = field(default_factory=dict)
    """The copies of each trained model, by whether training read them; by its label."""
    streams: Sequence[ModelStream] = ()
    """Of the arms and the reported twins."""
    backgrounds: Sequence[tuple[Sequence[Overlap], OverlapFacts]] = ()
    """The findings of the audit of each background's text."""
    pools: Sequence[tuple[str, Mapping[str, Mapping[str, Any]]]] = ()
    """The label of each pool of examples, and the facts that it records of each dataset
    (`examples.json`)."""
    accuracy: pa.Table | None = None
    """The task accuracies; None if no dataset has closed answers."""
    background_loss: pa.Table | None = None
    """The losses on held-out background; None unless measured."""
    trajectory: Mapping[str, pa.Table] | None = None
    """Detection along training; None if no checkpoint was kept."""
    steps: Sequence[StepRecord] = ()
    artifacts: Sequence[NamedArtifact] = ()
    """Those that the page names by their digests."""
    code: str = ""
    """The version of the code that makes the page."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Name → version of the libraries that matter."""
    detectors: Sequence[DetectorFacts] = ()
    """The declarations of the run's detectors."""
    left_out: Sequence[SkippedDetector] = ()
    """Detectors of `all` that could not run."""
    detector_work: Sequence[DetectorWork] = ()
    """What each detector's scores are drawn from, a model at a time."""
    notes: Sequence[str] = ()
    """Everything that the graph skipped, with the reason."""
    unlearning: UnlearningInputs | None = None
    """Measures of unlearned models; None if there are none."""
    figure_links: bool = False
    """Whether the files of the figures are next to the page."""
    show_protected: bool = False
    """Whether the texts of protected datasets may appear in the page."""

    def arm_name(self, cohort: Cohort) -> str:
        """Return the name that the experiment file gives to an arm; empty in a sweep."""
        axes = dict(cohort.axes)
        return next((arm.name for arm in self.settings if arm.axes == axes), "")

    def arm_words(self, cohort: Cohort) -> str:
        """Return an arm's name, or its axes in words; empty if there is but one."""
        return self.arm_name(cohort) or arm_words(cohort.axes)

    @cached_property
    def axes(self) -> list[str]:
        """The swept axes of the scored models, by their dotted keys."""
        return axis_names(self.arms)

    def arm_of(self, row: Row) -> str:
        """Return the arm of a row of a table, as `arm_words`."""
        return self.arm_words(
            Cohort(tuple((axis, row[axis_column(axis)]) for axis in self.axes), "")
        )
