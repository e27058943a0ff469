"""The rank of a new detector: all detectors of one arm measured by the rule of the report.

The models of a ground truth are arms of an analysis, with columns for the judged detectors.

Settings are chosen on `tune`, everything is measured on `test`, on the rows that all detectors can
score; one that cannot score many of them is measured on separate rows. Differences are paired:
both detectors on the same rows, with the same resamplings.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from analysis.arm import (
    MODEL_FREE,
    UPPER_BOUNDS,
    Arm,
    Cohort,
    DetectorColumn,
    LoadedArm,
    cohorts,
    find_arm,
    join_arm,
)
from analysis.auc_cells import ColumnMetrics, PreparedCohort, measure_columns
from analysis.copy_bins import ALL
from analysis.findings import Findings, Row
from analysis.intervals.estimate import no_estimate
from analysis.metrics import POOLED
from analysis.selection.ranking import highest_first
from analysis.selection.tuning import choose_settings, reported_columns
from analysis.settings import AnalysisSettings
from analysis.validate.candidate import CandidateScores
from analysis.validate.checks import measured_metrics, on_shared_rows
from detect.ground_truth.ground_truth import (
    BASE,
    CONTAMINATED,
    RETRAINED,
    TWIN,
    GroundTruth,
    ScoredModel,
)
from inject.errors import InputError


@dataclass(frozen=True, kw_only=True)
class CohortModels:
    """The models that differ only in their seed, as an analysis reads them."""

    cohort: Cohort
    models: tuple[ScoredModel, ...]
    """One a seed."""
    loaded: tuple[LoadedArm, ...]
    """The same, with their stored scores."""

    @property
    def label(self) -> str:
        """The arm's name."""
        return self.cohort.label() or self.cohort.model


def cohort_models(truth: GroundTruth) -> list[CohortModels]:
    """Return the cohorts of a ground truth, in order."""
    arms = [_arm(model, truth) for model in truth.models]
    models = {id(arm): model for arm, model in zip(arms, truth.models, strict=True)}
    return [
        CohortModels(
            cohort=cohort,
            models=tuple(models[id(arm)] for arm in cohort_arms),
            loaded=tuple(
                join_arm(arm, models[id(arm)].rows, models[id(arm)].scores) for arm in cohort_arms
            ),
        )
        for cohort, cohort_arms in cohorts(arms).items()
    ]


def choose_arm(
    all_cohorts: Sequence[CohortModels], label: str | None, settings: AnalysisSettings
) -> CohortModels:
    """Return the arm that detectors are ranked in.

    Args:
        all_cohorts: all cohorts.
        label: of the arm; None for that in which the stored detectors do best on the tuning split.
        settings: of the analysis.

    Raises:
        InputError: an unknown arm, or a ground truth without any.
    """
    arms = {models.label: models for models in all_cohorts if models.cohort.model == CONTAMINATED}
    if not arms:
        raise InputError("the ground truth holds no model that saw the members")
    if label is None:
        strengths = [_strength(models, settings) for models in arms.values()]
        return list(arms.values())[highest_first(strengths)[0]]
    return arms[find_arm(label, arms, place="--arm")]


def models_without_members(
    all_cohorts: Sequence[CohortModels], arm: CohortModels
) -> list[CohortModels]:
    """Return the base model, the clean twin and the retrained model of an arm.

    The retrained model lacks only the members that were to be forgotten.
    """
    axes = dict(arm.cohort.axes)
    return [
        models
        for models in all_cohorts
        if models.cohort.model in (BASE, TWIN, RETRAINED)
        and all(axes.get(key) == value for key, value in models.cohort.axes if value)
    ]


def with_candidate(loaded: LoadedArm, name: str, scores: CandidateScores) -> LoadedArm:
    """Return an arm with the columns of one more detector.

    Args:
        loaded: the arm.
        name: what the detector is called; none of the arm's has that name.
        scores: the first setting is the default.
    """
    columns = [DetectorColumn(name, setting.text) for setting in scores.settings]
    reasons = {(row, columns[at]): reason for (row, at), reason in scores.reasons.items()}
    all_columns = [*loaded.columns, *columns]
    return replace(
        loaded,
        arm=replace(loaded.arm, defaults={**loaded.arm.defaults, name: scores.settings[0].text}),
        columns=all_columns,
        scores=np.hstack([loaded.scores, scores.values]),
        reasons={**loaded.reasons, **reasons},
    )


def _arm(model: ScoredModel, truth: GroundTruth) -> Arm:
    place = Path(truth.name)
    return Arm(
        axes=model.axes,
        seed=model.seed,
        model=model.model,
        scores=place,
        examples=place,
        copies=model.copies,
        variants=model.variants,
        fixed_levels=model.fixed_levels,
        defaults=model.defaults,
    )


def _strength(models: CohortModels, settings: AnalysisSettings) -> float:
    """Return the best AUC of a stored contestant on the tuning split."""
    aucs = [
        choice.tune_auc
        for choice in choose_settings(models.loaded, settings)
        if choice.detector not in MODEL_FREE | UPPER_BOUNDS and np.isfinite(choice.tune_auc)
    ]
    return max(aucs, default=0.0)


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """All detectors of one arm, as rows of the question `validation`."""

    lines: Findings
    """The AUC of each detector, the highest first. `rank` is among the contestants: 0 for others,
    and without an AUC. `role` is empty for a contestant, else `control` (it looks at no model) or
    `upper bound` (it knows more than an auditor). `own_rows` is 1 if it is measured on rows of its
    own, as it could not score many."""
    differences: Findings
    """The AUC of each judged detector minus that of each other, on the same rows; `own_rows` is 1
    if these are those that both of them can score, in place of those of the lines."""
    table: Findings
    """The metrics by dataset, copies and metric."""
    reported: Mapping[str, DetectorColumn]
    """The setting that stands for each detector."""

    def line(self, detector: str) -> Row:
        """Return the line of a detector."""
        return next(row for row in self.lines.rows if row["detector"] == detector)


def rank(
    cohort: Cohort,
    loaded: Sequence[LoadedArm],
    judged: Sequence[str],
    settings: AnalysisSettings,
) -> Ranking:
    """Measure and rank all detectors of an arm.

    Args:
        cohort: which arm.
        loaded: its models, one per seed, with the judged detectors' columns.
        judged: the names of these.
        settings: of the analysis.
    """
    choices = choose_settings(loaded, settings)
    picked = reported_columns(loaded, choices)
    work = PreparedCohort.prepare(cohort, loaded, list(picked), settings)
    measured = measure_columns(work, picked)
    table = measured_metrics(work, picked, measured)
    reported = {
        choice.detector: column
        for choice in choices
        for column in (DetectorColumn(choice.detector, choice.tuned or choice.default),)
        if column in picked
    }
    apart = {
        column for parts in work.compared for compared in parts.values() for column in compared.own
    }
    return Ranking(
        lines=Findings(_lines(table, reported, apart)),
        differences=Findings(
            row
            for name in judged
            if name in reported
            for row in _differences(work, reported, name, measured, apart)
        ),
        table=table,
        reported=reported,
    )


def _lines(
    table: Findings, reported: Mapping[str, DetectorColumn], apart: set[DetectorColumn]
) -> Iterator[dict[str, Any]]:
    rows = [row for name in sorted(reported) if (row := table.reported_row(name))]
    rank = 0
    for row in (rows[at] for at in highest_first([row["value"] for row in rows])):
        name = row["detector"]
        role = "control" if name in MODEL_FREE else "upper bound" if name in UPPER_BOUNDS else ""
        placed = not role and isfinite(row["value"])
        rank += placed
        yield {
            **row,
            "kind": "rank",
            "role": role,
            "rank": rank if placed else 0,
            "own_rows": int(reported[name] in apart),
        }


def _differences(
    work: PreparedCohort,
    reported: Mapping[str, DetectorColumn],
    name: str,
    measured: Mapping[DetectorColumn, ColumnMetrics],
    apart: set[DetectorColumn],
) -> Iterator[dict[str, Any]]:
    """Yield the paired differences of one detector to all others, of every dataset and cell."""
    column = reported[name]
    for other in reported.values():
        if other == column:
            continue
        own = column in apart or other in apart
        pair, both = work, measured
        if own:
            columns = [column, other]
            pair, both = on_shared_rows(work.cohort, work.loaded, columns, work.settings)
        numbers = both[column].auc - both[other].auc
        for dataset in (POOLED, *pair.datasets):
            own_aucs, other_aucs = (both[side].aucs(dataset) for side in (column, other))
            gaps = numbers.estimates(
                None if dataset == POOLED else dataset, confidence=pair.settings.confidence
            )
            for copies, gap in zip(own_aucs, gaps or [_NO_AUC] * len(own_aucs), strict=True):
                auc = own_aucs[copies]
                if copies != ALL and auc.members < pair.settings.min_members:
                    continue
                value = auc.value - other_aucs[copies].value
                difference = gap._replace(value=value) if isfinite(value) else _NO_AUC
                yield {
                    "kind": "difference",
                    **column._asdict(),
                    "versus": other.detector,
                    "versus_setting": other.setting,
                    "dataset": dataset,
                    "copies": copies,
                    **difference.measures(),
                    **auc.counts(),
                    "own_rows": int(own),
                }


_NO_AUC = no_estimate("one of the two has no AUC")
