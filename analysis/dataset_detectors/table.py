"""The table of dataset-level findings: every detector, dataset and model, p-values adjusted.

Holm's adjustment is over the datasets that one detector tested under one model, for each kind of
rows and statistic by itself: a claim about any of several datasets must survive it.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import UPPER_BOUNDS, Arm, DetectorColumn, LoadedArm
from analysis.auc_cells import PreparedCohort
from analysis.dataset_detectors.detector import (
    POOLED,
    DatasetDetector,
    DatasetEvidence,
    asked_dataset_detectors,
    holm,
)
from analysis.findings import group_by
from analysis.intervals.influence import Floats
from analysis.selection.tuning import Choice, reported_columns, shown_columns
from analysis.settings import AnalysisSettings
from detect.dataset_detectors.orders import load_orders
from detect.scores.table import read_scores
from detect.token_statistics import TokenStatistics, read_statistics
from inject.examples.example import Example
from inject.stream.exposures import NEVER, read_exposures

ORDERS, TARGET, REFERENCE, PARAPHRASES = "orders", "target", "reference", "paraphrases"
"""Names in `Arm.further`."""
_FOLDERS = {"orders": [ORDERS], "statistics": [TARGET, REFERENCE], "paraphrases": [PARAPHRASES]}
"""By what a detector reads."""
_ORDER = "order"
"""The order in which members were read, from the exposures."""


class _ArmEvidence(NamedTuple):
    """What detectors read of one arm."""

    arm: LoadedArm
    columns: Sequence[DetectorColumn]
    """The setting of each detector whose scores are read."""
    settings: AnalysisSettings
    further: Mapping[str, Any]
    """As `_read_further` returns it."""

    def of(self, name: str, score: Callable[[TokenStatistics], float] | None) -> DatasetEvidence:
        """Return the evidence on one dataset, or on all of them, with a detector's own scores."""
        arm, further = self.arm, self.further
        in_dataset = np.ones(len(arm.examples), np.bool_) if name == POOLED else arm.dataset == name
        rows = np.flatnonzero(in_dataset)
        paraphrased = further.get(PARAPHRASES)
        own = rows.tolist()
        target, reference = (self._scores(model, own, score) for model in (TARGET, REFERENCE))
        return DatasetEvidence(
            dataset=name,
            datasets=arm.dataset[rows],
            seen=(arm.member & (arm.copies > 0))[rows],
            unseen=~arm.member[rows],
            test=arm.test[rows],
            groups=arm.group[rows],
            scores={c.detector: arm.scores[rows, arm.index[c]] for c in self.columns},
            seed=arm.arm.seed,
            replicates=self.settings.replicates,
            confidence=self.settings.confidence,
            orders=further.get(ORDERS),
            order_in_stream=further.get(_ORDER, ""),
            target_scores=target,
            reference_scores=reference,
            paraphrase_scores=None
            if paraphrased is None
            else {
                detector: (arm.scores[rows, arm.index[arm.default(detector)]], scores[rows])
                for detector, scores in paraphrased.items()
                if detector in arm.arm.defaults and arm.default(detector) in arm.index
            },
        )

    def _scores(
        self, model: str, rows: Sequence[int], score: Callable[[TokenStatistics], float] | None
    ) -> Floats | None:
        statistics = self.further.get(model)
        if statistics is None or score is None:
            return None
        own = [statistics.get(self.arm.examples[row].example_id) for row in rows]
        return np.array([score(each) if each else np.nan for each in own], dtype=np.float64)


def dataset_rows(work: PreparedCohort, choices: Sequence[Choice]) -> list[dict[str, Any]]:
    """Return the findings on all arms of a cohort; empty if no detector is requested."""
    requested = asked_dataset_detectors(work.settings.dataset_detectors)
    rows: list[dict[str, Any]] = []
    for arm in work.loaded:
        further = _read_further(arm)
        evidence = _ArmEvidence(arm, _contestants(arm, choices), work.settings, further)
        for detector in requested:
            # A model without passes of its own gets the detectors that need none.
            if all(folder in further for read in detector.reads for folder in _FOLDERS[read]):
                head = {**work.cohort.place(), "seed": arm.arm.seed, "detector": detector.name}
                rows += [{**head, **row} for row in _findings(evidence, detector)]
    return rows


def _findings(evidence: _ArmEvidence, detector: DatasetDetector) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(evidence.arm.dataset))
    if detector.pooled and len(names) > 1:
        names = [POOLED, *names]
    rows = [
        {"dataset": name, **finding._asdict()}
        for name in names
        for finding in detector.find(evidence.of(name, detector.score))
    ]
    for family in group_by(rows, lambda row: (row["rows"], row["statistic"])).values():
        adjusted = holm(np.array([row["p_value"] for row in family])).tolist()
        for row, p_value in zip(family, adjusted, strict=True):
            row["p_holm"] = p_value
    return rows


def _read_further(arm: LoadedArm) -> dict[str, Any]:
    """Return the further evidence of an arm, by name, and the note on the order of members."""
    readers: Mapping[str, Callable[[Path], Any]] = {
        ORDERS: load_orders,
        TARGET: read_statistics,
        REFERENCE: read_statistics,
        PARAPHRASES: lambda folder: _paraphrase_scores(folder, arm),
    }
    folders = arm.arm.further
    further = {name: read(folders[name]) for name, read in readers.items() if name in folders}
    if ORDERS in further:
        further[_ORDER] = order_in_stream(arm.arm, arm.examples)
    return further


def _contestants(arm: LoadedArm, choices: Sequence[Choice]) -> list[DetectorColumn]:
    """Return the setting of each detector that is reported; no controls, no upper bounds."""
    columns = shown_columns(reported_columns([arm], choices))
    return [column for column in columns if column.detector not in UPPER_BOUNDS]


def _paraphrase_scores(folder: Path, arm: LoadedArm) -> dict[str, Floats]:
    position = {example.example_id: row for row, example in enumerate(arm.examples)}
    scores_by_detector: dict[str, Floats] = {}
    for row in read_scores(folder).to_pylist():
        scores = scores_by_detector.setdefault(row["detector"], np.full(len(arm.examples), np.nan))
        scores[position[row["example_id"]]] = row["score"]
    return scores_by_detector


def order_in_stream(arm: Arm, examples: Sequence[Example]) -> str:
    """Describe whether members that follow each other were read one after the other.

    Args:
        arm: its exposures give the window of each copy.
        examples: in their canonical order.
    """
    if arm.training is None:
        return "this model saw no member"
    exposures = read_exposures(arm.training)
    if "window" not in exposures.column_names:
        return "assumption not checked: the exposures name no windows"
    place: dict[str, set[tuple[int, int]]] = {}
    names = ("example_id", "epoch", "window", "start", "status")
    for name, epoch, window, start, status in zip(
        *(exposures[column].to_pylist() for column in names), strict=True
    ):
        if status != NEVER and window is not None:
            place.setdefault(name, set()).add((int(epoch) << 40 | int(window), int(start)))
    neighbours = together = 0
    for dataset in dict.fromkeys(example.dataset for example in examples):
        members = [
            example.example_id
            for example in examples
            if example.dataset == dataset and example.side == "member"
        ]
        for first, second in pairwise(members):
            neighbours += 1
            together += any(
                window == other and start < after
                for window, start in place.get(first, ())
                for other, after in place.get(second, ())
            )
    if not neighbours:
        return "assumption not checked: no two members"
    share = together / neighbours
    if share < 0.5:
        return (
            f"assumption not met: {share:.0%} of neighbouring members were read in this order "
            "within one window"
        )
    return f"assumption met: {share:.0%} of neighbouring members were read in this order"
