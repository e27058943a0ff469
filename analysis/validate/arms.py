"""The models of a ground truth as arms of an analysis, with columns for the judged detectors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from analysis.arm import (
    MODEL_FREE,
    UPPER_BOUNDS,
    Arm,
    Cohort,
    Column,
    LoadedArm,
    cohorts,
    find_arm,
    join_arm,
)
from analysis.selection.ranking import highest_first
from analysis.selection.tuning import choose_settings
from analysis.settings import AnalysisSettings
from analysis.validate.candidate import CandidateScores
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
    """The models that differ in their seed alone, as an analysis reads them."""

    cohort: Cohort
    models: tuple[ScoredModel, ...]
    """One a seed."""
    loaded: tuple[LoadedArm, ...]
    """The same, with their stored scores."""

    @property
    def label(self) -> str:
        """What the arm is called."""
        return self.cohort.label() or self.cohort.model


def cohort_models(truth: GroundTruth) -> list[CohortModels]:
    """Return the cohorts of a ground truth, in order."""
    arms = {id(arm): (arm, one) for one in truth.models for arm in (_arm(one, truth),)}
    by_cohort = cohorts([arm for arm, _ in arms.values()])
    found = []
    for cohort, same in by_cohort.items():
        models = tuple(arms[id(arm)][1] for arm in same)
        loaded = tuple(
            join_arm(arm, one.rows, one.scores) for arm, one in zip(same, models, strict=True)
        )
        found.append(CohortModels(cohort=cohort, models=models, loaded=loaded))
    return found


def choose_arm(
    every: Sequence[CohortModels], label: str | None, settings: AnalysisSettings
) -> CohortModels:
    """Return the arm that detectors are ranked in.

    Args:
        every: all cohorts.
        label: of the arm; None for that in which the stored detectors do best on the tune split.
        settings: of the analysis.

    Raises:
        InputError: there is no such arm, or none at all.
    """
    arms = {one.label: one for one in every if one.cohort.model == CONTAMINATED}
    if not arms:
        raise InputError("the ground truth holds no model that saw the members")
    if label is None:
        strengths = [_strength(one, settings) for one in arms.values()]
        return list(arms.values())[highest_first(strengths)[0]]
    return arms[find_arm(label, arms, where="--arm")]


def models_beside(every: Sequence[CohortModels], arm: CohortModels) -> list[CohortModels]:
    """Return the base model and the twins that stand beside an arm.

    These are the clean twin and the retrained model, which saw a part of the members.
    """
    axes = dict(arm.cohort.axes)
    return [
        one
        for one in every
        if one.cohort.model in (BASE, TWIN, RETRAINED)
        and all(axes.get(key) == value for key, value in one.cohort.axes if value)
    ]


def with_candidate(loaded: LoadedArm, name: str, scores: CandidateScores) -> LoadedArm:
    """Return an arm with the columns of one more detector.

    Args:
        loaded: the arm.
        name: what the detector is called; none of the arm's has that name.
        scores: the first setting is the default.
    """
    columns = [Column(name, one.text) for one in scores.settings]
    reasons = {(row, columns[at]): reason for (row, at), reason in scores.reasons.items()}
    every = [*loaded.columns, *columns]
    return replace(
        loaded,
        arm=replace(loaded.arm, defaults={**loaded.arm.defaults, name: scores.settings[0].text}),
        columns=every,
        scores=np.hstack([loaded.scores, scores.values]),
        reasons={**loaded.reasons, **reasons},
        index={column: at for at, column in enumerate(every)},
    )


def _arm(one: ScoredModel, truth: GroundTruth) -> Arm:
    place = Path(truth.name)
    return Arm(
        axes=one.axes,
        seed=one.seed,
        model=one.model,
        scores=place,
        examples=place,
        copies=one.copies,
        variants=one.variants,
        fixed_levels=one.fixed_levels,
        defaults=one.defaults,
    )


def _strength(one: CohortModels, settings: AnalysisSettings) -> float:
    """Return the best AUC of a stored contestant on the tune split."""
    found = [
        choice.tune_auc
        for choice in choose_settings(one.loaded, settings)
        if choice.detector not in MODEL_FREE | UPPER_BOUNDS and np.isfinite(choice.tune_auc)
    ]
    return max(found, default=0.0)
