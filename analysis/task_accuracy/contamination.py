"""What contamination adds to a benchmark's score: accuracy of members and non-members.

For each dataset, and for their mean as papers report it: accuracy before and after training, its
change on the same examples (paired), the gap between members and non-members, and the excess, the
change of members beyond that of non-members. Training on other text changes both sides alike, so
the excess is what having seen the very questions is worth (Shi et al. 2024 compare the
sides in Table 8).

Every interval is a bootstrap over groups of examples, clustered over seeds, by the same weights
for all quantities (`analysis.intervals`). Where not one replicate differs, the interval is that of
an event which was seen in none of n groups; a mean over datasets is widened by what those of them
in which none differs could hide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.arm import axis_column
from analysis.intervals.bootstrap import combine_seeds, draw_weights, percentile_bounds
from analysis.metrics import Floats
from analysis.settings import AnalysisSettings
from detect.task_accuracy.answers import ACCURACY_FILE, read_accuracy
from inject.errors import InputError
from inject.examples.example import read_examples
from inject.tables import read_parquet

MEAN = "mean"
SCORINGS = ("plain", "calibrated")
_SIDES = ("member", "nonmember")

Strings = npt.NDArray[np.object_]


@dataclass(frozen=True, kw_only=True)
class AccuracyArm:
    """One model's answers, beside those of the model that it was trained from."""

    axes: Mapping[str, str]
    """Value of each swept axis by dotted key."""
    seed: int
    """The experiment's seed of this arm."""
    before: Path | None
    """Folder of the base model's answers; None where there is none."""
    after: Path
    """Folder of the trained model's answers."""
    examples: Path
    """Folder of the examples."""
    copies: Mapping[str, int]
    """Realised copies by example_id; absent means 0."""


class Quantity(NamedTuple):
    """What a row of the table tells."""

    name: str
    """`accuracy`, `change` (after - before), `gap` (members - non-members), `excess` (change of
    members - change of non-members)."""
    side: str
    """`member` or `nonmember`; empty for what compares them."""
    moment: str
    """`before` or `after`; empty for what compares them."""


class AccuracyCell(NamedTuple):
    """One quantity of one dataset, with its interval."""

    axes: tuple[tuple[str, str], ...]
    dataset: str
    """Or `mean`: of the datasets' values, each counted once."""
    scoring: str
    quantity: Quantity
    value: float
    low: float
    high: float
    n_members: int
    """Summed over seeds, as `n_nonmembers`."""
    n_nonmembers: int
    n_seeds: int


@dataclass(frozen=True, kw_only=True)
class _Loaded:
    """One arm's answers; arrays run over the examples that were asked."""

    dataset: Strings
    side: Strings
    group: Strings
    correct: Mapping[tuple[str, str], Floats]
    """By scoring and moment: 1 where the answer was right, else 0."""
    weights: Floats
    """[n, R + 1]."""


class _Summary(NamedTuple):
    """Replicates of every quantity of one dataset of one arm, and how many stand behind them."""

    replicates: Mapping[Quantity, Floats]
    members: int
    nonmembers: int
    groups: Mapping[str, int]
    """Number of groups by side."""
    parts: tuple["_Summary", ...] = ()
    """Of a mean: the datasets."""


def accuracy_cells(
    arms: Sequence[AccuracyArm], settings: AnalysisSettings
) -> tuple[AccuracyCell, ...]:
    """Return every quantity of every dataset, arms that differ in their seed alone combined.

    Members that drew no copy count as the settings say (`zero_copies`).

    Raises:
        InputError: when two arms agree in axes and seed.
    """
    cohorts: dict[tuple[tuple[str, str], ...], dict[int, AccuracyArm]] = {}
    for arm in arms:
        seeds = cohorts.setdefault(tuple(arm.axes.items()), {})
        if arm.seed in seeds:
            raise InputError(f"two arms have the axes {dict(arm.axes)} and the seed {arm.seed}")
        seeds[arm.seed] = arm
    cells: list[AccuracyCell] = []
    for axes, seeds in cohorts.items():
        loaded = [_load(seeds[seed], settings) for seed in sorted(seeds)]
        for scoring in SCORINGS:
            cells += _cohort(axes, scoring, loaded, settings)
    return tuple(cells)


def accuracy_table(cells: Sequence[AccuracyCell]) -> pa.Table:
    """Return the cells as a table: a column an axis, then those of `AccuracyCell`."""
    axes = list(dict.fromkeys(name for cell in cells for name, _ in cell.axes))
    rows = [
        {
            **{axis_column(name): dict(cell.axes).get(name, "") for name in axes},
            "dataset": cell.dataset,
            "scoring": cell.scoring,
            "quantity": cell.quantity.name,
            "side": cell.quantity.side,
            "moment": cell.quantity.moment,
            "value": cell.value,
            "low": cell.low,
            "high": cell.high,
            "n_members": cell.n_members,
            "n_nonmembers": cell.n_nonmembers,
            "n_seeds": cell.n_seeds,
        }
        for cell in cells
    ]
    texts = [*map(axis_column, axes), "dataset", "scoring", "quantity", "side", "moment"]
    fields = [(name, pa.string()) for name in texts]
    fields += [(name, pa.float64()) for name in ("value", "low", "high")]
    fields += [(name, pa.int64()) for name in ("n_members", "n_nonmembers", "n_seeds")]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def write_accuracy_table(folder: Path, table: pa.Table) -> None:
    """Write what `accuracy_table` returned into a folder."""
    pq.write_table(table, folder / ACCURACY_FILE)


def read_accuracy_table(folder: Path) -> pa.Table:
    """Read what `write_accuracy_table` wrote."""
    return read_parquet(folder / ACCURACY_FILE)


def _load(arm: AccuracyArm, settings: AnalysisSettings) -> _Loaded:
    groups = {row.example_id: row.group for row in read_examples(arm.examples)}
    after = read_accuracy(arm.after)
    before = read_accuracy(arm.before) if arm.before else []
    earlier = {row.example_id: row for row in before}
    asked = []
    for row in after:
        spiked = row.side == "nonmember" or arm.copies.get(row.example_id, 0) > 0
        if row.reason is not None or (not spiked and settings.zero_copies == "apart"):
            continue
        asked.append(row if spiked else row._replace(side="nonmember"))
    dataset = np.array([row.dataset for row in asked], dtype=object)
    side = np.array([row.side for row in asked], dtype=object)
    group = np.array([groups[row.example_id] for row in asked], dtype=object)
    correct = {}
    for scoring in SCORINGS:
        name = f"correct_{scoring}"
        correct[scoring, "after"] = np.array([getattr(row, name) for row in asked], dtype=float)
        if before:
            found = [getattr(earlier[row.example_id], name) for row in asked]
            correct[scoring, "before"] = np.array(found, dtype=float)
    weights = draw_weights(
        [f"{one}\0{other}" for one, other in zip(dataset, side, strict=True)],
        list(group),
        replicates=settings.replicates,
        seed=settings.seed,
        cluster=str(arm.seed),
    )
    return _Loaded(
        dataset=dataset,
        side=side,
        group=group,
        correct=correct,
        weights=weights.astype(np.float64),
    )


def _cohort(
    axes: tuple[tuple[str, str], ...],
    scoring: str,
    loaded: Sequence[_Loaded],
    settings: AnalysisSettings,
) -> list[AccuracyCell]:
    names = list(dict.fromkeys(name for one in loaded for name in one.dataset))
    by_seed = [{name: _summary(one, name, scoring) for name in names} for one in loaded]
    if len(names) > 1:
        for summaries in by_seed:
            summaries[MEAN] = _mean(list(summaries.values()))
    cells = []
    for dataset in by_seed[0]:
        found = [summaries[dataset] for summaries in by_seed]
        for quantity in found[0].replicates:
            if not all(quantity in one.replicates for one in found):
                continue
            stacked = np.stack([one.replicates[quantity] for one in found])
            replicates = combine_seeds(stacked, seed=settings.seed)
            low, high = _bounds(quantity, replicates, found, settings.confidence)
            cells.append(
                AccuracyCell(
                    axes=axes,
                    dataset=dataset,
                    scoring=scoring,
                    quantity=quantity,
                    value=float(replicates[0]),
                    low=low,
                    high=high,
                    n_members=sum(one.members for one in found),
                    n_nonmembers=sum(one.nonmembers for one in found),
                    n_seeds=len(found),
                )
            )
    return cells


def _summary(one: _Loaded, dataset: str, scoring: str) -> _Summary:
    inside = one.dataset == dataset
    rows = {side: inside & (one.side == side) for side in _SIDES}
    found: dict[Quantity, Floats] = {}
    moments = [moment for moment in ("before", "after") if (scoring, moment) in one.correct]
    for side in _SIDES:
        weights = one.weights[rows[side]]
        with np.errstate(invalid="ignore", divide="ignore"):
            for moment in moments:
                right = one.correct[scoring, moment][rows[side]] @ weights
                found[Quantity("accuracy", side, moment)] = right / weights.sum(axis=0)
    for moment in moments:
        member, nonmember = (found[Quantity("accuracy", side, moment)] for side in _SIDES)
        found[Quantity("gap", "", moment)] = member - nonmember
    if len(moments) == 2:
        for side in _SIDES:
            was, now = (found[Quantity("accuracy", side, moment)] for moment in moments)
            found[Quantity("change", side, "")] = now - was
        member, nonmember = (found[Quantity("change", side, "")] for side in _SIDES)
        found[Quantity("excess", "", "")] = member - nonmember
    return _Summary(
        replicates=found,
        members=int(rows["member"].sum()),
        nonmembers=int(rows["nonmember"].sum()),
        groups={side: len(set(one.group[rows[side]])) for side in _SIDES},
    )


def _mean(summaries: Sequence[_Summary]) -> _Summary:
    return _Summary(
        replicates={
            quantity: np.mean([one.replicates[quantity] for one in summaries], axis=0)
            for quantity in summaries[0].replicates
        },
        members=sum(one.members for one in summaries),
        nonmembers=sum(one.nonmembers for one in summaries),
        groups={side: sum(one.groups[side] for one in summaries) for side in _SIDES},
        parts=tuple(summaries),
    )


def _bounds(
    quantity: Quantity, replicates: Floats, found: Sequence[_Summary], confidence: float
) -> tuple[float, float]:
    bounds = percentile_bounds(replicates[None], confidence=confidence)
    low, high = float(bounds.low[0]), float(bounds.high[0])
    margin = _hidden(quantity, found, confidence) if not found[0].parts else 0.0
    if found[0].parts:
        parts = list(zip(*(one.parts for one in found), strict=True))
        # The worst is all of it in one dataset: the others then have none of it.
        margin = max(_hidden(quantity, part, confidence) for part in parts) / len(parts)
    if not margin:
        return low, high
    value, least = float(replicates[0]), 0.0 if quantity.name == "accuracy" else -1.0
    return (
        max(value - float(np.hypot(value - low, margin)), least),
        min(value + float(np.hypot(high - value, margin)), 1.0),
    )


def _hidden(quantity: Quantity, found: Sequence[_Summary], confidence: float) -> float:
    """Return how far off a dataset can be in which no replicate differs; 0 where one does.

    Something that happens with this probability is missed in n groups just often enough.
    """
    if any(np.ptp(one.replicates[quantity]) > 0 for one in found):
        return 0.0
    sides = [quantity.side] if quantity.side else list(_SIDES)
    return sum(
        1 - ((1 - confidence) / 2) ** (1 / max(sum(one.groups[side] for one in found), 1))
        for side in sides
    )
