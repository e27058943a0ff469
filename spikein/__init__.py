"""spikein: spike known text into a corpus, train on it, and see which detectors can tell.

All names for users and plug-ins can be imported from here; names elsewhere may move. Importing
this package costs nothing: no torch, no pydantic, no pyarrow, no registry. The first use of a name
imports its module.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.any_scores import auc_interval as auc_interval
    from analysis.correction.user_file import CorrectedScore as CorrectedScore
    from analysis.intervals.estimate import Estimate as Estimate
    from analysis.validate.validation import Validation as Validation
    from detect.access import Access as Access
    from detect.detector import Column as Column
    from detect.detector import Detector as Detector
    from detect.detector import NoParameters as NoParameters
    from detect.detector import Score as Score
    from detect.detector import each_example as each_example
    from detect.detector import one_score as one_score
    from detect.evidence import Evidence as Evidence
    from detect.evidence import ExampleEvidence as ExampleEvidence
    from detect.evidence import ShadowModel as ShadowModel
    from detect.evidence.frequency import Frequency as Frequency
    from detect.evidence.membership import Shadows as Shadows
    from detect.evidence.membership import Sides as Sides
    from detect.evidence.needs import Need as Need
    from detect.evidence.views import Reference as Reference
    from detect.evidence.views import View as View
    from detect.ground_truth.ground_truth import GroundTruth as GroundTruth
    from detect.ground_truth.ground_truth import ScoredModel as ScoredModel
    from detect.settings import ScoringPolicy as ScoringPolicy
    from detect.token_frequency import TokenFrequency as TokenFrequency
    from detect.token_statistics import TemperedStatistics as TemperedStatistics
    from detect.token_statistics import TokenStatistics as TokenStatistics
    from inject.corpus.background.document import Document as Document
    from inject.corpus.background.document import Skipped as Skipped
    from inject.corpus.background.document import Source as Source
    from inject.errors import InputError as InputError
    from inject.errors import InputErrors as InputErrors
    from inject.errors import SpikeinError as SpikeinError
    from inject.examples.datasets.source import Dataset as Dataset
    from inject.examples.datasets.source import DatasetSource as DatasetSource
    from inject.examples.example import Row as Row
    from inject.reading.row_parsers import PlacedRow as PlacedRow
    from inject.reading.rows import files_identity as files_identity
    from inject.reading.rows import read_rows as read_rows
    from inject.settings import Settings as Settings
    from inject.step import Step as Step
    from spikein.api.correction import Correction as Correction
    from spikein.api.correction import correct as correct
    from spikein.api.finished_run import Run as Run
    from spikein.api.finished_run import load_run as load_run
    from spikein.api.ground_truth import bundle as bundle
    from spikein.api.ground_truth import load_bundle as load_bundle
    from spikein.api.ground_truth import validate as validate
    from spikein.api.plan import PlanResult as PlanResult
    from spikein.api.plan import PlanRow as PlanRow
    from spikein.api.plan import plan as plan
    from spikein.api.run import RunResult as RunResult
    from spikein.api.run import run as run
    from spikein.api.text_scores import ScoredTexts as ScoredTexts
    from spikein.api.text_scores import score_texts as score_texts
    from spikein.api.unlearning_audit import UnlearningAudit as UnlearningAudit
    from spikein.api.unlearning_audit import audit_unlearning as audit_unlearning
    from spikein.config.load import CheckedExperiment as CheckedExperiment
    from spikein.config.schema import Experiment as Experiment
    from spikein.estimates.training import Hardware as Hardware
    from spikein.executors import Executor as Executor
    from spikein.executors import GraphRun as GraphRun
    from spikein.executors import RunReport as RunReport
    from spikein.executors import start_graph as start_graph
    from spikein.pipeline.graph import Graph as Graph
    from spikein.progress import Progress as Progress
    from spikein.scoring.options import ScoringOptions as ScoringOptions
    from spikein.store.store import Store as Store
    from train.unlearn.batch import FedTexts as FedTexts
    from train.unlearn.batch import UnlearningBatch as UnlearningBatch
    from train.unlearn.method import MethodSettings as MethodSettings
    from train.unlearn.method import UnlearningMethod as UnlearningMethod

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

if not TYPE_CHECKING:  # or a type checker would accept every name
    __all__ = sorted([*_HOMES, "__version__"])

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
    return sorted({*globals(), *_HOMES, "__version__"})
