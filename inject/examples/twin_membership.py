"""Members of an arm's twins: models that differ from it only in the examples that they saw.

- The clean twin saw no member.
- The retrained model saw the members minus a forget set (`inject.examples.forget_set`): a share of
  them, or those that rules select; whole groups always.
- Shadow models saw a random half of all candidates, members and non-members alike: whole groups,
  halved within each dataset, side and split. Shadow 2i+1 is the complement of shadow 2i, so
  each candidate is in exactly half of the models.

Within a dataset strata are walked one after the other, in keyed order, and take turns, so that each
is divided nearly evenly and none always goes against its neighbour. The draw depends on (seed,
dataset, group) and on which other groups the same dataset, side and split have: another dataset
changes no assignment. Only keys and numbers of rows are looked at, never texts. `pool` deals whole
groups, so a group has one side and split.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from inject import keyed
from inject.errors import InputError
from inject.examples.example import Example, members
from inject.examples.forget_set import ForgetSet, cells_of, select_members
from inject.examples.strata import Group
from inject.settings import Settings, plain


class Twins(Settings):
    """Further models for each arm, with its start, order of windows, settings and seed."""

    clean: bool = False
    """Train the clean twin: the same stream without any copy."""
    shadows: Annotated[int, Field(ge=0)] = 0
    """Even number of shadow models, each with a random half of all candidates inserted."""
    retrained: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Train a model without this share of the members, the forget set."""

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
        """Describe the models, for people."""
        parts = ["the clean twin"] if self.clean else []
        if self.retrained is not None:
            parts.append(f"a model retrained without {self.retrained:.0%} of the members")
        if self.shadows:
            parts.append(f"{self.shadows} shadow models")
        return ", ".join(parts)


class TwinMembership(Settings):
    """The settings that determine a twin's members."""

    kind: Literal["clean", "retrained", "shadow"]
    """See the module."""
    share: float | None = None
    """Share of the members in the forget set of the retrained model."""
    number: int | None = None
    """Index of the shadow model, from 0."""
    forget: ForgetSet | None = None
    """The forget set of the retrained model, if it is more than a share of the members."""

    @classmethod
    def retrained(cls, forget: ForgetSet) -> "TwinMembership":
        """Return the model without a forget set; one selected only by share keeps its old name."""
        if forget.given == ("share",):
            return cls(kind="retrained", share=forget.share)
        return cls(kind="retrained", forget=forget)

    def identity(self) -> dict[str, Any]:
        """Return the inputs that determine the sides, as JSON values; ids by value, not by file.

        Raises:
            InputError: as `inject.examples.forget_set.listed_ids`.
        """
        if self.forget is None:
            return plain(self, exclude={"forget"})
        return {**plain(self), "forget": self.forget.identity(key="unlearning.forget")}

    def label(self) -> str:
        """Return a short text such as `shadow-3` for folder names."""
        further = [f"{value:g}" for value in (self.share, self.number) if value is not None]
        return "-".join([self.kind, *further, *([self.forget.label()] if self.forget else [])])


def twin_members(
    examples: Sequence[Example],
    membership: TwinMembership,
    *,
    seed: int,
    copies: Mapping[str, int] | None = None,
) -> frozenset[str]:
    """Return the example_id of each spiked example.

    Args:
        examples: of all datasets, with their sides and splits.
        membership: which twin it is.
        seed: the arm's seed.
        copies: realised copies in the arm by example_id, for a forget set that goes by them.

    Raises:
        InputError: as `select_members`, if every member would be forgotten, and naming a dataset
            with fewer than two groups to divide.
    """
    if membership.kind == "clean":
        return frozenset()
    if membership.kind == "retrained":
        spiked = members(examples)
        forget, key = membership.forget, "unlearning.forget"
        if forget is None:
            # `twins.retrained` also gives only a share.
            forget, key = ForgetSet(share=membership.share), "twins.retrained"
        forgotten = select_members(spiked, forget, seed=seed, copies=copies, key=key)
        left = frozenset(example.example_id for example in spiked) - forgotten
        if not left:
            raise InputError(
                f"{key}: all {len(spiked)} members would be forgotten; the model that never saw "
                "them is the clean twin",
                where=key,
                hint="Select fewer, or set twins.clean to true to compare with the clean twin.",
            )
        return left
    pair, second = divmod(membership.number or 0, 2)
    ids: set[str] = set()
    cells = cells_of(examples, keyed.Stream.SHADOW, pair, seed, "twins.shadows")
    for strata in cells.values():
        ids |= _halves([group for stratum in strata for group in stratum.groups])[second]
    return frozenset(ids)


def with_twin_membership(examples: Sequence[Example], inside: frozenset[str]) -> list[Example]:
    """Return the same rows, with those on the member side whom a twin sees (`twin_members`)."""
    return [
        replace(example, side="member" if example.example_id in inside else "nonmember")
        for example in examples
    ]


def _halves(groups: Sequence[Group]) -> tuple[set[str], set[str]]:
    """Assign each group to the half with fewer rows; break ties by the group's coin toss."""
    halves: tuple[set[str], set[str]] = (set(), set())
    for group in groups:
        lead = len(halves[0]) - len(halves[1])
        # Groups are sorted by the high bits of their numbers, so the last bit is a coin still.
        half = halves[int(lead > 0) if lead else group.word & 1]
        half.update(row.example_id for row in group.rows)
    return halves
