"""Who is spiked in the twins of an arm: models that differ from it in whom they saw, only.

- The clean twin saw nobody.
- The retrained model saw the members less a forget set: whole groups, each with the wanted share
  as its probability, in balance over strata; the rows of each dataset and split are the share up to
  less than one group. At least one group goes and one stays, which alone can move a probability.
- Shadow models saw a random half of all candidates, members and non-members alike: whole groups,
  halved within each dataset, side and split. Shadow 2i+1 is the complement of shadow 2i, so
  each candidate is in exactly half of the models.

Within a dataset strata are walked one after the other, in keyed order, and take turns, so that each
is divided nearly evenly and none always goes against its neighbour. The draw depends on (seed,
dataset, group) and on which other groups the same dataset, side and split have: another dataset
changes nobody's part. Only keys and numbers of rows are looked at, never texts. `pool` deals whole
groups, so a group has one side and split.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, field_validator

from inject import keyed
from inject.errors import InputError
from inject.examples.example import Example
from inject.examples.random_rounding import draw_units
from inject.examples.strata import Group, Stratum, dataset_generator, keyed_strata
from inject.settings import Settings


class Twins(Settings):
    """Further models beside each arm, with its start, order of windows, settings and seed."""

    clean: bool = False
    """Train a model on the same stream without any copy: the clean twin."""
    shadows: Annotated[int, Field(ge=0)] = 0
    """Train this many models (an even number) with a random half of all candidates spiked, for
    the detector `lira`."""
    retrained: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Train a model without this share of the members, the forget set; null trains none."""

    @field_validator("shadows")
    @classmethod
    def _pairs(cls, shadows: int) -> int:
        if shadows % 2:
            raise ValueError(
                f"{shadows} is odd; each second shadow model sees whom the one before did not, "
                f"so give {shadows - 1} or {shadows + 1}"
            )
        return shadows

    def label(self) -> str:
        """Return what there is, for people."""
        parts = ["the clean twin"] if self.clean else []
        if self.retrained is not None:
            parts.append(f"a model retrained without {self.retrained:.0%} of the members")
        if self.shadows:
            parts.append(f"{self.shadows} shadow models")
        return ", ".join(parts)


class TwinMembership(Settings):
    """Which twin it is."""

    kind: Literal["clean", "retrained", "shadow"]
    """See the module."""
    share: float | None = None
    """Share of the members in the forget set of the retrained model."""
    number: int | None = None
    """Which of the shadow models, from 0."""

    def label(self) -> str:
        """Return a short text such as `shadow-3` for folder names."""
        further = [f"{value:g}" for value in (self.share, self.number) if value is not None]
        return "-".join([self.kind, *further])


class _Cell(NamedTuple):
    """What is divided: the groups of one dataset, side and split."""

    name: str
    strata: list[Stratum]

    @property
    def groups(self) -> list[Group]:
        """All groups, stratum by stratum."""
        return [group for stratum in self.strata for group in stratum.groups]


def twin_members(
    examples: Sequence[Example], membership: TwinMembership, *, seed: int
) -> frozenset[str]:
    """Return the example_id of everybody who is spiked.

    Args:
        examples: of all datasets, with their sides and splits.
        membership: which twin it is.
        seed: the arm's seed.

    Raises:
        InputError: naming the dataset where fewer than two groups are to be divided.
    """
    if membership.kind == "clean":
        return frozenset()
    if membership.kind == "retrained":
        members = [one for one in examples if one.side == "member"]
        share = Fraction(str(membership.share))
        left = {one.example_id for one in members}
        for cell in _cells(members, keyed.Stream.FORGET, 0, seed, "twins.retrained"):
            left -= _forgotten(cell, share, seed)
        return frozenset(left)
    pair, second = divmod(membership.number or 0, 2)
    found: set[str] = set()
    for cell in _cells(examples, keyed.Stream.SHADOW, pair, seed, "twins.shadows"):
        found |= _halves(cell.groups)[second]
    return frozenset(found)


def with_twin_membership(
    examples: Sequence[Example], membership: TwinMembership, *, seed: int
) -> list[Example]:
    """Return the same rows, with those on the member side whom this twin sees.

    Raises:
        InputError: as `twin_members`.
    """
    inside = twin_members(examples, membership, seed=seed)
    return [
        replace(one, side="member" if one.example_id in inside else "nonmember") for one in examples
    ]


def _cells(
    examples: Sequence[Example], stream: keyed.Stream, number: int, seed: int, asked: str
) -> list[_Cell]:
    """Return the groups of each dataset, side and split, in keyed order."""
    rows: dict[tuple[str, str, str], list[Example]] = defaultdict(list)
    for one in examples:
        rows[one.dataset, one.side, one.split].append(one)
    cells = []
    for (dataset, side, split), inside in rows.items():
        if len({one.group for one in inside}) < 2:
            raise InputError(
                f"{asked}: {dataset} has a single group of {side}s in the split {split}, which "
                "cannot be divided",
                where=f"contaminants.{dataset}",
                hint=f"Give it more rows, change detect.tune_share, or leave {asked} out.",
            )
        strata = keyed_strata(inside, stream=stream, seed=seed, number=number)
        cells.append(_Cell(f"{dataset}\n{side}\n{split}", strata))
    return cells


def _forgotten(cell: _Cell, share: Fraction, seed: int) -> set[str]:
    """Take each group with the share as its probability; at least one, and never all."""
    groups = cell.groups
    masses = [share.numerator * len(group.rows) for group in groups]
    capacities = [share.denominator * len(group.rows) for group in groups]
    ends = list(accumulate(len(stratum.groups) for stratum in cell.strata))
    places = [range(start, end) for start, end in pairwise([0, *ends])]
    random = dataset_generator(cell.name, stream=keyed.Stream.FORGET, seed=seed)
    inside = draw_units(masses, capacities, places, random)
    taken = [group for group, gone in zip(groups, inside, strict=True) if gone]
    by_word = sorted(groups, key=lambda group: group.word)
    if not taken:
        taken = by_word[:1]
    elif len(taken) == len(groups):
        taken = by_word[:-1]
    return {row.example_id for group in taken for row in group.rows}


def _halves(groups: Sequence[Group]) -> tuple[set[str], set[str]]:
    """Give each group to the half with fewer rows; where they are level, toss its coin."""
    halves: tuple[set[str], set[str]] = (set(), set())
    for group in groups:
        lead = len(halves[0]) - len(halves[1])
        # Groups are sorted by the high bits of their numbers, so the last bit is a coin still.
        half = halves[int(lead > 0) if lead else group.word & 1]
        half.update(row.example_id for row in group.rows)
    return halves
