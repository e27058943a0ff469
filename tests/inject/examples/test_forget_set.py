"""Forget and retain sets against brute force: their rules, whole groups, equal chances."""

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
                    row(dataset, f"{split}{number}", place, stratum=stratum, split=split)
                    for place in range(size)
                ]
    return draw(st.permutations(rows))


def copies_of(rows: list[Example]) -> dict[str, int]:
    """One number per group, from 0 to 2."""
    return {member.example_id: sum(map(ord, member.dataset + member.group)) % 3 for member in rows}


def by_hand(rows, selection, copies) -> set[str]:
    """All rules except the share, row by row."""
    return {
        member.example_id
        for member in rows
        if (selection.datasets is None or member.dataset in selection.datasets)
        and (selection.groups is None or member.group in selection.groups)
        and (selection.copies is None or copies[member.example_id] in selection.copies)
        and (
            selection.ids is None
            or member.example_id in selection.ids
            or member.source_id in selection.ids
        )
    }


@st.composite
def selections(draw, rows: list[Example]):
    rules = {}
    if draw(st.booleans()):
        rules["datasets"] = draw(st.sampled_from([("toy",), ("news",), ("news", "toy")]))
    if draw(st.booleans()):
        names = sorted({member.group for member in rows})
        rules["groups"] = tuple(draw(st.sets(st.sampled_from(names), min_size=1)))
    if draw(st.booleans()):
        rules["copies"] = tuple(draw(st.sets(st.integers(0, 2), min_size=1)))
    if draw(st.booleans()):
        groups = sorted({(member.dataset, member.group) for member in rows})
        chosen = draw(st.sets(st.sampled_from(groups), min_size=1))
        inside = [member for member in rows if (member.dataset, member.group) in chosen]
        rules["ids"] = tuple(
            member.source_id if draw(st.booleans()) else member.example_id for member in inside
        )
    if not rules or draw(st.booleans()):
        rules["share"] = draw(st.integers(1, 99)) / 100
    return ForgetSet(**rules)


@given(data=st.data(), rows=members(), seed=st.integers(0, 2**40))
@settings(max_examples=50, deadline=None)
def test_selection_matches_its_rules_applied_by_hand(data, rows, seed):
    selection, copies = data.draw(selections(rows)), copies_of(rows)
    expected = by_hand(rows, selection, copies)
    cells = defaultdict(list)
    for member in rows:
        if member.example_id in expected:
            cells[member.dataset, member.split].append(member)
    lonely = any(len({member.group for member in cell}) < 2 for cell in cells.values())
    if not expected or (selection.share is not None and lonely):
        with pytest.raises(InputError, match=r"none of the .* is selected|single group"):
            select_members(rows, selection, seed=seed, copies=copies)
        return
    selected = select_members(rows, selection, seed=seed, copies=copies)
    assert select_members(rows[::-1], selection, seed=seed, copies=copies) == selected
    for group in {(member.dataset, member.group) for member in rows}:
        ids = {member.example_id for member in rows if (member.dataset, member.group) == group}
        assert ids <= selected or not ids & selected
    if selection.share is None:
        assert selected == expected
        return
    assert selected < expected
    for cell in cells.values():
        count = sum(member.example_id in selected for member in cell)
        largest = max(Counter(member.group for member in cell).values())
        assert 0 < count < len(cell)
        assert abs(count - selection.share * len(cell)) <= largest


def test_groups_are_equally_likely_whatever_their_size_and_stratum():
    """Among the rows that other rules leave, in strata of one row to three."""
    share = 0.2
    rows = [
        row("toy", f"{number}", item, stratum=f"{number // (1 + number % 3)}")
        for number in range(16)
        for item in range(1 + number % 3)
    ] + [row("news", f"{number}", 0) for number in range(4)]
    runs, counts = 500, Counter()
    for seed in range(runs):
        counts.update(select_members(rows, ForgetSet(datasets=("toy",), share=share), seed=seed))
    error = np.sqrt(share * (1 - share) / runs)
    toys = [item.example_id for item in rows if item.dataset == "toy"]
    assert all(abs(counts[name] / runs - share) < 4.5 * error for name in toys)
    assert counts.keys() <= set(toys)


def test_further_draws_are_independent_of_the_first():
    """The retained half of those not forgotten, and the half learned again, are fair coins."""
    rows = [row("toy", f"{number}", 0) for number in range(12)]
    runs, joint = 500, Counter()
    for seed in range(runs):
        first = select_members(rows, ForgetSet(share=0.5), seed=seed)
        remaining = [member for member in rows if member.example_id not in first]
        second = select_members(remaining, RetainSet(share=0.5), seed=seed, draw=1)
        joint.update(second)
        joint.update((name, "first") for name in first)
    for member in rows:
        # A quarter of all: half of the half that was left.
        assert abs(joint[member.example_id] / runs - 0.25) < 4.5 * np.sqrt(0.25 * 0.75 / runs)


def test_share_only_forget_set_equals_retrained_twin():
    rows = [row("toy", f"{number}", item) for number in range(9) for item in range(1 + number % 2)]
    for seed in range(3):
        old = TwinMembership(kind="retrained", share=0.4)
        new = TwinMembership.retrained(ForgetSet(share=0.4))
        assert new == old
        assert old.identity() == {"kind": "retrained", "share": 0.4, "number": None}
        left = twin_members(rows, old, seed=seed)
        gone = select_members(rows, ForgetSet(share=0.4), seed=seed)
        assert left == {item.example_id for item in rows} - gone


def test_the_retrained_model_sees_the_members_outside_of_the_forget_set():
    rows = [row("toy", f"{number}", 0) for number in range(4)]
    rows[3] = row("news", "3", 0)
    membership = TwinMembership.retrained(ForgetSet(datasets=("toy",), copies=(1,)))
    copies = {member.example_id: number for number, member in enumerate(rows)}
    seen = with_twin_membership(rows, twin_members(rows, membership, seed=0, copies=copies))
    assert [member.side for member in seen] == ["member", "nonmember", "member", "member"]
    assert membership.label() == "retrained-toy-copies=1"


def test_a_group_is_never_split():
    rows = [row("toy", "a", 0), row("toy", "a", 1), row("toy", "b", 0)]
    with pytest.raises(InputError) as caught:
        select_members(rows, ForgetSet(ids=("s-toy-a-1",)), seed=0)
    assert "the group 'a' of toy would be split: s-toy-a-1" in caught.value.problem
    assert "s-toy-a-0 outside" in caught.value.problem
    assert "`groups` selects whole groups" in caught.value.hint


def test_unknown_id_error_names_file_and_row(tmp_path):
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
    # Neither the place nor the order of the listed ids matters.
    file.write_text("b\na\n")
    listed = ForgetSet(ids=("a", "b")).identity(key="x")
    assert ForgetSet(ids=str(file)).identity(key="x") == listed == {"ids": ["a", "b"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        (b"a\nb\na\n", "'a' already appears at "),
    ],
)
def test_bad_id_list_is_rejected(tmp_path, text, message):
    file = tmp_path / "ids.txt"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(InputError, match=message):
        listed_ids(ForgetSet(ids=str(file)), key="unlearning.forget")


def test_empty_and_complete_forget_sets_are_rejected():
    rows = [row("toy", "a", 0), row("toy", "b", 0)]
    with pytest.raises(InputError, match=r"unlearning\.forget: all 2 members"):
        twin_members(rows, TwinMembership.retrained(ForgetSet(datasets=("toy",))), seed=0)
    with pytest.raises(ValidationError, match="give at least one of share, datasets"):
        ForgetSet()
    with pytest.raises(ValidationError, match="ids: 'a' is given twice"):
        ForgetSet(ids=("a", "b", "a"))
    # Without a rule, all remaining members are retained.
    assert len(select_members(rows, RetainSet(), seed=0)) == 2
    assert MemberSelection().given == ()
