"""Which steps an arm's results read besides its scores, for the dataset-level detectors asked."""

from typing import NamedTuple

from analysis.dataset_detectors.registry import asked_dataset_detectors
from analysis.dataset_detectors.table import ORDERS, PARAPHRASES, REFERENCE, TARGET
from analysis.settings import AnalysisSettings
from detect.dataset_detectors.orders_step import orders_step
from detect.dataset_detectors.paraphrases_step import paraphrase_scores_step
from detect.evidence.needs import EvidenceSources
from detect.evidence.reference import Reference, reference_model
from detect.evidence.views import statistics_step
from detect.views import TEXT
from inject.errors import InputError
from inject.step import Step
from spikein.pipeline.training import ModelNode


class FurtherSteps(NamedTuple):
    """Steps by the name that the results know them by, and notes on what is left out."""

    steps: dict[str, Step]
    notes: tuple[str, ...]


def further_steps(
    model: ModelNode, sources: EvidenceSources, analysis: AnalysisSettings
) -> FurtherSteps:
    """Return what dataset-level detectors read of an arm's model.

    Raises:
        InputError: an unknown detector, or one that was named and lacks a reference model.
    """
    steps: dict[str, Step] = {}
    notes = []
    detect, examples = sources.detect, sources.examples
    for detector in asked_dataset_detectors(analysis.dataset_detectors):
        if "orders" in detector.reads:
            steps[ORDERS] = orders_step(
                model,
                examples,
                detect,
                shards=analysis.shards,
                shuffles=analysis.shuffles,
                seed=analysis.seed,
            )
        if "paraphrases" in detector.reads:
            steps[PARAPHRASES] = paraphrase_scores_step(model, examples, detect)
        if "statistics" not in detector.reads:
            continue
        other = reference_model(sources)
        if other is not None:
            steps[TARGET] = statistics_step(model, examples, view=TEXT, detect=detect)
            steps[REFERENCE] = statistics_step(other, examples, view=TEXT, detect=detect)
            continue
        problem = f"{detector.name} needs a reference model, which is not given"
        if analysis.dataset_detectors != "all":
            raise InputError(problem, where="analysis.dataset_detectors", hint=Reference.hint)
        notes.append(f"{problem}, and is left out. {Reference.hint}")
    return FurtherSteps(steps, tuple(notes))
