"""spikein: spike known text into a corpus, train on it, and see which detectors can tell.

All names for users and plug-ins can be imported from here; names elsewhere may move. Importing
this package costs nothing: no torch, no pydantic, no pyarrow, no registry. The first use of a name
imports its module.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.any_scores import auc_interval
    from analysis.correction.user_file import CorrectedScore
    from analysis.intervals.estimate import Estimate
    from analysis.validate.validation import Validation
    from detect.access import Access
    from detect.detector import Column, Detector, NoParameters, Score, each_example, one_score
    from detect.evidence import Evidence, ExampleEvidence, ShadowModel
    from detect.evidence.frequency import Frequency
    from detect.evidence.membership import Shadows, Sides
    from detect.evidence.needs import Need
    from detect.evidence.views import Reference, View
    from detect.ground_truth.ground_truth import GroundTruth, ScoredModel
    from detect.settings import ScoringPolicy
    from detect.token_frequency import TokenFrequency
    from detect.token_statistics import TemperedStatistics, TokenStatistics
    from inject.corpus.background.document import Document, Skipped, Source
    from inject.errors import InputError, InputErrors, SpikeinError
    from inject.examples.datasets.source import Dataset, DatasetSource
    from inject.examples.example import Row
    from inject.reading.row_parsers import PlacedRow
    from inject.reading.rows import files_identity, read_rows
    from inject.settings import Settings
    from inject.step import Step
    from spikein.api.correction import Correction, correct
    from spikein.api.finished_run import Run, load_run
    from spikein.api.ground_truth import bundle, load_bundle, validate
    from spikein.api.plan import PlanResult, PlanRow, plan
    from spikein.api.run import RunResult, run
    from spikein.api.text_scores import ScoredTexts, score_texts
    from spikein.api.unlearning_audit import UnlearningAudit, audit_unlearning
    from spikein.config.load import CheckedExperiment
    from spikein.config.schema import Experiment
    from spikein.estimates.training import Hardware
    from spikein.executors import Executor, GraphRun, RunReport, start_graph
    from spikein.pipeline.graph import Graph
    from spikein.progress import Progress
    from spikein.scoring.options import ScoringOptions
    from spikein.store.store import Store
    from train.unlearn.batch import FedTexts, UnlearningBatch
    from train.unlearn.method import MethodSettings, UnlearningMethod

    __version__: str

_MODULES = {
    "analysis.any_scores": ("auc_interval",),
    "analysis.correction.user_file": ("CorrectedScore",),
    "analysis.intervals.estimate": ("Estimate",),
    "analysis.validate.validation": ("Validation",),
    "detect.access": ("Access",),
    "detect.detector": ("Column", "Detector", "NoParameters", "Score", "each_example", "one_score"),
    "detect.evidence": ("Evidence", "ExampleEvidence", "ShadowModel"),
    "detect.ground_truth.ground_truth": ("GroundTruth", "ScoredModel"),
    "detect.evidence.frequency": ("Frequency",),
    "detect.evidence.membership": ("Shadows", "Sides"),
    "detect.evidence.needs": ("Need",),
    "detect.evidence.views": ("Reference", "View"),
    "detect.settings": ("ScoringPolicy",),
    "spikein.scoring.options": ("ScoringOptions",),
    "detect.token_frequency": ("TokenFrequency",),
    "detect.token_statistics": ("TemperedStatistics", "TokenStatistics"),
    "inject.corpus.background.document": ("Document", "Skipped", "Source"),
    "inject.errors": ("InputError", "InputErrors", "SpikeinError"),
    "inject.examples.datasets.source": ("Dataset", "DatasetSource"),
    "inject.examples.example": ("Row",),
    "inject.reading.row_parsers": ("PlacedRow",),
    "inject.reading.rows": ("files_identity", "read_rows"),
    "inject.settings": ("Settings",),
    "spikein.api.correction": ("Correction", "correct"),
    "spikein.api.finished_run": ("Run", "load_run"),
    "spikein.api.ground_truth": ("bundle", "load_bundle", "validate"),
    "spikein.api.plan": ("PlanResult", "PlanRow", "plan"),
    "spikein.api.run": ("RunResult", "run"),
    "spikein.api.text_scores": ("ScoredTexts", "score_texts"),
    "spikein.api.unlearning_audit": ("UnlearningAudit", "audit_unlearning"),
    "spikein.config.load": ("CheckedExperiment",),
    "spikein.config.schema": ("Experiment",),
    "spikein.estimates.training": ("Hardware",),
    "spikein.executors": ("Executor", "GraphRun", "RunReport", "start_graph"),
    "inject.step": ("Step",),
    "spikein.pipeline.graph": ("Graph",),
    "spikein.progress": ("Progress",),
    "spikein.store.store": ("Store",),
    "train.unlearn.batch": ("FedTexts", "UnlearningBatch"),
    "train.unlearn.method": ("MethodSettings", "UnlearningMethod"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Access",
    "CheckedExperiment",
    "Column",
    "CorrectedScore",
    "Correction",
    "Dataset",
    "DatasetSource",
    "Detector",
    "Document",
    "Estimate",
    "Evidence",
    "ExampleEvidence",
    "Executor",
    "Experiment",
    "FedTexts",
    "Frequency",
    "Graph",
    "GraphRun",
    "GroundTruth",
    "Hardware",
    "InputError",
    "InputErrors",
    "MethodSettings",
    "Need",
    "NoParameters",
    "PlacedRow",
    "PlanResult",
    "PlanRow",
    "Progress",
    "Reference",
    "Row",
    "Run",
    "RunReport",
    "RunResult",
    "Score",
    "ScoredModel",
    "ScoredTexts",
    "ScoringOptions",
    "ScoringPolicy",
    "Settings",
    "ShadowModel",
    "Shadows",
    "Sides",
    "Skipped",
    "Source",
    "SpikeinError",
    "Step",
    "Store",
    "TemperedStatistics",
    "TokenFrequency",
    "TokenStatistics",
    "UnlearningAudit",
    "UnlearningBatch",
    "UnlearningMethod",
    "Validation",
    "View",
    "__version__",
    "auc_interval",
    "audit_unlearning",
    "bundle",
    "correct",
    "each_example",
    "files_identity",
    "load_bundle",
    "load_run",
    "one_score",
    "plan",
    "read_rows",
    "run",
    "score_texts",
    "start_graph",
    "validate",
]


if not TYPE_CHECKING:  # or a type checker would accept every name

    def __getattr__(name: str) -> Any:
        # Reading package metadata takes about 10 ms, which `spikein --help` does not need.
        if name == "__version__":
            from importlib.metadata import version

            return version("spikein")
        if name in _HOMES:
            from importlib import import_module

            value = getattr(import_module(_HOMES[name]), name)
            globals()[name] = value
            return value
        from difflib import get_close_matches

        close = get_close_matches(name, _HOMES, n=1)
        suggestion = f". Did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"module 'spikein' has no attribute {name!r}{suggestion}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
