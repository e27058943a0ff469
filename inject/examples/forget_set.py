"""The members to forget, and those of the others to retain: whole groups.

A selection has up to five rules, and contains the members that fulfil all that are given. Rows of
one group share text, so a selection that takes only some rows of a group is rejected. The rule
`share` is the only random one: among the members that fulfil the other rules, each group is drawn
with the share as its probability, in balance over strata, within each dataset and split; the rows
of each are the share up to less than one group, and at least one group goes and one stays; only
that can move a probability. The draw depends on (seed, draw, dataset, group) and on which other
groups are drawn from in the same dataset and split.

Cost: one pass over the members, and one keyed number a group.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from inject import keyed
from inject.errors import InputError, did_you_mean, first_names
from inject.examples.example import Example, members
from inject.examples.random_rounding import draw_units
from inject.examples.strata import Stratum, dataset_generator, keyed_strata
from inject.settings import Settings

_NAMED = 3
"""Rows that a message names."""
_Words = Annotated[tuple[str, ...], Field(min_length=1)]


class MemberSelection(Settings):
    """A selection of members: those that fulfil every given rule."""

    share: Annotated[float, Field(gt=0, lt=1)] | None = None
    """This share of the members that fulfil the other rules, drawn in whole groups."""
    datasets: _Words | None = None
    """Members of these datasets, by the names of their contaminants."""
    groups: _Words | None = None
    """Members of these groups, as `examples.parquet` names them."""
    copies: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] | None = None
    """Members whose copy count is one of these numbers."""
    ids: str | _Words | None = None
    """These members, by `example_id` or by the ids of their rows; or a file with one id a line."""

    @model_validator(mode="after")
    def _check_distinct(self) -> "MemberSelection":
        for name in ("datasets", "groups", "copies", "ids"):
            values = getattr(self, name)
            if isinstance(values, tuple) and len(set(values)) < len(values):
                duplicate = next(value for value in values if values.count(value) > 1)
                raise ValueError(f"{name}: {duplicate!r} is given twice")
        return self

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the rules that are given."""
        return tuple(name for name in type(self).model_fields if getattr(self, name) is not None)

    def identity(self, *, key: str) -> dict[str, Any]:
        """Return the inputs that determine the selection, as plain JSON values.

        The order of names has no effect, nor the place where ids are listed.

        Raises:
            InputError: as `listed_ids`.
        """
        rules = {name: getattr(self, name) for name in self.given}
        if self.ids is not None:
            rules["ids"] = tuple(listed_ids(self, key=key) or ())
        return {
            name: sorted(value) if isinstance(value, tuple) else value
            for name, value in rules.items()
        }

    def label(self) -> str:
        """Return a short text such as `0.5-tofu` for folder names."""
        parts: list[str] = [] if self.share is None else [f"{self.share:g}"]
        parts += ["-".join(names) for names in (self.datasets, self.groups) if names]
        if self.copies:
            parts.append("copies=" + "-".join(map(str, self.copies)))
        if self.ids is not None:
            parts.append("ids" if isinstance(self.ids, str) else f"{len(self.ids)}-ids")
        return "-".join(parts)[:60]


class ForgetSet(MemberSelection):
    """The members to forget: those that fulfil every given rule."""

    @model_validator(mode="after")
    def _some_rule(self) -> "ForgetSet":
        if not self.given:
            raise ValueError(
                f"give at least one of {', '.join(type(self).model_fields)}; without a rule "
                "all members would be forgotten"
            )
        return self


class RetainSet(MemberSelection):
    """The members outside the forget set to retain; without a rule, all."""


def listed_ids(selection: MemberSelection, *, key: str) -> dict[str, str] | None:
    """Return the ids that a selection lists, each with its place; None if it lists none.

    Args:
        selection: the rules; ids may be in a file.
        key: the key of the selection, such as `unlearning.forget`.

    Raises:
        InputError: a file that cannot be read, is empty, or names an id twice.
    """
    if selection.ids is None:
        return None
    if isinstance(selection.ids, tuple):
        return {name: f"{key}.ids.{number}" for number, name in enumerate(selection.ids)}
    path = Path(selection.ids)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(
            f"{key}.ids: the file cannot be read: {reason}",
            where=str(path),
            allowed="a list of ids, or the path of a text file with one id per line",
        ) from error
    listed: dict[str, str] = {}
    for number, name in enumerate(map(str.strip, lines), start=1):
        place = f"{path}:{number}"
        if name and listed.setdefault(name, place) != place:
            raise InputError(f"{name!r} already appears at {listed[name]}", where=place)
    if not listed:
        raise InputError(f"{key}.ids: the file lists no id", where=str(path))
    return listed


def forgotten_rows(pool: Sequence[Example], seen: Sequence[Example]) -> list[Example]:
    """Return the members of a pool whom the retrained model never sees, in the pool's order.

    Args:
        pool: the arm's examples.
        seen: the same rows, with the sides of the retrained model.
    """
    left = {example.example_id for example in members(seen)}
    return [example for example in members(pool) if example.example_id not in left]


def select_members(
    members: Sequence[Example],
    selection: MemberSelection,
    *,
    seed: int,
    copies: Mapping[str, int] | None = None,
    draw: int = 0,
    key: str = "unlearning.forget",
) -> frozenset[str]:
    """Return the example_id of each selected member.

    Args:
        members: whom it is made among: the members, or those outside of another selection.
        selection: the rules.
        seed: the arm's seed.
        copies: realised number of copies by example_id; needed by the rule `copies`.
        draw: which of several independent draws of a share: 0 for the forget set, 1 for the
            retain set, 2 for the half that is learned again.
        key: the key of the selection, for messages.

    Raises:
        InputError: a name or id that no member has, a group that would be split, no member or all
            members selected, or a share of fewer than two groups.
    """
    chosen = _by_names(members, selection, key)
    if selection.copies is not None:
        if copies is None:
            raise TypeError("the rule `copies` needs the copy counts")
        chosen = [
            member for member in chosen if copies.get(member.example_id, 0) in selection.copies
        ]
    place_by_id = listed_ids(selection, key=key)
    if place_by_id is not None:
        listed_members = _members_listed(members, place_by_id, key)
        chosen = [member for member in chosen if member.example_id in listed_members]
    if not chosen:
        raise InputError(
            f"{key}: none of the {len(members)} members is selected, as no member fulfils "
            f"{' and '.join(selection.given)}",
            where=key,
            hint="Relax one of the rules.",
        )
    selected = {member.example_id for member in chosen}
    _require_whole_groups(members, selected, key)
    if selection.share is not None:
        share = Fraction(str(selection.share))
        selected = set()
        for name, strata in cells_of(chosen, keyed.Stream.FORGET, draw, seed, key).items():
            random = dataset_generator(name, stream=keyed.Stream.FORGET, seed=seed, number=draw)
            selected |= _drawn_share(strata, share, random)
    return frozenset(selected)


def _by_names(members: Sequence[Example], selection: MemberSelection, key: str) -> list[Example]:
    """Return the members of the named datasets and groups."""
    chosen = list(members)
    for rule, names, attribute in (
        ("datasets", selection.datasets, "dataset"),
        ("groups", selection.groups, "group"),
    ):
        if names is None:
            continue
        values = {getattr(member, attribute) for member in members}
        for number, name in enumerate(names):
            if name not in values:
                among = ", ".join(sorted(values)) if len(values) <= 12 else ""
                raise InputError(
                    f"no member has the {attribute} {name!r}.{did_you_mean(name, values)}",
                    where=f"{key}.{rule}.{number}",
                    allowed=among or None,
                )
        chosen = [member for member in chosen if getattr(member, attribute) in names]
    return chosen


def _members_listed(members: Sequence[Example], listed: Mapping[str, str], key: str) -> set[str]:
    """Return the example_id of each listed member, found by that or by the id of its row."""
    by_name: dict[str, dict[str, Example]] = defaultdict(dict)
    for member in members:
        by_name[member.example_id][member.example_id] = member
        by_name[member.source_id][member.example_id] = member
    ids: set[str] = set()
    for name, place in listed.items():
        rows = by_name.get(name, {})
        if not rows:
            raise InputError(
                f"{key}.ids: {name!r} is not among the {len(members)} members."
                f"{did_you_mean(name, by_name)}",
                where=place,
                hint="Give the example_id or the row's own id of members, as examples.parquet "
                "has them; each seed draws its own members.",
            )
        if len(rows) > 1:
            datasets = ", ".join(sorted({row.dataset for row in rows.values()}))
            raise InputError(
                f"{key}.ids: {name!r} is the id of {len(rows)} members ({datasets})",
                where=place,
                hint="Give their example_id, which is unique.",
            )
        ids |= rows.keys()
    return ids


def _require_whole_groups(members: Sequence[Example], chosen: set[str], key: str) -> None:
    """Refuse a selection that has some rows of a group, and not others."""
    groups: dict[tuple[str, str], list[Example]] = defaultdict(list)
    for member in members:
        groups[member.dataset, member.group].append(member)
    for (dataset, group), rows in groups.items():
        outside = [row.source_id for row in rows if row.example_id not in chosen]
        if outside and len(outside) < len(rows):
            inside = [row.source_id for row in rows if row.example_id in chosen]
            raise InputError(
                f"{key}: the group {group!r} of {dataset} would be split: "
                f"{first_names(inside, _NAMED)} in the selection, {first_names(outside, _NAMED)} "
                "outside of it; rows of a group share a passage",
                where=key,
                hint="Select all of its rows or none; `groups` selects whole groups by name.",
            )


def cells_of(
    examples: Sequence[Example], stream: keyed.Stream, number: int, seed: int, key: str
) -> dict[str, list[Stratum]]:
    """Return the strata of each dataset, side and split, by its name; groups in keyed order.

    Args:
        examples: rows with their sides and splits.
        stream: the purpose of the order.
        number: which of several orders.
        seed: the arm's seed.
        key: the key that requests it, for messages.

    Raises:
        InputError: naming a dataset with fewer than two groups to divide.
    """
    rows: dict[tuple[str, str, str], list[Example]] = defaultdict(list)
    for example in examples:
        rows[example.dataset, example.side, example.split].append(example)
    cells = {}
    for (dataset, side, split), inside in rows.items():
        if len({example.group for example in inside}) < 2:
            raise InputError(
                f"{key}: {dataset} has a single group of {side}s in the split {split}, which "
                "cannot be divided",
                where=f"contaminants.{dataset}",
                hint=f"Give it more rows, change detect.tune_share, or leave {key} out.",
            )
        name = f"{dataset}\n{side}\n{split}"
        cells[name] = keyed_strata(inside, stream=stream, seed=seed, number=number)
    return cells


def _drawn_share(
    strata: Sequence[Stratum], share: Fraction, random: np.random.Generator
) -> set[str]:
    """Take each group with the share as its probability; at least one, and never all.

    Returns the example_id of every row taken.
    """
    groups = [group for stratum in strata for group in stratum.groups]
    masses = [share.numerator * len(group.rows) for group in groups]
    capacities = [share.denominator * len(group.rows) for group in groups]
    ends = list(accumulate(len(stratum.groups) for stratum in strata))
    places = [range(start, end) for start, end in pairwise([0, *ends])]
    flags = draw_units(masses, capacities, places, random)
    taken = [group for group, is_taken in zip(groups, flags, strict=True) if is_taken]
    by_word = sorted(groups, key=lambda group: group.word)
    if not taken:
        taken = by_word[:1]
    elif len(taken) == len(groups):
        taken = by_word[:-1]
    return {row.example_id for group in taken for row in group.rows}
