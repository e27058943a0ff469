"""The standings of a benchmark: each submission is checked, measured and ranked.

The number of a submission is the mean of its AUCs over models, each with its datasets weighted by
members. The models of one seed share groups of rows, so influence values are averaged by group
before they are squared; seeds share none. Differences of two submissions are paired. A rank has an
interval: from one more than the submissions that are better to all but those that are worse, by
paired differences at a confidence that holds for all pairs together (Bonferroni). Submissions with
a common best rank are tied.

A submission is rejected when its scores cannot be those of a detector: rows that the benchmark
does not have, scores that are infinite, missing on one side or (as it declares) different when
computed again, or an AUC on a clean twin that differs from 0.5 more than the draw of sides
explains: the twin saw no member, so such scores depend on the labels. An honest detector fails each
of the two tests with a probability of 0.001. A missing score counts as the median of its model.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import arm_label
from analysis.checks.chance import CHANCE, dealing_error
from analysis.compared_rows import missing_scores
from analysis.findings import Findings, group_by, question_table
from analysis.intervals.clustered import Part, pool_datasets
from analysis.intervals.ends import IntervalMethod
from analysis.intervals.influence import Floats, Sample
from analysis.intervals.numbers import Numbers, join_numbers
from analysis.intervals.rows import Rows, auc_numbers
from analysis.leaderboard.submission import Submission, read_scores, scored_models
from detect.ground_truth.ground_truth import CONTAMINATED, TWIN, GroundTruth, ScoredModel
from inject.errors import InputError

PUBLIC, HELD_OUT = "public", "held-out"
ALL = "all"
"""The part that all models are in."""
_ERROR = 0.001
_UNREPEATABLE = frozenset({"repetition", "order", "batch", "few rows at a time"})
_Groups = defaultdict[tuple[int, str], dict[str, int]]
"""Numbers of the groups of each seed and dataset."""


class LabelledModel(NamedTuple):
    """A model of the benchmark with the labels of its rows."""

    number: int
    group: str
    """`public` or `held-out`."""
    model: ScoredModel
    rows: Rows
    """In the order of the scored rows; groups have one number under all models of a seed."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the standings that it is in: all, each value of an axis, its arm."""
        axes = tuple(self.model.axes.items())
        labels = [ALL, *(arm_label([axis]) for axis in axes), arm_label(axes)]
        return tuple(dict.fromkeys(filter(None, labels)))


def labelled_models(truth: GroundTruth, labels: GroundTruth | None) -> list[LabelledModel]:
    """Return the models that can be measured.

    Args:
        truth: the benchmark.
        labels: the organiser's bundle of the held-out models; None measures only public ones.

    Raises:
        InputError: labels of another benchmark, or a model whose rows support no AUC.
    """
    models, groups = scored_models(truth), _Groups(dict)
    public = [
        _with_labels(number, PUBLIC, model, model, groups)
        for number, model in models.items()
        if number < len(truth.models)
    ]
    if labels is None:
        return public
    own = [model for model in labels.models if model.model == CONTAMINATED]
    if [_contents(model) for model in own] != [_contents(model) for model in truth.unlabelled]:
        raise InputError(
            "has other models or rows than those that the benchmark holds out",
            where="--labels",
            hint="Give the folder that spikein bundle --labels-out wrote with this benchmark.",
        )
    return public + [
        _with_labels(len(truth.models) + at, HELD_OUT, model, own[at], groups)
        for at, model in enumerate(truth.unlabelled)
    ]


def _contents(model: ScoredModel) -> tuple[dict[str, str], set[str]]:
    return dict(model.axes), {row.example_id for row in model.rows}


def _with_labels(
    number: int, group: str, scored: ScoredModel, labelled: ScoredModel, groups: _Groups
) -> LabelledModel:
    by_id = {row.example_id: row for row in labelled.rows}
    rows = [by_id[row.example_id] for row in scored.rows]
    used = np.array([group == HELD_OUT or row.split == "test" for row in rows], dtype=bool)
    inside = np.array([row.side == "member" for row in rows], dtype=bool)
    copies = labelled.copies
    seen = [copies is None or copies.get(row.example_id, 0) > 0 for row in rows]
    names = [(groups[labelled.seed, row.dataset], row.group) for row in rows]
    group_ids = [numbers.setdefault(name, len(numbers)) for numbers, name in names]
    table = Rows(
        seed=np.full(len(rows), labelled.seed),
        dataset=np.array([row.dataset for row in rows], dtype=object),
        group=np.array(group_ids, dtype=np.int64),
        member=used & inside & np.array(seen, dtype=bool),
        nonmember=used & ~inside,
    )
    if not any(auc_numbers(table, np.zeros(len(rows))).seeds):
        model = arm_label(labelled.axes.items(), labelled.seed)
        raise InputError(f"{model}: no dataset has members and two groups of non-members")
    return LabelledModel(number, group, labelled, table)


def mean_auc(models: Sequence[LabelledModel], scores: Mapping[int, Floats]) -> Numbers:
    """Return the mean AUC of one submission over models."""
    means = []
    for seed, of_seed in group_by(models, lambda model: model.model.seed).items():
        aucs = [auc_numbers(model.rows, scores[model.number]) for model in of_seed]
        means.append(_mean_over_models(join_numbers(aucs).seeds[0], f"seed {seed}"))
    return Numbers(means, IntervalMethod.AUC)


def _mean_over_models(parts: Mapping[str, Part], seed: str) -> dict[str, Part]:
    """Return the mean of the models of a seed, by dataset; each has its share of every model."""
    _, shares = pool_datasets([*parts.values()])
    return {
        f"{name}, {seed}": Part(_mean(part.sample, share), share.sum(keepdims=True))
        for (name, part), share in zip(parts.items(), shares, strict=True)
    }


def _mean(sample: Sample, weights: Floats) -> Sample:
    """Return the mean of numbers of the same groups; the fewest of their groups count."""
    used: Any = sample.part(np.flatnonzero(weights))
    own = weights[weights > 0]
    columns = (
        np.average(column, axis=min(1, column.ndim - 1), weights=own, keepdims=True)
        for column in used
    )
    return Sample(*columns)._replace(groups=used.groups.min(axis=1, keepdims=True))


def rank_intervals(numbers: Sequence[Numbers], *, confidence: float) -> list[tuple[int, int]]:
    """Return the best and the worst rank of each submission, for all of them together."""
    pairs = list(combinations(range(len(numbers)), 2))
    each = 1 - (1 - confidence) / max(len(pairs), 1)
    better, worse = (np.zeros(len(numbers), dtype=int) for _ in range(2))
    for first, second in pairs:
        (gap,) = (numbers[first] - numbers[second]).estimates(confidence=each)
        if gap.low > 0 or gap.high < 0:
            above, below = (first, second) if gap.low > 0 else (second, first)
            better[below] += 1
            worse[above] += 1
    return [(1 + int(b), len(numbers) - int(w)) for b, w in zip(better, worse, strict=True)]


def standings(
    submissions: Mapping[Path, Submission | InputError],
    truth: GroundTruth,
    labels: GroundTruth | None,
    *,
    confidence: float,
) -> Findings:
    """Return the question `leaderboard`: `rank`, `auc` and `rejected` rows, the best first.

    Args:
        submissions: by folder; an error is a reason to reject one.
        truth: the benchmark.
        labels: the organiser's bundle; None ranks by the public models.
        confidence: of the intervals.
    """
    models = labelled_models(truth, labels)
    ids = {n: [row.example_id for row in m.rows] for n, m in scored_models(truth).items()}
    accepted: list[tuple[Submission, dict[int, Floats]]] = []
    rejected = []
    for folder, submission in submissions.items():
        head = {"detector": str(folder)}
        try:
            if isinstance(submission, InputError):
                raise submission
            head = _head(submission)
            accepted.append((submission, _checked_scores(folder, submission, ids, models)))
        except InputError as error:
            reason = error.problem + (f" (allowed: {error.allowed})" if error.allowed else "")
            rejected.append({**head, "kind": "rejected", "reason": reason})
    arms = [model for model in models if model.model.model == CONTAMINATED]
    ranked = arms[-1].group
    numbers = [mean_auc([m for m in arms if m.group == ranked], own) for _, own in accepted]
    ranks = rank_intervals(numbers, confidence=confidence)
    values = [of_all.estimates(confidence=confidence)[0].value for of_all in numbers]
    order = sorted(range(len(accepted)), key=lambda at: (ranks[at][0], -values[at]))
    rows = [
        {**row, "best_rank": ranks[at][0], "worst_rank": ranks[at][1]}
        for at in order
        for row in _aucs(*accepted[at], arms, ranked, confidence)
    ]
    return Findings(question_table("leaderboard", [], [*rows, *rejected]).to_pylist())


def _head(submission: Submission) -> dict[str, Any]:
    return {**submission.model_dump(), "wrong": ", ".join(submission.wrong)}


def _aucs(
    submission: Submission,
    scores: Mapping[int, Floats],
    arms: Sequence[LabelledModel],
    ranked: str,
    confidence: float,
) -> Iterator[dict[str, Any]]:
    places = {(model.group, part) for model in arms for part in model.parts}
    for group, part in sorted(places, key=lambda at: (at[0] != ranked, at[1].count(","), at[1])):
        models = [model for model in arms if model.group == group and part in model.parts]
        (auc,) = mean_auc(models, scores).estimates(confidence=confidence)
        kind = "rank" if (group, part) == (ranked, ALL) else "auc"
        place = {"kind": kind, "models": group, "part": part, "n_models": len(models)}
        fewest = {
            "n_members": min(int(model.rows.member.sum()) for model in models),
            "n_nonmembers": min(int(model.rows.nonmember.sum()) for model in models),
        }
        yield {**_head(submission), **place, **auc.measures(), **auc.counts(), **fewest}


def _checked_scores(
    folder: Path,
    submission: Submission,
    ids: Mapping[int, Sequence[str]],
    models: Sequence[LabelledModel],
) -> dict[int, Floats]:
    """Return scores without gaps; raise an InputError for those that no detector gives."""
    if again := _UNREPEATABLE & set(submission.wrong):
        raise InputError(f"its scores change when they are computed again: {', '.join(again)}")
    scores = read_scores(folder, submission, ids)
    for values in scores.values():
        if np.isinf(values).any() or np.isnan(values).all():
            raise InputError("a score is infinite, or a model has no score")
    twins = [model for model in models if model.model.model == TWIN]
    for model in models:
        _check_missing(model, scores[model.number], _ERROR / len(models))
    for number, values in scores.items():
        scores[number] = np.where(np.isnan(values), np.nanmedian(values), values)
    for model in twins:
        _check_chance(model, scores[model.number], _ERROR / len(twins))
    return scores


def _check_missing(model: LabelledModel, scores: Floats, error: float) -> None:
    either = model.rows.member | model.rows.nonmember
    missing = missing_scores("", "", scores[either], model.rows.member[either])
    if missing is not None and missing.p_value < error:
        raise InputError(
            f"{missing.members_missing} of {missing.members} members and "
            f"{missing.nonmembers_missing} of {missing.nonmembers} non-members have no score: "
            "a missing score reveals the side"
        )


def _check_chance(model: LabelledModel, scores: Floats, error: float) -> None:
    from scipy.stats import norm

    (auc,) = mean_auc([model], {model.number: scores}).estimates(confidence=0.95)
    width = float(norm.isf(error / 2)) * dealing_error(model.rows, scores)
    if abs(auc.value - CHANCE) > width:
        raise InputError(
            f"AUC {auc.value:.2f} on a clean twin ({model.parts[-1]}), which saw no member: its "
            f"scores depend on the labels; chance explains {CHANCE} ± {width:.2f}"
        )
