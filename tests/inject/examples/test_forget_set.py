"""Forget and retain sets against brute force: the rules that hold, whole groups, equal chances."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from inject.errors import InputError
from inject.examples.example import Example
from inject.examples.forget_set import (
    ForgetSet,
    MemberSelection,
    RetainSet,
    listed_ids,
    select_members,
)
from inject.examples.twin_membership import TwinMembership, twin_members, with_twin_membership
from tests.inject.examples.drawing import plain_row


def row(dataset: str, group: str, number: int, **more: str) -> Example:
    name = f"{dataset}-{group}-{number}"
    return plain_row(f"e-{name}", group, dataset=dataset, source_id=f"s-{name}", **more)


@st.composite
def members(draw):
    """Two datasets of two to seven groups of one to three rows, in small strata and both splits."""
    rows = []
    for dataset in ("toy", "news"):
        for split in ("tune", "test"):
            groups = draw(
                st.lists(
                    st.tuples(st.sampled_from(["", "law", "art"]), st.integers(1, 3)),
                    min_size=2,
                    max_size=7,
                )
            )
            for number, (stratum, size) in enumerate(groups):
                rows += [
                    row(dataset, f"{split}{number}", one, stratum=stratum, split=split)
                    for one in range(size)
                ]
    return draw(st.permutations(rows))


def copies_of(rows: list[Example]) -> dict[str, int]:
    """One number a group, of 0 to 2."""
    return {one.example_id: sum(map(ord, one.dataset + one.group)) % 3 for one in rows}


def by_hand(rows, selection, copies) -> set[str]:
    """Every rule but the share, row by row."""
    return {
        one.example_id
        for one in rows
        if (selection.datasets is None or one.dataset in selection.datasets)
        and (selection.groups is None or one.group in selection.groups)
        and (selection.copies is None or copies[one.example_id] in selection.copies)
        and (
            selection.ids is None
            or one.example_id in selection.ids
            or one.source_id in selection.ids
        )
    }


@st.composite
def selections(draw, rows: list[Example]):
    asked = {}
    if draw(st.booleans()):
        asked["datasets"] = draw(st.sampled_from([("toy",), ("news",), ("news", "toy")]))
    if draw(st.booleans()):
        names = sorted({one.group for one in rows})
        asked["groups"] = tuple(draw(st.sets(st.sampled_from(names), min_size=1)))
    if draw(st.booleans()):
        asked["copies"] = tuple(draw(st.sets(st.integers(0, 2), min_size=1)))
    if draw(st.booleans()):
        groups = sorted({(one.dataset, one.group) for one in rows})
        chosen = draw(st.sets(st.sampled_from(groups), min_size=1))
        inside = [one for one in rows if (one.dataset, one.group) in chosen]
        asked["ids"] = tuple(
            one.source_id if draw(st.booleans()) else one.example_id for one in inside
        )
    if not asked or draw(st.booleans()):
        asked["share"] = draw(st.integers(1, 99)) / 100
    return ForgetSet(**asked)


@given(data=st.data(), rows=members(), seed=st.integers(0, 2**40))
@settings(max_examples=50, deadline=None)
def test_a_selection_is_what_its_rules_say_one_by_one(data, rows, seed):
    selection, copies = data.draw(selections(rows)), copies_of(rows)
    expected = by_hand(rows, selection, copies)
    cells = defaultdict(list)
    for one in rows:
        if one.example_id in expected:
            cells[one.dataset, one.split].append(one)
    lonely = any(len({one.group for one in cell}) < 2 for cell in cells.values())
    if not expected or (selection.share is not None and lonely):
        with pytest.raises(InputError, match=r"none of the .* is selected|single group"):
            select_members(rows, selection, seed=seed, copies=copies)
        return
    found = select_members(rows, selection, seed=seed, copies=copies)
    assert select_members(rows[::-1], selection, seed=seed, copies=copies) == found
    for group in {(one.dataset, one.group) for one in rows}:
        ids = {one.example_id for one in rows if (one.dataset, one.group) == group}
        assert ids <= found or not ids & found
    if selection.share is None:
        assert found == expected
        return
    assert found < expected
    for cell in cells.values():
        count = sum(one.example_id in found for one in cell)
        largest = max(Counter(one.group for one in cell).values())
        assert 0 < count < len(cell)
        assert abs(count - selection.share * len(cell)) <= largest


def test_every_group_is_as_likely_whatever_its_size_and_stratum():
    """Among the rows that other rules leave, in strata of one row to three."""
    share = 0.2
    rows = [
        row("toy", f"{number}", one, stratum=f"{number // (1 + number % 3)}")
        for number in range(16)
        for one in range(1 + number % 3)
    ] + [row("news", f"{number}", 0) for number in range(4)]
    runs, counts = 500, Counter()
    for seed in range(runs):
        counts.update(select_members(rows, ForgetSet(datasets=("toy",), share=share), seed=seed))
    error = np.sqrt(share * (1 - share) / runs)
    toys = [one.example_id for one in rows if one.dataset == "toy"]
    assert all(abs(counts[name] / runs - share) < 4.5 * error for name in toys)
    assert counts.keys() <= set(toys)


def test_further_draws_have_nothing_to_do_with_the_first():
    """The retained half of those not forgotten, and the half learned again, are even coins."""
    rows = [row("toy", f"{number}", 0) for number in range(12)]
    runs, joint = 500, Counter()
    for seed in range(runs):
        first = select_members(rows, ForgetSet(share=0.5), seed=seed)
        rest = [one for one in rows if one.example_id not in first]
        second = select_members(rest, RetainSet(share=0.5), seed=seed, draw=1)
        joint.update(second)
        joint.update((name, "first") for name in first)
    for one in rows:
        # A quarter of all: half of the half that was left.
        assert abs(joint[one.example_id] / runs - 0.25) < 4.5 * np.sqrt(0.25 * 0.75 / runs)


def test_a_share_alone_is_what_twins_retrained_says():
    rows = [row("toy", f"{number}", one) for number in range(9) for one in range(1 + number % 2)]
    for seed in range(3):
        old = TwinMembership(kind="retrained", share=0.4)
        new = TwinMembership.retrained(ForgetSet(share=0.4))
        assert new == old
        assert old.identity() == {"kind": "retrained", "share": 0.4, "number": None}
        left = twin_members(rows, old, seed=seed)
        gone = select_members(rows, ForgetSet(share=0.4), seed=seed)
        assert left == {one.example_id for one in rows} - gone


def test_the_retrained_model_sees_the_members_outside_of_the_forget_set():
    rows = [row("toy", f"{number}", 0) for number in range(4)]
    rows[3] = row("news", "3", 0)
    membership = TwinMembership.retrained(ForgetSet(datasets=("toy",), copies=(1,)))
    copies = {one.example_id: number for number, one in enumerate(rows)}
    seen = with_twin_membership(rows, membership, seed=0, copies=copies)
    assert [one.side for one in seen] == ["member", "nonmember", "member", "member"]
    assert membership.label() == "retrained-toy-copies=1"


def test_a_group_is_never_split():
    rows = [row("toy", "a", 0), row("toy", "a", 1), row("toy", "b", 0)]
    with pytest.raises(InputError) as caught:
        select_members(rows, ForgetSet(ids=("s-toy-a-1",)), seed=0)
    assert "the group 'a' of toy would be split: s-toy-a-1" in caught.value.problem
    assert "s-toy-a-0 outside" in caught.value.problem
    assert "`groups` selects whole groups" in caught.value.hint


def test_an_unknown_id_is_named_with_its_file_and_row(tmp_path):
    rows = [row("toy", "a", 0), row("toy", "b", 0)]
    file = tmp_path / "forget.txt"
    file.write_text("s-toy-a-0\n\n  s-toy-B-0  \n")
    with pytest.raises(InputError) as caught:
        select_members(rows, ForgetSet(ids=str(file)), seed=0)
    assert caught.value.where == f"{file}:3"
    assert "'s-toy-B-0' is not among the 2 members. Did you mean 's-toy-b-0'" in str(caught.value)
    with pytest.raises(InputError) as caught:
        select_members(rows, ForgetSet(ids=("s-toy-a-0", "e-x")), seed=0)
    assert caught.value.where == "unlearning.forget.ids.1"
    # Where ids are listed decides nothing, nor in which order.
    file.write_text("b\na\n")
    listed = ForgetSet(ids=("a", "b")).identity(key="x")
    assert ForgetSet(ids=str(file)).identity(key="x") == listed == {"ids": ["a", "b"]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file"),
        (b"a\nb\na\n", "'a' already appears at "),
    ],
)
def test_a_bad_list_of_ids_is_refused(tmp_path, text, said):
    file = tmp_path / "ids.txt"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(InputError, match=said):
        listed_ids(ForgetSet(ids=str(file)), key="unlearning.forget")


def test_nobody_and_everybody_are_refused():
    rows = [row("toy", "a", 0), row("toy", "b", 0)]
    with pytest.raises(InputError, match=r"unlearning\.forget: all 2 members"):
        twin_members(rows, TwinMembership.retrained(ForgetSet(datasets=("toy",))), seed=0)
    with pytest.raises(ValidationError, match="give at least one of share, datasets"):
        ForgetSet()
    with pytest.raises(ValidationError, match="ids: 'a' is given twice"):
        ForgetSet(ids=("a", "b", "a"))
    # Without a rule, everybody who is left is retained.
    assert len(select_members(rows, RetainSet(), seed=0)) == 2
    assert MemberSelection().given == ()
