"""How detection fades: AUC by the optimiser steps since a model last saw an example.

Every pair of a member and a checkpoint that has seen it, placed among the non-members at the same
checkpoint and in the same dataset. Positions of copies are drawn at random, so among pairs with one
number of copies the time since the last is no choice of the text's. It goes with the learning rate,
though, wherever that is not constant: there the trend over examples has no interval, and the slope
within examples (`analysis.trajectory.slopes`) says what fades. Intervals draw whole groups, so the
pairs of one example stay together. Cost: 10 ms a checkpoint and setting; memory 8 bytes times
pairs times replicates of one setting.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.arm import Column, axis_column
from analysis.auc_cells import ArmRows
from analysis.copy_bins import ALL, CopiesCell, copies_cells, is_dose
from analysis.intervals.bootstrap import (
    Weights,
    combine_seeds,
    concordance,
    percentile_bounds,
    placement_values,
    widen_at_limits,
)
from analysis.intervals.bounds import Scale, find_interval
from analysis.metrics import Floats
from analysis.settings import AnalysisSettings
from analysis.tables import AUC, PreparedCohort
from analysis.trajectory.slopes import fading_slope

FADING_TREND = "fading_trend"
"""Somers' D of score with steps since the last copy (by their bins): among pairs of one dataset at
one checkpoint with the same number of copies."""
FADING_SLOPE = "fading_slope"
"""Change of placement for each doubling of one plus the steps since, within examples."""
NOT_CONSTANT = "none: the learning rate is not constant"
RATE_WARNING = (
    "The learning rate was not constant, so texts seen at different times were learnt differently: "
    "AUCs by the steps since the last copy do not show what fades, whichever way they run. The "
    "change within examples does."
)
EVERY = "all"

MEASURES = [("value", pa.float64()), ("low", pa.float64()), ("high", pa.float64())]
COUNTS = [(name, pa.int64()) for name in ("n_members", "n_nonmembers", "n_seeds")]


def not_constant(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether some rows of fading.parquet are of a learning rate that was not constant."""
    return any(row["interval"] == NOT_CONSTANT for row in rows)


class SinceBin(NamedTuple):
    """Steps since the last copy: 0, 1, 2 to 3, 4 to 7, 8 to 15 …"""

    low: int
    high: int

    @property
    def label(self) -> str:
        """The steps in words: `0`, `4-7`."""
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


@dataclass(frozen=True, kw_only=True)
class PreparedCheckpoint:
    """One checkpoint of one cohort, over its seeds, made ready."""

    step: int
    tokens: int
    batch_tokens: int
    work: PreparedCohort
    since: Sequence[npt.NDArray[np.int64]]
    """For each seed: steps since the last copy by example; -1 where none was seen."""
    weights: Sequence[Weights]
    """For each seed: the bootstrap's, of every row."""
    constant_rate: bool = True
    """Whether every step is made at the same learning rate."""

    @property
    def arms(self) -> Sequence[ArmRows]:
        """The rows of each seed."""
        return self.work.arms


def fading_schema(axes: Sequence[str]) -> pa.Schema:
    """Return the columns of fading.parquet."""
    texts = ("detector", "setting", "selection", "copies", "since")
    return pa.schema(
        [(axis_column(axis), pa.string()) for axis in axes]
        + [(name, pa.string()) for name in texts]
        + [("since_low", pa.int64()), ("since_high", pa.int64())]
        + [("tokens_since", pa.float64()), ("metric", pa.string())]
        + MEASURES
        + [("pairs", pa.int64())]
        + COUNTS
        + [("interval", pa.string())]
    )


def since_bins(max_steps: int) -> list[SinceBin]:
    """Return the bins up to that many steps.

    >>> [one.label for one in since_bins(9)]
    ['0', '1', '2-3', '4-7', '8-15']
    """
    found, low = [SinceBin(0, 0)], 1
    while low <= max_steps:
        found.append(SinceBin(low, 2 * low - 1))
        low *= 2
    return found


def fading_rows(
    head: Mapping[str, str],
    every: Sequence[PreparedCheckpoint],
    column: Column,
    selections: Sequence[str],
    settings: AnalysisSettings,
) -> list[dict[str, Any]]:
    """Return one detector setting's rows of fading.parquet.

    Args:
        head: the axes' columns.
        every: all checkpoints of the cohort.
        column: detector and setting.
        selections: what the setting stands for; each row is given once for each.
        settings: how intervals are made.
    """
    scored = [one for one in every if all(column in a.loaded.index for a in one.work.arms)]
    seeds = sorted({arm.loaded.arm.seed for one in scored for arm in one.work.arms})
    every_seed = [_pairs(scored, seed, column) for seed in seeds]
    pairs = [found for found in every_seed if found is not None]
    counts = [int(n) for found in pairs for n in found.copies]
    if not counts:
        return []
    cells = copies_cells(counts, high_copies=settings.high_copies)
    bins = since_bins(max(int(found.since.max(initial=0)) for found in pairs))
    common = {**head, "detector": column.detector, "setting": column.setting}
    rows = []
    for cell in cells:
        if cell.low == 0:
            continue
        for since in bins:
            inside = [
                cell.holds(found.copies) & (found.since >= since.low) & (found.since <= since.high)
                for found in pairs
            ]
            row = _fading_row(pairs, inside, settings)
            if row is not None:
                place = {
                    "since_low": since.low,
                    "since_high": since.high,
                    "since": since.label,
                }
                rows.append({**common, "copies": cell.label, **place, "metric": AUC, **row})
        if is_dose(cell.label) or cell.label == ALL:
            row = _trend_row(pairs, [cell.holds(found.copies) for found in pairs], settings)
            if row is not None and not all(one.constant_rate for one in scored):
                nothing = {"low": float("nan"), "high": float("nan")}
                row = {**row, **nothing, "interval": NOT_CONSTANT}
            for made in (row, _slope_row(scored, column, cell, settings)):
                if made is not None:
                    rows.append({**common, "copies": cell.label, "since": EVERY, **made})
    return [{**row, "selection": selection} for selection in selections for row in rows]


@dataclass(frozen=True, kw_only=True)
class _Pairs:
    """Members at checkpoints that have seen them; arrays [n_pairs]."""

    copies: npt.NDArray[np.int64]
    since: npt.NDArray[np.int64]
    tokens: Floats
    """Tokens since the last copy's step."""
    below: npt.NDArray[np.float32]
    """Weighted share of non-members below, [n_pairs, R + 1]."""
    weights: Weights
    """[n_pairs, R + 1]."""
    names: npt.NDArray[np.object_]
    """Whose pair it is."""
    blocks: npt.NDArray[np.int64]
    """Which checkpoint and dataset: scores are compared inside of one alone."""
    scores: Floats
    nonmembers: int
    """At one checkpoint."""


def _pairs(every: Sequence[PreparedCheckpoint], seed: int, column: Column) -> _Pairs | None:
    """Return all pairs of one seed, or None where there are none."""
    parts: list[tuple[int, _Pairs]] = []
    for one in every:
        for at, arm in enumerate(one.work.arms):
            if arm.loaded.arm.seed == seed:
                for rows in (compared.rows(column) for compared in arm.compared.values()):
                    part = _block(one, at, rows, column, block=len(parts))
                    parts += [] if part is None else [(one.step, part)]
    if not parts:
        return None
    outside: dict[int, int] = {}
    for step, part in parts:
        outside[step] = outside.get(step, 0) + part.nonmembers

    def joined(name: str) -> Any:
        return np.concatenate([getattr(part, name) for _, part in parts])

    arrays = ("copies", "since", "tokens", "below", "weights", "names", "blocks", "scores")
    return _Pairs(**{name: joined(name) for name in arrays}, nonmembers=max(outside.values()))


def _block(
    one: PreparedCheckpoint, at: int, rows: npt.NDArray[np.bool_], column: Column, *, block: int
) -> _Pairs | None:
    """Return the pairs of one dataset at one checkpoint, or None where there is no comparison.

    Args:
        one: the checkpoint.
        at: which of its seeds.
        rows: those of the dataset that the column is measured on.
        column: the detector's setting.
        block: number of this checkpoint and dataset.
    """
    arm, since, weights = one.arms[at], one.since[at], one.weights[at]
    outside = np.flatnonzero(rows & ~arm.loaded.member)
    inside = np.flatnonzero(rows & arm.loaded.member & (since >= 0))
    if len(outside) < 2 or not len(inside):
        return None
    scores = arm.loaded.scores[:, arm.loaded.index[column]]
    ids = [arm.loaded.examples[int(row)].example_id for row in inside]
    below = placement_values(scores[inside], scores[outside], weights[outside]).below
    return _Pairs(
        copies=arm.loaded.copies[inside],
        since=since[inside],
        tokens=(since[inside] * one.batch_tokens).astype(np.float64),
        below=below.astype(np.float32),
        weights=weights[inside],
        names=np.array(ids, dtype=object),
        blocks=np.full(len(inside), block),
        scores=scores[inside],
        nonmembers=len(outside),
    )


def _fading_row(
    pairs: Sequence[_Pairs], inside: Sequence[npt.NDArray[np.bool_]], settings: AnalysisSettings
) -> dict[str, Any] | None:
    held = [(found, rows) for found, rows in zip(pairs, inside, strict=True) if rows.any()]
    members = sum(len(set(found.names[rows])) for found, rows in held)
    if not held or members < settings.min_members:
        return None
    per_seed = []
    for found, rows in held:
        weights = found.weights[rows]
        with np.errstate(invalid="ignore", divide="ignore"):
            below = np.einsum("pr,pr->r", found.below[rows], weights, dtype=np.float64)
            per_seed.append(below / weights.sum(axis=0, dtype=np.float64))
    replicates = combine_seeds(np.stack(per_seed), seed=settings.seed)
    bounds = percentile_bounds(replicates[None], confidence=settings.confidence)
    smaller = min(members, sum(found.nonmembers for found, _ in held))
    low, high = widen_at_limits(
        replicates[:1], bounds, np.array([smaller]), confidence=settings.confidence
    )
    return {
        "value": float(replicates[0]),
        "low": float(low[0]),
        "high": float(high[0]),
        "tokens_since": float(np.concatenate([found.tokens[rows] for found, rows in held]).mean()),
        **_counted(held, members),
    }


def _trend_row(
    pairs: Sequence[_Pairs], inside: Sequence[npt.NDArray[np.bool_]], settings: AnalysisSettings
) -> dict[str, Any] | None:
    """Return the trend of scores with time, or None where no time can be compared."""
    held, per_seed = [], []
    for found, rows in zip(pairs, inside, strict=True):
        sums = np.zeros((2, found.weights.shape[1]))
        # 0, 1, 2 to 3, 4 to 7 … as 0, 1, 2, 3: the number of binary digits.
        levels = np.ceil(np.log2(found.since + 1)).astype(np.int64)
        keys = np.stack([found.blocks[rows], found.copies[rows]])
        for key in np.unique(keys, axis=1).T:
            same = np.flatnonzero(rows)[(keys == key[:, None]).all(axis=0)]
            sums += concordance(found.scores[same], levels[same], found.weights[same])
        if sums[1, 0] > 0:
            with np.errstate(invalid="ignore", divide="ignore"):
                per_seed.append(sums[0] / sums[1])
            held.append((found, rows))
    if not per_seed:
        return None
    replicates = combine_seeds(np.stack(per_seed), seed=settings.seed)
    low, high = percentile_bounds(replicates[None], confidence=settings.confidence)
    members = sum(len(set(found.names[rows])) for found, rows in held)
    if members < settings.min_members:
        return None
    return {
        "metric": FADING_TREND,
        "value": float(replicates[0]),
        "low": float(low[0]),
        "high": float(high[0]),
        **_counted(held, members),
    }


def _slope_row(
    scored: Sequence[PreparedCheckpoint],
    column: Column,
    cell: CopiesCell,
    settings: AnalysisSettings,
) -> dict[str, Any] | None:
    """Return the slope within examples; None where too few were seen by two models."""
    slope = fading_slope(scored, column, cell)
    if slope is None or slope.members < settings.min_members:
        return None
    interval = find_interval(slope.found, Scale.SLOPE, confidence=settings.confidence)
    return {
        "metric": FADING_SLOPE,
        "value": float(slope.found.value[0]),
        "low": float(interval.low[0]),
        "high": float(interval.high[0]),
        "interval": interval.about[0],
        "pairs": slope.pairs,
        "n_members": slope.members,
        "n_nonmembers": slope.nonmembers,
        "n_seeds": int(slope.found.seeds[0]),
    }


def _counted(held: Sequence[tuple[_Pairs, npt.NDArray[np.bool_]]], members: int) -> dict[str, int]:
    return {
        "pairs": sum(int(rows.sum()) for _, rows in held),
        "n_members": members,
        "n_nonmembers": sum(found.nonmembers for found, _ in held),
        "n_seeds": len(held),
    }
