"""The effect of contamination on a benchmark's score: accuracy of members and non-members.

For each dataset, and for their mean as papers report it: accuracy before and after training, its
change on the same examples (paired), the gap between members and non-members, and the excess, the
change of members beyond that of non-members. Training on other text changes both sides alike, so
the excess is what having seen the very questions is worth (Shi et al. 2024 compare the
sides in Table 8).

Every quantity is a linear function of shares, so its interval is that of Price and Bonett (2004):
to each of the k samples behind it (a dataset's members or non-members) pseudo-rows are added before
a Wald interval is made, 2 / k right and 2 / k wrong ones; to the paired answers before and after
half as many that turn right and that turn wrong (Bonett and Price 2012). So none is a point if
no answer differs. With k = 1 it is Agresti and Coull's (1998). Variances sum over groups of rows,
and a pseudo-row has the weight of the design effect, the number of dependent rows worth one
independent row. Student's t has the degrees of freedom of Welch; from three seeds on, both are as
in `analysis.intervals.joint`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from analysis.arm import Names, axis_column, axis_names, gather_seeds
from analysis.findings import Row, question_table
from analysis.intervals.clustered import FROM_SEEDS
from analysis.intervals.influence import Counts, Floats, pack_groups
from analysis.intervals.joint import join_seeds
from analysis.settings import AnalysisSettings
from detect.task_accuracy.answers import read_accuracy
from inject.examples.example import read_examples

MEAN = "mean"
"""Of the datasets' values, each counted once."""
SCORINGS = ("plain", "calibrated")
_SIDES = ("member", "nonmember")


@dataclass(frozen=True, kw_only=True)
class AccuracyArm:
    """One model's answers, and those of the model that it was trained from."""

    axes: Mapping[str, str]
    """Value of each swept axis by dotted key."""
    seed: int
    """The experiment's seed of this arm."""
    before: Path | None
    """Folder of the base model's answers; None if there is none."""
    after: Path
    """Folder of the trained model's answers."""
    examples: Path
    """Folder of the examples."""
    copies: Mapping[str, int]
    """Realised copies by example_id; absent means 0."""


class Quantity(NamedTuple):
    """The quantity in a row of the table, by its columns."""

    quantity: str
    """`accuracy`, `change` (after - before), `gap` (members - non-members), `excess` (change of
    members - change of non-members)."""
    side: str
    """`member` or `nonmember`; empty for what compares them."""
    phase: str
    """`before` or `after`; empty for what compares them."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """One model's answers; arrays run over the examples whose questions were put to it."""

    dataset: Names
    side: Names
    """`member` or `nonmember`."""
    group: Names
    correct: Mapping[tuple[str, str], Floats]
    """By scoring and moment: 1 if the answer was correct, else 0."""


def quantities(moments: Sequence[str]) -> dict[Quantity, dict[tuple[str, str], int]]:
    """Return of each quantity with what sign the accuracy of a side at a moment enters it.

    Args:
        moments: `before` and `after`, or only `after`.
    """
    terms = {
        Quantity("accuracy", side, moment): {(side, moment): 1}
        for side in _SIDES
        for moment in moments
    }
    for moment in moments:
        terms[Quantity("gap", "", moment)] = {("member", moment): 1, ("nonmember", moment): -1}
    if len(moments) == 2:
        for side in _SIDES:
            terms[Quantity("change", side, "")] = {(side, "after"): 1, (side, "before"): -1}
        terms[Quantity("excess", "", "")] = {
            (side, moment): sign if side == "member" else -sign
            for side in _SIDES
            for moment, sign in (("after", 1), ("before", -1))
        }
    return terms


def accuracy_table(arms: Sequence[AccuracyArm], settings: AnalysisSettings) -> pa.Table:
    """Return every quantity of every dataset, arms that differ only in their seed combined.

    Members that drew no copy count as set by `zero_copies`.

    Raises:
        InputError: when two arms agree in axes and seed.
    """
    rows: list[Row] = []
    for (axes, _), seed_arms in gather_seeds(arms).items():
        place = {axis_column(name): value for name, value in axes}
        loaded = [_load(arm, settings) for arm in seed_arms]
        for scoring in SCORINGS:
            rows += [{**place, **row} for row in accuracy_rows(scoring, loaded, settings)]
    return question_table("accuracy", axis_names(arms), rows)


def _load(arm: AccuracyArm, settings: AnalysisSettings) -> Answers:
    groups = {row.example_id: row.group for row in read_examples(arm.examples)}
    after = read_accuracy(arm.after)
    before = read_accuracy(arm.before) if arm.before else []
    earlier = {row.example_id: row for row in before}
    counted = []
    for row in after:
        spiked = row.side == "nonmember" or arm.copies.get(row.example_id, 0) > 0
        if row.reason is not None or (not spiked and settings.zero_copies == "apart"):
            continue
        counted.append(row if spiked else row._replace(side="nonmember"))
    dataset = np.array([row.dataset for row in counted], dtype=object)
    side = np.array([row.side for row in counted], dtype=object)
    group = np.array([groups[row.example_id] for row in counted], dtype=object)
    correct = {}
    for scoring in SCORINGS:
        name = f"correct_{scoring}"
        correct[scoring, "after"] = np.array([getattr(row, name) for row in counted], dtype=float)
        if before:
            earlier_correct = [getattr(earlier[row.example_id], name) for row in counted]
            correct[scoring, "before"] = np.array(earlier_correct, dtype=float)
    return Answers(dataset=dataset, side=side, group=group, correct=correct)


def accuracy_rows(
    scoring: str, answers: Sequence[Answers], settings: AnalysisSettings
) -> Iterator[Row]:
    """Yield every quantity of one arm, of each dataset and of their mean.

    Args:
        scoring: `plain` or `calibrated`.
        answers: of each seed.
        settings: the confidence.
    """
    names = list(dict.fromkeys(name for seed in answers for name in seed.dataset))
    moments = [
        moment
        for moment in ("before", "after")
        if all((scoring, moment) in seed.correct for seed in answers)
    ]
    datasets, sides, names_of_groups = (
        np.concatenate([getattr(seed, name) for seed in answers])
        for name in ("dataset", "side", "group")
    )
    pairs = zip(datasets, names_of_groups, strict=True)
    numbers = pack_groups([f"{name}\0{group}" for name, group in pairs])
    groups = np.split(numbers[0], np.cumsum([len(seed.dataset) for seed in answers])[:-1])
    for dataset in [*names, *([MEAN] if len(names) > 1 else [])]:
        within = names if dataset == MEAN else [dataset]
        inside = np.isin(datasets, within)
        members, nonmembers = (int((inside & (sides == side)).sum()) for side in _SIDES)
        for quantity, signs in quantities(moments).items():
            sums = [
                _seed_quantity(seed, scoring, signs, within, (number, numbers[1]))
                for seed, number in zip(answers, groups, strict=True)
            ]
            value, low, high = _interval(sums, settings.confidence)
            yield {
                "dataset": dataset,
                "scoring": scoring,
                **quantity._asdict(),
                "value": value,
                "low": max(low, 0.0 if quantity.quantity == "accuracy" else -1.0),
                "high": min(high, 1.0),
                "n_members": members,
                "n_nonmembers": nonmembers,
                "n_seeds": len(answers),
            }


class _Sum(NamedTuple):
    """A quantity of one seed."""

    value: float
    centre: float
    """With the pseudo-rows."""
    influence: Floats
    """By group, and then by pseudo-row, [groups + 2 k]."""
    variances: Floats
    """Of each sample, [k]."""
    freedom: Floats
    """[k]"""


def _seed_quantity(
    answers: Answers,
    scoring: str,
    signs: Mapping[tuple[str, str], int],
    datasets: Sequence[str],
    groups: tuple[Counts, int],
) -> _Sum:
    """Return a quantity of one seed: the mean over datasets of a sum over its samples.

    Args:
        answers: of the seed.
        scoring: `plain` or `calibrated`.
        signs: of the quantity.
        datasets: which.
        groups: the number of each answer's group over all seeds and datasets, and their count.
    """
    samples = [
        (dataset, side) for dataset in datasets for side in dict.fromkeys(s for s, _ in signs)
    ]
    paired = len({moment for _, moment in signs}) == 2
    added = (1 if paired else 2) / len(samples)
    value = centre = 0.0
    n_groups = groups[1]
    influence = np.zeros(n_groups + 2 * len(samples))
    variances, freedom = np.zeros(len(samples)), np.ones(len(samples))
    for k, (dataset, side) in enumerate(samples):
        at = np.flatnonzero((answers.dataset == dataset) & (answers.side == side))
        correct = {moment: answers.correct[scoring, moment][at] for _, moment in signs}
        rows, number = len(at), groups[0][at]
        if not rows:
            return _Sum(float("nan"), float("nan"), influence, variances, freedom)
        moments = {moment: sign for (of, moment), sign in signs.items() if of == side}
        terms: Floats = np.sum([sign * correct[moment] for moment, sign in moments.items()], axis=0)
        ends = np.array([-1.0, 1.0] if paired else [0.0, float(next(iter(moments.values())))])
        count = int(np.count_nonzero(np.bincount(number)))
        weight = _design_effect(terms, number, count)
        total = rows + 2 * added * weight
        mean = (terms.sum() + added * weight * ends.sum()) / total
        by_group = np.bincount(number, weights=terms - mean, minlength=n_groups)
        by_group *= np.sqrt(count / max(count - 1, 1))
        pseudo = np.sqrt(added) * weight * (ends - mean)
        influence[:n_groups] += by_group / total / len(datasets)
        place = n_groups + 2 * k
        influence[place : place + 2] = pseudo / total / len(datasets)
        variances[k] = (np.square(by_group).sum() + np.square(pseudo).sum()) / total**2
        freedom[k] = max(count - 1, 1)
        value += float(terms.mean()) / len(datasets)
        centre += float(mean) / len(datasets)
    return _Sum(value, centre, influence, variances, freedom)


def _design_effect(terms: Floats, groups: Counts, count: int) -> float:
    """Return the dependent rows per independent row; a mean group's size if none differ.

    Args:
        terms: of the rows of one sample.
        groups: of the rows, numbered.
        count: how many groups there are.
    """
    off = terms - terms.mean()
    squares = float(off @ off)
    if not squares:
        return len(terms) / count
    sums = np.bincount(groups, weights=off)
    return min(max(float(sums @ sums) / squares, 1.0), len(terms) / count)


def _interval(seeds: Sequence[_Sum], confidence: float) -> tuple[float, float, float]:
    """Return a quantity over all seeds with the ends of its interval."""
    from scipy.special import stdtrit

    centres = np.array([[seed.centre] for seed in seeds])
    joint = join_seeds(centres, np.stack([seed.influence for seed in seeds])[:, None])
    variances = np.mean([seed.variances for seed in seeds], axis=0)
    each = np.mean([seed.freedom for seed in seeds], axis=0)
    welch = variances.sum() ** 2 / (variances**2 / each).sum()
    freedom = joint.freedom[0] if len(seeds) >= FROM_SEEDS else welch
    limit = stdtrit(freedom, (1 + confidence) / 2)
    value, half = float(np.mean([seed.value for seed in seeds])), float(limit * joint.error[0])
    centre = float(joint.value[0])
    return value, min(centre - half, value), max(centre + half, value)
