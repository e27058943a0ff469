"""Evaluating detectors on ground truth: run, rank, check. One failure does not stop the others.

Cost: from a bundle of 430 rows, six models and eight stored detectors 4 s of one core. The checks
of stability run a detector on at most 200 rows each.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import pyarrow as pa
from pydantic import ValidationError

from analysis.arm import Cohort, DetectorColumn, LoadedArm
from analysis.findings import Row, question_table
from analysis.settings import AnalysisSettings
from analysis.validate import checks
from analysis.validate.candidate import (
    TIME_LIMIT,
    Candidate,
    CandidateScores,
    Given,
    Refused,
    TooSlow,
    load_candidate,
)
from analysis.validate.checks import CheckedSetting, CheckFinding
from analysis.validate.dependence import length_findings, loss_finding, nearest_finding
from analysis.validate.ranking import (
    CohortModels,
    Ranking,
    choose_arm,
    cohort_models,
    models_without_members,
    rank,
    with_candidate,
)
from analysis.validate.stability import stability_findings
from detect.evidence.membership import Shadows, Sides
from detect.ground_truth.ground_truth import (
    BASE,
    CONTAMINATED,
    RETRAINED,
    TWIN,
    GroundTruth,
    Provenance,
    ScoredModel,
)
from inject.errors import InputError, SpikeinError

_NAMES = {BASE: "base model", TWIN: "clean twin", RETRAINED: "retrained model"}

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class CandidateResult:
    """The results of one detector."""

    candidate: Candidate
    findings: tuple[CheckFinding, ...]
    """The worst first."""
    seconds: float
    """To score 1,000 rows, as measured."""
    arms: tuple[tuple[str, Row | None], ...]
    """Its AUC in every arm."""
    notes: tuple[str, ...]
    """Its own, and what of its grid could not be run."""

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.candidate.name


@dataclass(frozen=True, kw_only=True)
class Validation:
    """All results of a validation."""

    name: str
    """Of the experiment."""
    arm: str
    """The arm in which detectors are ranked."""
    arms: tuple[str, ...]
    """All arms."""
    ranking: Ranking
    judged: tuple[CandidateResult, ...]
    refused: tuple[Refused, ...]
    settings: AnalysisSettings
    provenance: Provenance
    source: str
    """The run or bundle, as it was given."""
    content: str = ""
    """The digest of the bundle; empty for a run."""

    @property
    def findings(self) -> pa.Table:
        """The question `validation`: ranks, paired differences, AUCs by arm, and checks."""
        rows = [*self.ranking.lines.rows, *self.ranking.differences.rows]
        for result in self.judged:
            head = {"detector": result.name}
            rows += [{**(row or {}), **head, "kind": "arm", "arm": arm} for arm, row in result.arms]
            rows += [{**head, "kind": "check", **finding._asdict()} for finding in result.findings]
        return question_table("validation", [], rows)


class _Bench(NamedTuple):
    """What detectors are judged by."""

    cohorts: Sequence[CohortModels]
    chosen: CohortModels
    """Those of the arm in which detectors are ranked."""
    settings: AnalysisSettings


@dataclass(kw_only=True)
class _Scored:
    """A detector that has been scored, on its way to a verdict."""

    candidate: Candidate
    scores: dict[Cohort, list[CandidateScores]] = field(default_factory=dict)
    """On the models of each cohort."""
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def joined(self, cohort: Cohort, loaded: Sequence[LoadedArm]) -> list[LoadedArm]:
        """Return the arms of a cohort with the columns of this detector."""
        return [
            with_candidate(arm, self.candidate.name, scores)
            for arm, scores in zip(loaded, self.scores[cohort], strict=True)
        ]

    def subject(
        self, models: CohortModels, column: DetectorColumn, settings: AnalysisSettings
    ) -> CheckedSetting:
        """Return a setting under the models of a cohort."""
        loaded = self.joined(models.cohort, models.loaded)
        return CheckedSetting(models.cohort, models.models, loaded, column, settings)


def validate_detectors(
    detectors: Sequence[Given],
    truth: GroundTruth,
    *,
    source: str,
    arm: str | None = None,
    time_limit: float = TIME_LIMIT,
    progress: Progress | None = None,
) -> Validation:
    """Judge detectors.

    Args:
        detectors: the detectors.
        truth: what they are judged by.
        source: where that comes from, for people.
        arm: the arm in which they are ranked; None for the one in which stored detectors do best.
        time_limit: seconds for 1,000 rows.
        progress: called with what is done next.

    Raises:
        InputError: nothing is given, or none of the detectors can be judged; no such arm.
    """
    say = progress or (lambda _: None)
    if not detectors:
        raise InputError("no detector is given", allowed="FILE.py:NAME, one or more")
    settings = _settings(truth, source)
    cohorts = cohort_models(truth)
    chosen = choose_arm(cohorts, arm, settings)
    bench = _Bench(cohorts, chosen, settings)
    stored = {name for models in cohorts for loaded in models.loaded for name in loaded.detectors}
    scored: list[_Scored] = []
    refused: list[Refused] = []
    for detector in detectors:
        say(f"scoring {detector if isinstance(detector, str) else 'a detector'}")
        result = _score(detector, bench, stored, time_limit)
        if isinstance(result, Refused):
            refused.append(result)
        else:
            stored.add(result.candidate.name)
            scored.append(result)
    say("ranking")
    loaded = list(chosen.loaded)
    for entry in scored:
        loaded = entry.joined(chosen.cohort, loaded)
    ranking = rank(chosen.cohort, loaded, [entry.candidate.name for entry in scored], settings)
    judged = []
    for entry in scored:
        say(f"checking {entry.candidate.name}")
        judged.append(_judge(entry, bench, ranking))
    return Validation(
        name=truth.name,
        arm=chosen.label,
        arms=tuple(models.label for models in cohorts if models.cohort.model == CONTAMINATED),
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


def _score(source: Given, bench: _Bench, stored: set[str], limit: float) -> _Scored | Refused:
    """Load and run one detector on all models, or return the reason for its rejection."""
    text = source if isinstance(source, str) else getattr(source, "name", None) or repr(source)
    name = str(text)
    kind: Literal["loading", "needs", "failed", "too slow"] = "loading"
    first = bench.chosen.models[0]
    try:
        candidate = load_candidate(source, first.evidence, taken=stored, protected=first.protected)
        name, kind = candidate.name, "needs"
        scored = _Scored(candidate=candidate)
        if left := len(candidate.settings) - len(candidate.settings_for(first)):
            scored.notes.append(
                f"{left} settings of its grid need evidence that is not here, and are omitted"
            )
        kind = "failed"
        scored.seconds = candidate.check_time(first, limit)
        _score_all(scored, bench)
    except SpikeinError as error:
        kind = "too slow" if isinstance(error, TooSlow) else kind
        problem = str(error)
        # What a function reads it need not declare: what is not there ends in one of these.
        if kind != "needs" and any(sign in problem for sign in ("KeyError", "NoneType")):
            problem += _left_out(first)
        return Refused(given=str(text), name=name, kind=kind, problem=problem)
    return scored


def _left_out(model: ScoredModel) -> str:
    if not model.left_out:
        return ""
    return (
        f" The bundle was packed without {', '.join(model.left_out)}: if it reads one of these, "
        "pack it again with `spikein bundle RUN --include NAME`."
    )


def _score_all(scored: _Scored, bench: _Bench) -> None:
    """Score all cohorts; only in the chosen one must the detector's needs be met."""
    for cohort in bench.cohorts:
        if cohort.cohort.model not in (CONTAMINATED, *_NAMES):
            continue
        try:
            for model in cohort.models:
                scored.candidate.settings_for(model)
        except InputError as error:
            if cohort is bench.chosen:
                raise
            scored.notes.append(f"not scored on {cohort.label}: {error.problem}")
            continue
        scored.scores[cohort.cohort] = [scored.candidate.score(model) for model in cohort.models]
        for model, scores in zip(cohort.models, scored.scores[cohort.cohort], strict=True):
            if cohort is bench.chosen:
                scored.seconds = max(scored.seconds, scores.seconds / len(model.rows) * 1000)
            scored.notes += scores.notes


def _judge(scored: _Scored, bench: _Bench, ranking: Ranking) -> CandidateResult:
    candidate = scored.candidate
    column = ranking.reported.get(candidate.name, DetectorColumn(candidate.name, candidate.default))
    subject = scored.subject(bench.chosen, column, bench.settings)
    index = subject.loaded[0].index
    others = [other for other in ranking.reported.values() if other in index and other != column]
    nearest = nearest_finding(subject, others)
    stable = list(_check_stability(candidate, bench))
    repeatable = all(finding.severity != "wrong" for finding in stable)
    findings = [
        *checks.orientation(ranking.line(candidate.name), repeatable=repeatable),
        checks.missing_scores(subject),
        *checks.infinite_scores(subject),
        checks.ties(subject),
        length_findings(subject),
        loss_finding(subject),
        *([nearest] if nearest else []),
        *_knowledge(candidate),
        *stable,
        *_chance(scored, bench, column),
    ]
    return CandidateResult(
        candidate=candidate,
        findings=tuple(sorted(findings, key=lambda f: checks.SEVERITIES.index(f.severity))),
        seconds=scored.seconds,
        arms=tuple(
            (models.label, scored.subject(models, column, bench.settings).auc())
            for models in bench.cohorts
            if models.cohort.model == CONTAMINATED and models.cohort in scored.scores
        ),
        notes=tuple(dict.fromkeys(scored.notes)),
    )


def _knowledge(candidate: Candidate) -> Iterator[CheckFinding]:
    """Report knowledge of a detector that an auditor of a model lacks."""
    kinds = {type(need) for need in candidate.detector.needs}
    if Sides in kinds:
        yield CheckFinding(
            "labels",
            "note",
            "It is given the labels (`Sides`).",
            "Its AUC counts only if no row helps to score itself.",
            "Score out of fold, whole groups at a time, as `blind` does.",
        )
    if Shadows in kinds:
        yield CheckFinding(
            "shadow models",
            "note",
            "It reads shadow models.",
            "An auditor of another's model lacks these: read it as an upper bound.",
        )


def _check_stability(candidate: Candidate, bench: _Bench) -> Iterator[CheckFinding]:
    try:
        yield from stability_findings(candidate, bench.chosen.models[0], seed=bench.settings.seed)
    except InputError as error:
        yield CheckFinding(
            "few rows at a time",
            "wrong",
            f"It scores all rows together, and fails on a part of them: {error}",
            "It cannot score a single text.",
            "Handle a short list of rows, or state in its summary how many it needs.",
        )


def _chance(scored: _Scored, bench: _Bench, column: DetectorColumn) -> Iterator[CheckFinding]:
    others = models_without_members(bench.cohorts, bench.chosen)
    others = [models for models in others if models.cohort in scored.scores]
    if not others:
        yield CheckFinding(
            "chance",
            "note",
            "It was scored on neither a base model nor a twin.",
            "Whether it distinguishes the sides without membership is unknown.",
        )
    for models in others:
        other = scored.subject(models, column, bench.settings)
        cell = other.auc()
        if models.cohort.model == RETRAINED:
            yield checks.after_removal(other.auc("0"), cell, len(others))
        else:
            yield checks.chance(_NAMES[models.cohort.model], cell, len(others))
