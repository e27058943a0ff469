"""The palimpsest test: is a text more likely, the later training last saw it?

Kuditipudi et al. 2025 (2510.19796), the query test with a reference model, equation 2: Spearman's
correlation, over training texts, of the position in training with the mean log-probability under
the target minus that under a reference. Here a position is the optimiser step of the last exposure
to any part of a copy; the reference is the clean twin, else the base model, else none. A text with
more copies is more likely and its last copy later, so only members with equally many whole copies,
of one dataset under one seed, are ranked together. Strata are averaged with weights n - 1, the
inverse of the variance of each under permutation.

The p-value is exact if the order of training was random (their algorithm 1): steps are permuted
within strata m times, and b correlations that are as high give (1 + b) / (1 + m), one-sided. The
interval is the jackknife's over whole groups (Tukey 1958), on Fisher's scale with Student's t.
Nothing is chosen, so members of both splits count. Cost with m = 1000: 20 ms for 200
members, 0.9 s for 4,000.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from analysis.adjusted import find_base
from analysis.arm import Arm, Cohort, LoadedArm
from analysis.auc_cells import cohort_rows
from analysis.intervals.clustered import Part
from analysis.intervals.ends import IntervalMethod
from analysis.intervals.estimate import no_estimate
from analysis.intervals.influence import Counts, Floats, Sample
from analysis.intervals.numbers import Numbers
from analysis.metrics import POOLED
from analysis.settings import AnalysisSettings
from detect.scores.table import read_scores
from inject.keyed import Stream, generator, item_key
from inject.stream.exposures import NEVER, read_exposures

QUESTION = "palimpsest"
LOSS = "loss"
NO_LOSS = f"the detector {LOSS} was not scored"
NO_REFERENCE = "none"
_RANK_CORRELATION = "rank_correlation"
_ROUNDING = 1e-12


class OrderedMembers(NamedTuple):
    """Members of one dataset under one model, [n] each."""

    step: Floats
    """Optimiser step of the last exposure."""
    gain: Floats
    """Mean log-probability under the target minus that under the reference."""
    copies: Counts
    group: Counts

    def strata(self) -> list["OrderedMembers"]:
        """Return the members of each copy count with different steps and different gains."""
        by_count = (self.among(self.copies == count) for count in np.unique(self.copies))
        return [
            stratum for stratum in by_count if np.ptp(stratum.step) > 0 and np.ptp(stratum.gain) > 0
        ]

    def among(self, which: Any) -> "OrderedMembers":
        """Return some of the members."""
        return OrderedMembers(*(column[which] for column in self))


def correlation_and_weight(members: OrderedMembers) -> tuple[float, float]:
    """Return the mean rank correlation of the strata, and the sum of their weights n - 1.

    NaN and 0 if there is no stratum.
    """
    product, weight = sum(map(_weighted, members.strata()), np.zeros(2))
    return (float(product / weight) if weight else np.nan), float(weight)


def permuted_correlations(
    members: OrderedMembers, count: int, random: np.random.Generator
) -> Floats:
    """Return the mean rank correlations after so many permutations of steps within strata."""
    total = np.zeros(count)
    for stratum in members.strata():
        steps, gains = _standard_ranks(stratum.step), _standard_ranks(stratum.gain)
        permuted = random.permuted(np.tile(steps, (count, 1)), axis=1)
        total += (len(gains) - 1) * (permuted @ gains)
    return total / correlation_and_weight(members)[1]


def correlation_sample(members: OrderedMembers, n_groups: int) -> Sample:
    """Return the mean rank correlation with the influence of whole groups by the jackknife.

    Args:
        members: of one dataset under one model.
        n_groups: numbers of groups lie below.
    """
    strata = members.strata()
    value, weight = correlation_and_weight(members)
    totals = np.tile([value * weight, weight], (n_groups, 1))
    for stratum in strata:
        for group in np.unique(stratum.group):
            remaining = stratum.among(stratum.group != group)
            totals[group] += _weighted(remaining) - _weighted(stratum)
    left = np.full(n_groups, value)
    np.divide(totals[:, 0], totals[:, 1], out=left, where=totals[:, 1] > 0)
    present = np.unique(np.concatenate([stratum.group for stratum in strata]))
    count = len(present)
    influence = np.zeros((2, 1, n_groups))
    off = left[present].mean() - left[present]
    influence[0, 0, present] = np.sqrt((count - 1) / count) * off
    freedom = np.array([[max(count - 1.0, 1.0)], [1.0]])
    return Sample(np.array([value]), influence, freedom, np.full((2, 1), count))


def _weighted(members: OrderedMembers) -> Floats:
    """Return one stratum's correlation times its weight, and the weight."""
    steps, gains = _standard_ranks(members.step), _standard_ranks(members.gain)
    weight = len(gains) - 1 if steps.any() and gains.any() else 0
    return np.array([weight * float(steps @ gains), weight])


def _standard_ranks(values: Floats) -> Floats:
    """Return mid-ranks about their mean with squares that sum to 1; zeros if all are tied."""
    _, place, ties = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[place] - (len(values) + 1) / 2
    length = np.sqrt(np.square(ranks).sum())
    return np.asarray(ranks / length if length else ranks, np.float64)


def palimpsest_rows(
    cohort: Cohort, loaded: Sequence[LoadedArm], arms: Sequence[Arm], settings: AnalysisSettings
) -> list[dict[str, Any]]:
    """Return the rows of the question `palimpsest`: each dataset, and all together.

    Args:
        cohort: any; only one that saw members and recorded when has rows.
        loaded: its arms, one per seed.
        arms: all arms, among them the models that serve as reference.
        settings: confidence, permutations (`replicates`) and the seed of these.
    """
    if cohort.model != "contaminated" or any(arm.arm.training is None for arm in loaded):
        return []
    head: dict[str, Any] = {**cohort.columns(), "detector": LOSS, "metric": _RANK_CORRELATION}
    if any(LOSS not in arm.detectors for arm in loaded):
        return [{**head, "dataset": POOLED, **no_estimate(NO_LOSS).row()}]
    name, references = _references(loaded, arms)
    seeds, n_groups = _ordered(loaded, references)
    head |= {"setting": loaded[0].default(LOSS).setting, "versus": name}
    head["permutations"] = settings.replicates
    return [{**head, **row} for row in correlation_rows(seeds, n_groups, settings)]


class Correlated(NamedTuple):
    """What the members of one dataset under one model say."""

    part: Part
    correlations: Floats
    """As observed, then of each permutation."""
    strata: int


def correlation_rows(
    seeds: Mapping[int, Mapping[str, OrderedMembers]],
    n_groups: Mapping[str, int],
    settings: AnalysisSettings,
) -> list[dict[str, Any]]:
    """Return the correlation of each dataset and of all together, mean over seeds.

    Args:
        seeds: the members of each seed, by dataset.
        n_groups: of each dataset, over all seeds.
        settings: as for `palimpsest_rows`.
    """
    correlated = [
        {
            dataset: _correlated(members, n_groups[dataset], f"{seed}\0{dataset}", settings)
            for dataset, members in datasets.items()
            if correlation_and_weight(members)[1]
        }
        for seed, datasets in seeds.items()
    ]
    parts = [{name: each.part for name, each in seed.items()} for seed in correlated]
    numbers = Numbers(parts, IntervalMethod.TREND)
    return [
        _row(name, numbers, correlated, settings)
        for name in [POOLED, *(n_groups if len(n_groups) > 1 else ())]
    ]


def _correlated(
    members: OrderedMembers, n_groups: int, name: str, settings: AnalysisSettings
) -> Correlated:
    strata = members.strata()
    value, weight = correlation_and_weight(members)
    count = np.array([sum(len(stratum.step) for stratum in strata)])
    part = Part(correlation_sample(members, n_groups), np.array([weight]), count)
    random = generator(settings.seed, Stream.BOOTSTRAP, item_key(f"{QUESTION}\0{name}"))
    permuted = permuted_correlations(members, settings.replicates, random)
    return Correlated(part, np.array([value, *permuted]), len(strata))


def _row(
    name: str,
    numbers: Numbers,
    correlated: Sequence[Mapping[str, Correlated]],
    settings: AnalysisSettings,
) -> dict[str, Any]:
    """Return the row of a dataset, or of all together."""
    dataset = None if name == POOLED else name
    seeds = [[part for key, part in seed.items() if dataset in (None, key)] for seed in correlated]
    measured = [parts for parts in seeds if parts]
    if not measured:
        return {"dataset": name, **no_estimate("steps or gains do not differ").row()}
    (estimate,) = numbers.estimates(dataset, confidence=settings.confidence)
    strata = sum(part.strata for parts in measured for part in parts)
    row = {"dataset": name, "p_value": _p_value(measured), "strata": strata}
    return {**row, **estimate.row()}


def _p_value(measured: Sequence[Sequence[Correlated]]) -> float:
    """Return the share of permutations whose mean over datasets and seeds is as high."""
    means = [
        np.average(
            [dataset.correlations for dataset in seed],
            axis=0,
            weights=[float(dataset.part.weight[0]) for dataset in seed],
        )
        for seed in measured
    ]
    value, *permuted = np.mean(means, axis=0)
    as_high = int((np.array(permuted) >= value - _ROUNDING).sum())
    return (1 + as_high) / (1 + len(permuted))


def _references(
    loaded: Sequence[LoadedArm], arms: Sequence[Arm]
) -> tuple[str, list[Mapping[str, float]]]:
    """Return the kind of the reference model, and each seed's log-probabilities under it."""
    for kind in ("twin", "base"):
        references = [find_base(arms, arm.arm, model=kind) for arm in loaded]
        folders = [reference.scores for reference in references if reference is not None]
        scores = [_mean_log_probabilities(folder) for folder in folders]
        if len(scores) == len(loaded) and all(scores):
            return kind, scores
    ids = [[example.example_id for example in arm.examples] for arm in loaded]
    return NO_REFERENCE, [dict.fromkeys(names, 0.0) for names in ids]


def _mean_log_probabilities(folder: Path) -> Mapping[str, float]:
    table = read_scores(folder, columns=["example_id", "detector", "score"])
    rows = table.filter(pc.equal(table["detector"], LOSS))
    return dict(zip(rows["example_id"].to_pylist(), rows["score"].to_pylist(), strict=True))


def last_steps(training: Path) -> dict[str, int]:
    """Return the optimiser step at which a model was last trained on any part of each example."""
    exposures = read_exposures(training, columns=["example_id", "status", "step"])
    seen = exposures.filter(pc.field("status") != NEVER)
    last = seen.group_by("example_id").aggregate([("step", "max")])
    return dict(zip(last["example_id"].to_pylist(), last["step_max"].to_pylist(), strict=True))


def _ordered(
    loaded: Sequence[LoadedArm], references: Sequence[Mapping[str, float]]
) -> tuple[dict[int, dict[str, OrderedMembers]], dict[str, int]]:
    """Return the members of each seed with a whole copy, by dataset, and groups of all seeds."""
    rows = cohort_rows(loaded)
    steps, gains = np.concatenate(
        [_steps_and_gains(*each) for each in zip(loaded, references, strict=True)], axis=1
    )
    copies = np.concatenate([arm.copies for arm in loaded])
    examples = OrderedMembers(steps, gains, copies, rows.group)
    used = rows.member & (copies > 0) & np.isfinite(steps) & np.isfinite(gains)
    seeds = {
        arm.arm.seed: {dataset: examples.among(at[used[at]]) for dataset, at in places.items()}
        for arm, places in zip(loaded, rows.places, strict=True)
    }
    return seeds, rows.n_groups


def _steps_and_gains(arm: LoadedArm, reference: Mapping[str, float]) -> Floats:
    """Return step and gain of every row, NaN if there is none, [2, n]."""
    assert arm.arm.training is not None
    names = [example.example_id for example in arm.examples]
    last = last_steps(arm.arm.training)
    others = np.array([reference.get(name, np.nan) for name in names], np.float64)
    steps = np.array([last.get(name, np.nan) for name in names], np.float64)
    return np.stack([steps, arm.scores[:, arm.index[arm.default(LOSS)]] - others])
