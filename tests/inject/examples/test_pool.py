from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.errors import InputError
from inject.examples.example import Loss, example_id
from inject.examples.membership import split_members
from inject.examples.pool import PoolRequest, near_duplicate_pairs, usable_rows
from tests.inject.examples.drawing import Membership, drawn_membership, plain_row


def rows(count, *, group_size=1, strata=("",), dataset="toy", texts=None):
    made = []
    for index in range(count):
        text = texts[index] if texts else " ".join(f"w{index}x{word}" for word in range(9))
        made.append(
            plain_row(
                example_id(text),
                f"g{index // group_size}",
                dataset=dataset,
                source_id=str(index),
                stratum=strata[index % len(strata)],
                text=text,
            )
        )
    return made


@given(
    count=st.integers(20, 80),
    group_size=st.integers(1, 4),
    members=st.integers(1, 8),
    nonmembers=st.integers(1, 8),
    n_strata=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
@settings(max_examples=80, deadline=None)
def test_counts_groups_and_texts(count, group_size, members, nonmembers, n_strata, seed):
    examples = rows(count, group_size=group_size, strata=[str(i) for i in range(n_strata)])
    made = drawn_membership(examples, members, nonmembers, seed=seed).examples
    sides = {side: [row for row in made if row.side == side] for side in ("member", "nonmember")}
    assert len(sides["member"]) == members
    assert len(sides["nonmember"]) == nonmembers
    assert len({row.example_id for row in made}) == members + nonmembers
    assert not {row.group for row in sides["member"]} & {row.group for row in sides["nonmember"]}
    for group in {row.group for row in made}:
        assert len({row.split for row in made if row.group == group}) == 1
    assert {row.source_id for row in made} <= {row.source_id for row in examples}


def test_sides_depend_on_seed_and_dataset_alone():
    examples = rows(100)
    first = drawn_membership(examples, 20, 20).examples
    assert drawn_membership(examples[::-1], 20, 20).examples == first
    assert drawn_membership(examples, 20, 20, seed=1).examples != first


def test_near_duplicates_never_stand_on_both_sides():
    base = [" ".join(f"w{index}x{word}" for word in range(40)) for index in range(60)]
    texts = base + [text.replace("x39", "x40") for text in base]
    made = drawn_membership(rows(120, texts=texts), 25, 25, near_duplicate=0.7)
    members = [row.text for row in made.examples if row.side == "member"]
    others = [row.text for row in made.examples if row.side == "nonmember"]
    assert made.usable.losses
    across = [
        pair
        for pair in near_duplicate_pairs(members + others, threshold=0.7)
        if pair.first < len(members) <= pair.second
    ]
    assert across == []


def deal_all(asked, *, tune_share, near_duplicate, seed):
    usable = usable_rows(asked, near_duplicate=near_duplicate, seed=seed)
    return [
        Membership(*split_members(one, tune_share=tune_share, seed=seed), one) for one in usable
    ]


def twins(count, *, datasets=("a", "b", "c")):
    """Rows of several datasets; each has one like it, but for a word, in the next dataset."""
    made = []
    for place, dataset in enumerate(datasets):
        texts = [" ".join(f"w{index}x{word}" for word in range(40)) for index in range(count)]
        made.append(rows(count, dataset=dataset, texts=[f"{text} {place}" for text in texts]))
    return made


def across_datasets(one):
    return [loss for loss in one.usable.losses if loss.loss == Loss.NEAR_DUPLICATE_ACROSS]


def test_near_duplicates_of_two_datasets_never_stand_on_opposite_sides():
    for seed in range(5):
        pools = twins(60)
        found = deal_all(
            [PoolRequest(examples=pool, members=6, nonmembers=4) for pool in pools],
            tune_share=0.25,
            near_duplicate=0.7,
            seed=seed,
        )
        made = [row for one in found for row in one.examples]
        assert [len(one.examples) for one in found] == [10, 10, 10]
        across = [
            pair
            for pair in near_duplicate_pairs([row.text for row in made], threshold=0.7)
            if made[pair.first].side != made[pair.second].side
        ]
        assert across == []
        names = [{f"{row.dataset} {row.source_id}" for row in pool} for pool in pools]
        for number, one in enumerate(found):
            for loss in across_datasets(one):
                assert f"{loss.dataset} {loss.source_id}" in names[number]
                assert loss.like in set().union(*names) - names[number]
        # 40 of 60 rows of each are looked at: most of them stand in two of the three or more.
        assert sum(len(across_datasets(one)) for one in found) > 30


def test_which_of_two_datasets_loses_a_row_is_drawn():
    first, second = twins(200, datasets=("a", "b"))
    found = deal_all(
        [PoolRequest(examples=pool, members=20, nonmembers=20) for pool in (first, second)],
        tune_share=0.25,
        near_duplicate=0.7,
        seed=1,
    )
    # 160 of 200 rows of each are looked at, about 128 of them in both.
    lost = [len(across_datasets(one)) for one in found]
    assert min(lost) > 35
    assert abs(lost[0] - lost[1]) < 4.5 * np.sqrt(sum(lost))


def test_another_dataset_without_near_duplicates_moves_nothing():
    first, second = rows(80, dataset="a"), rows(80, dataset="b")
    second = [replace(row, text=row.text.replace("w", "v")) for row in second]
    alone = drawn_membership(first, 20, 20).examples
    found = deal_all(
        [PoolRequest(examples=pool, members=20, nonmembers=20) for pool in (second, first)],
        tune_share=0.25,
        near_duplicate=0.7,
        seed=0,
    )
    assert found[1].examples == alone


def test_too_few_rows_say_how_many_there_are():
    with pytest.raises(InputError, match=r"contaminants\.toy: 30 members .* only 40 usable rows"):
        drawn_membership(rows(40), 30, 30)


def test_one_big_group_cannot_fill_both_sides():
    with pytest.raises(InputError, match="stays on one side"):
        drawn_membership(rows(40, group_size=40), 10, 10)


def test_more_rows_are_looked_at_where_near_duplicates_leave_too_few():
    """Of 100 rows, 80 are one text but for a word, so only 21 can be used; any 40 hold some 9."""
    passage = " ".join(f"word{place}" for place in range(60))
    texts = [f"{passage} last{number}" for number in range(80)]
    texts += [" ".join(f"w{number}x{word}" for word in range(20)) for number in range(20)]
    examples = rows(100, texts=texts)
    for seed in range(10):
        found = drawn_membership(examples, 10, 10, seed=seed)
        assert [row.side for row in found.examples].count("member") == 10
        small = drawn_membership(examples, 5, 5, seed=seed)
        assert len(small.examples) == 10
        assert 40 <= small.usable.considered <= 100
