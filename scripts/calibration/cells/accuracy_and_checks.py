"""Cells of accuracy gains over datasets, and of the page's checks against chance.

A question's difficulty is its group's (a beta distribution); one in five is answered again after
training, and exposure corrects wrong answers. Groups have unequal sizes.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from math import sqrt
from typing import NamedTuple

import numpy as np

from analysis.checks.chance import chance_width, dealing_error
from analysis.findings import Row
from analysis.intervals.rows import Rows
from analysis.settings import AnalysisSettings
from analysis.task_accuracy.contamination import Answers, Quantity, accuracy_rows
from scripts.calibration.cells.cell import Cell, Drawn
from scripts.calibration.cells.factors import LARGEST, Counts, Design, Floats, Mask, Pool


class GainDesign(NamedTuple):
    """A benchmark of several datasets, answered before and after training."""

    datasets: int
    rows: int
    """Of each, on each side, about."""
    seeds: int = 1
    deviation: float = 0.0
    """Deviation of the seed's effect on the members' accuracy."""
    grouped: bool = False
    gain: float = 0.15
    """What having seen a question adds to the chance to be right."""

    @property
    def name(self) -> str:
        """The cell's name."""
        groups = f"groups of 1 to {LARGEST}" if self.grouped else "rows alone"
        seeds = f"{self.seeds} seeds" if self.seeds > 1 else "1 seed"
        return (
            f"{self.datasets} data sets of {self.rows} rows a side, {groups}, {seeds}, "
            f"deviation {self.deviation:g}, gain {self.gain:g}"
        )


def one_gain(random: np.random.Generator, *, design: GainDesign, quantity: str) -> Drawn:
    """Return one quantity over all datasets."""
    by_seed, truths = _answers(design, random)
    dataset = "mean" if design.datasets > 1 else "d0"
    (row,) = [
        row
        for row in accuracy_rows("plain", by_seed, AnalysisSettings())
        if row["dataset"] == dataset
        and " ".join(row[name] for name in Quantity._fields if row[name]) == quantity
    ]
    return Drawn(row["low"], row["high"], truths[quantity])


_BEFORE = 0.45
_DRIFT = 0.05
"""What training on other text adds to the chance to be right, on either side."""


def _answers(
    design: GainDesign, random: np.random.Generator
) -> tuple[list[Answers], dict[str, float]]:
    """Return one study's answers by seed, and the truth of each quantity."""
    pools = []
    for _ in range(design.datasets):
        pool = Pool(random, Design(design.rows, grouped=design.grouped))
        # How hard a group's questions are: its chance to be right before.
        hardness = random.beta(1.5, 1.5 * (1 - _BEFORE) / _BEFORE, size=pool.count)
        pools.append((pool, hardness[pool.group]))
    seeds = []
    for _ in range(design.seeds):
        gain = design.gain + design.deviation * random.normal() * (design.seeds > 1)
        names, sides, groups, before, after = [], [], [], [], []
        for number, (pool, chance) in enumerate(pools):
            member, count = pool.deal(), len(pool.group)
            luck = random.random(count)
            # One in five questions is answered again after training, the others as before.
            again = np.where(random.random(count) < 0.2, random.random(count), luck)
            was = luck < chance
            now = again < chance
            up = np.where(member, gain, 0.0) + _DRIFT
            # As many wrong answers turn right as the requested mean gain needs.
            turned = random.random(count) < np.clip(up / (1 - _BEFORE), 0.0, 1.0)
            before.append(was)
            after.append(now | turned)
            names += [f"d{number}"] * count
            sides += ["member" if is_member else "nonmember" for is_member in member]
            groups += [f"{number} {is_member}" for is_member in pool.group]
        seeds.append(
            Answers(
                dataset=np.array(names, dtype=object),
                side=np.array(sides, dtype=object),
                group=np.array(groups, dtype=object),
                correct={
                    ("plain", "before"): np.concatenate(before).astype(float),
                    ("plain", "after"): np.concatenate(after).astype(float),
                },
            )
        )
    plain = _DRIFT
    seen = float(np.clip(design.gain, -_DRIFT, None)) + _DRIFT
    return seeds, {
        "accuracy member before": _BEFORE,
        "accuracy nonmember before": _BEFORE,
        "accuracy member after": _BEFORE + seen,
        "accuracy nonmember after": _BEFORE + plain,
        "gap before": 0.0,
        "gap after": seen - plain,
        "change member": seen,
        "change nonmember": plain,
        "excess": seen - plain,
    }


class CheckDesign(NamedTuple):
    """An AUC without any bias."""

    groups: int
    """On each side."""
    sizes: tuple[int, ...] = (1,)
    """Rows of the groups, in turn."""

    @property
    def name(self) -> str:
        """The cell's name."""
        sizes = ", ".join(map(str, self.sizes))
        return f"{self.groups} groups a side of {sizes} rows"


def one_check(random: np.random.Generator, *, design: CheckDesign) -> Drawn:
    """Return the chance bounds around 0.5 for an unbiased detector's AUC, and that AUC."""
    scores, member, number = unbiased(random, design)
    checked = check_cell(scores, member, number)
    width = chance_width(checked, 1)
    return Drawn(0.5 - width, 0.5 + width, checked["value"])


def unbiased(random: np.random.Generator, design: CheckDesign) -> tuple[Floats, Mask, Counts]:
    """Return scores that are independent of the sides, the members, and the groups.

    The rows of one group share nine tenths of their skewed noise.
    """
    sizes = np.array(design.sizes)[np.arange(2 * design.groups) // 2 % len(design.sizes)]
    number = np.repeat(np.arange(2 * design.groups), sizes)
    shared = random.gamma(2.0, size=2 * design.groups)[number]
    scores = sqrt(0.9) * shared + sqrt(0.1) * random.gamma(2.0, size=len(number))
    return scores, number % 2 == 0, number


def check_cell(scores: Floats, member: Mask, number: Counts) -> Row:
    """Return one detector's AUC as the page's checks read it."""
    above = np.searchsorted(np.sort(scores[~member]), scores[member])
    value = float(above.mean() / (~member).sum())
    return {
        "value": value,
        "n_members": int(member.sum()),
        "n_nonmembers": int((~member).sum()),
        "chance_error": dealing_error(Rows.of(number, member=member), scores),
    }


def gain_designs() -> Iterator[Cell]:
    """Yield cells of accuracies over datasets."""
    for design in (
        GainDesign(1, 30),
        GainDesign(1, 100, grouped=True),
        GainDesign(5, 15),
        GainDesign(5, 15, gain=0.0),
        GainDesign(5, 40, grouped=True),
        GainDesign(5, 30, 3, 0.0),
        GainDesign(5, 30, 3, 0.1),
        GainDesign(5, 30, 5, 0.05, grouped=True),
    ):
        several = ("excess", "change member", "accuracy member after")
        for quantity in several if design.seeds == 1 and design.gain else several[:1]:
            study = partial(one_gain, design=design, quantity=quantity)
            yield Cell("accuracy", f"{design.name}; {quantity}", study)


def check_cells() -> Iterator[Cell]:
    """Yield cells of what chance does to an AUC, groups dealt at random."""
    for design in (
        CheckDesign(9),
        CheckDesign(30),
        CheckDesign(20, (1, 1, 2, 20)),
        CheckDesign(40, (1, 2, 4, 30)),
        CheckDesign(60, (1, 2, 3, 4, 5, 6)),
    ):
        yield Cell("checks at chance", design.name, partial(one_check, design=design))


CELLS = tuple(chain(gain_designs(), check_cells()))
