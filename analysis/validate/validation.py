"""Judging detectors by ground truth: run, rank, check. One that fails is named; the rest goes on.

Cost: from a bundle of 430 rows, six models and eight stored detectors 4 s of one core. The checks
of stability run a detector on at most 200 rows each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import ValidationError

from analysis.arm import Column, LoadedArm
from analysis.copy_bins import ALL
from analysis.metrics_table import Cell
from analysis.settings import AnalysisSettings
from analysis.validate.arms import (
    CohortModels,
    choose_arm,
    cohort_models,
    models_beside,
    with_candidate,
)
from analysis.validate.dependence import length_findings, loss_finding, nearest_finding
from analysis.validate.label_checks import (
    column_cell,
    infinite_scores,
    missing_scores,
    orientation,
    ties,
)
from analysis.validate.ranking import Ranking, rank
from analysis.validate.unexposed import after_removal, chance
from detect.detector_settings import DetectorSetting
from detect.evidence.membership import Shadows, Sides
from detect.ground_truth.ground_truth import (
    BASE,
    CONTAMINATED,
    RETRAINED,
    TWIN,
    GroundTruth,
    Provenance,
)
from detect.validate.candidate import Candidate, Given, Refused, load_candidate
from detect.validate.candidate_scores import (
    TIME_LIMIT,
    CandidateRunner,
    CandidateScores,
    TooSlow,
)
from detect.validate.finding import Finding, ordered
from detect.validate.stability import stability_findings
from inject.errors import InputError, SpikeinError

_NAMES = {BASE: "base model", TWIN: "clean twin", RETRAINED: "retrained model"}

Progress = Callable[[str], None]


class InArm(NamedTuple):
    """The AUC of a judged detector in one arm."""

    arm: str
    cell: Cell | None


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What is known of one detector."""

    candidate: Candidate
    findings: tuple[Finding, ...]
    """The worst first."""
    seconds: float
    """To score 1,000 rows, as measured."""
    arms: tuple[InArm, ...]
    """Its AUC in every arm."""
    notes: tuple[str, ...]
    """Its own, and what of its grid could not be run."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return self.candidate.name


@dataclass(frozen=True, kw_only=True)
class Validation:
    """All that validating says."""

    name: str
    """Of the experiment."""
    arm: str
    """The arm in which detectors are ranked."""
    arms: tuple[str, ...]
    """All arms."""
    ranking: Ranking
    judged: tuple[Judged, ...]
    refused: tuple[Refused, ...]
    settings: AnalysisSettings
    provenance: Provenance
    source: str
    """The run or bundle, as it was given."""
    content: str = ""
    """The digest of the bundle; empty for a run."""


class _ModelScores(NamedTuple):
    """Scores on one model, and the settings of their columns."""

    settings: list[DetectorSetting]
    scores: CandidateScores


@dataclass(kw_only=True)
class _Run:
    """A detector that has been scored, on its way to a verdict."""

    runner: CandidateRunner
    scores: dict[int, list[_ModelScores]]
    """On the models of each cohort, by the cohort's place."""
    seconds: float
    notes: list[str]

    def joined(self, place: int, loaded: Sequence[LoadedArm]) -> list[LoadedArm]:
        """Return the arms of a cohort with the columns of this detector."""
        name = self.runner.candidate.name
        return [
            with_candidate(arm, name, one.settings, one.scores)
            for arm, one in zip(loaded, self.scores[place], strict=True)
        ]


def validate_detectors(
    given: Sequence[Given],
    truth: GroundTruth,
    *,
    source: str,
    arm: str | None = None,
    time_limit: float = TIME_LIMIT,
    progress: Progress | None = None,
) -> Validation:
    """Judge detectors.

    Args:
        given: the detectors.
        truth: what they are judged by.
        source: where that comes from, for people.
        arm: the arm in which they are ranked; None for the one in which stored detectors do best.
        time_limit: seconds for 1,000 rows.
        progress: called with what is done next.

    Raises:
        InputError: nothing is given, or none of the detectors can be judged; no such arm.
    """
    say = progress or (lambda _: None)
    if not given:
        raise InputError("no detector is given", allowed="FILE.py:NAME, one or more")
    settings = _settings(truth, source)
    every = cohort_models(truth)
    chosen = choose_arm(every, arm, settings)
    stored = {name for one in every for loaded in one.loaded for name in loaded.detectors}
    runs: list[_Run] = []
    refused: list[Refused] = []
    for one in given:
        say(f"scoring {one if isinstance(one, str) else 'a detector'}")
        found = _scored(one, every, chosen, stored, time_limit)
        if isinstance(found, Refused):
            refused.append(found)
        else:
            stored.add(found.runner.candidate.name)
            runs.append(found)
    at = every.index(chosen)
    say("ranking")
    loaded = list(chosen.loaded)
    for run in runs:
        loaded = run.joined(at, loaded)
    ranking = rank(chosen.cohort, loaded, [run.runner.candidate.name for run in runs], settings)
    judged = []
    for run in runs:
        say(f"checking {run.runner.candidate.name}")
        judged.append(_judge(run, every, chosen, ranking, settings))
    return Validation(
        name=truth.name,
        arm=chosen.label,
        arms=tuple(one.label for one in every if one.cohort.model == CONTAMINATED),
        ranking=ranking,
        judged=tuple(judged),
        refused=tuple(refused),
        settings=settings,
        provenance=truth.provenance,
        source=source,
        content=truth.content,
    )


def _settings(truth: GroundTruth, source: str) -> AnalysisSettings:
    try:
        return AnalysisSettings.model_validate(dict(truth.analysis))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"its settings of the analysis are of another version: {place}: {first['msg']}",
            where=source,
        ) from None


def _scored(
    given: Given,
    every: Sequence[CohortModels],
    chosen: CohortModels,
    stored: set[str],
    seconds: float,
) -> _Run | Refused:
    """Load and run one detector on all models, or say why not."""
    text = given if isinstance(given, str) else getattr(given, "name", None) or repr(given)
    name = str(text)
    kind: Literal["loading", "needs", "failed"] = "loading"
    first = chosen.models[0]
    try:
        candidate = load_candidate(given, first.evidence, taken=stored, protected=first.protected)
        name, kind = candidate.name, "needs"
        runner = CandidateRunner(candidate=candidate, seconds=seconds)
        run = _Run(runner=runner, scores={}, seconds=0.0, notes=[])
        usable = runner.settings(first)
        if len(usable) < len(candidate.settings):
            left = len(candidate.settings) - len(usable)
            run.notes.append(f"{left} settings of its grid need what is not here, and are left out")
        kind = "failed"
        run.seconds = runner.check_time(first)
        _score_all(run, every, chosen)
    except TooSlow as error:
        return Refused(given=str(text), name=name, kind="too slow", problem=str(error))
    except SpikeinError as error:
        return Refused(given=str(text), name=name, kind=kind, problem=str(error))
    return run


def _score_all(run: _Run, every: Sequence[CohortModels], chosen: CohortModels) -> None:
    """Score all cohorts; only in the chosen one must the detector's needs be met."""
    for place, cohort in enumerate(every):
        if cohort.cohort.model not in (CONTAMINATED, *_NAMES):
            continue
        try:
            asked = [run.runner.settings(model) for model in cohort.models]
        except InputError as error:
            if cohort is chosen:
                raise
            run.notes.append(f"not scored on {cohort.label}: {error.problem}")
            continue
        run.scores[place] = []
        for model, settings in zip(cohort.models, asked, strict=True):
            scores = run.runner.score(model)
            if cohort is chosen:
                run.seconds = max(run.seconds, scores.seconds / len(model.rows) * 1000)
            run.notes += scores.notes
            run.scores[place].append(_ModelScores(settings, scores))


def _judge(
    run: _Run,
    every: Sequence[CohortModels],
    chosen: CohortModels,
    ranking: Ranking,
    settings: AnalysisSettings,
) -> Judged:
    candidate = run.runner.candidate
    name = candidate.name
    loaded = run.joined(every.index(chosen), chosen.loaded)
    column = ranking.reported.get(name, Column(name, candidate.default))
    findings = [
        *orientation(ranking.line(name).auc),
        missing_scores(chosen.cohort, loaded, column, settings),
        *infinite_scores(loaded, column),
        ties(loaded, column),
        length_findings(chosen.models, loaded, column, settings),
        loss_finding(chosen.models, loaded, column),
        *_nearest(loaded, column, ranking),
        *_knowledge(candidate),
    ]
    findings += _stable(run, chosen, settings)
    findings += _chance(run, every, chosen, column, settings)
    return Judged(
        candidate=candidate,
        findings=ordered(findings),
        seconds=run.seconds,
        arms=tuple(
            InArm(one.label, _cell(run, place, one, column, settings))
            for place, one in enumerate(every)
            if one.cohort.model == CONTAMINATED and place in run.scores
        ),
        notes=tuple(dict.fromkeys(run.notes)),
    )


def _nearest(loaded: Sequence[LoadedArm], column: Column, ranking: Ranking) -> list[Finding]:
    others = [one for one in ranking.reported.values() if one in loaded[0].index]
    found = nearest_finding(loaded, column, [one for one in others if one != column])
    return [] if found is None else [found]


def _knowledge(candidate: Candidate) -> list[Finding]:
    """Say where a detector knows more than somebody who audits a model."""
    needs = candidate.detector.needs
    found = []
    if any(isinstance(need, Sides) for need in needs):
        found.append(
            Finding(
                check="labels",
                severity="note",
                found="It is given the labels (`Sides`).",
                meaning="Its AUC counts only if no row helps to score itself.",
                action="Score out of fold, whole groups at a time, as `blind` does.",
            )
        )
    if any(isinstance(need, Shadows) for need in needs):
        found.append(
            Finding(
                check="shadow models",
                severity="note",
                found="It reads shadow models.",
                meaning="Nobody who audits another's model has these: read it as an upper bound.",
            )
        )
    return found


def _stable(run: _Run, chosen: CohortModels, settings: AnalysisSettings) -> list[Finding]:
    try:
        return stability_findings(run.runner, chosen.models[0], seed=settings.seed)
    except InputError as error:
        return [
            Finding(
                check="few rows at a time",
                severity="wrong",
                found=f"It scores all rows together, and fails on a part of them: {error}",
                meaning="It cannot be asked about a single text.",
                action="Handle a short list of rows; or say in its summary how many it needs.",
            )
        ]


def _chance(
    run: _Run,
    every: Sequence[CohortModels],
    chosen: CohortModels,
    column: Column,
    settings: AnalysisSettings,
) -> list[Finding]:
    beside = [one for one in models_beside(every, chosen) if every.index(one) in run.scores]
    if not beside:
        return [
            Finding(
                check="chance",
                severity="note",
                found="There is no base model and no twin that it could be scored on.",
                meaning="Whether it tells the sides apart without membership is not known.",
            )
        ]
    found = []
    for one in beside:
        place = every.index(one)
        cell = _cell(run, place, one, column, settings)
        if one.cohort.model == RETRAINED:
            forgotten = _cell(run, place, one, column, settings, copies="0")
            found.append(after_removal(forgotten, cell, len(beside)))
        else:
            found.append(chance(_NAMES[one.cohort.model], cell, len(beside)))
    return found


def _cell(
    run: _Run,
    place: int,
    cohort: CohortModels,
    column: Column,
    settings: AnalysisSettings,
    *,
    copies: str = ALL,
) -> Cell | None:
    """Return the AUC of a detector's setting in a cohort; None where it was not scored there."""
    loaded = run.joined(place, cohort.loaded)
    if any(column not in arm.index for arm in loaded):
        return None
    return column_cell(cohort.cohort, loaded, column, settings, copies=copies)
