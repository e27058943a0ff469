from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.errors import InputError
from inject.examples.example import DropReason, example_id
from inject.examples.membership import split_members
from inject.examples.pool import PoolRequest, near_duplicate_pairs, usable_rows
from tests.inject.examples.drawing import Membership, drawn_membership, plain_row

WORDS = ["red", "green", "blue", "dog", "cat", "ran", "sat"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def naive_grams(text):
    words = text.lower().split()
    size = 3 if len(words) >= 3 else 1
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


@given(st.lists(TEXT, max_size=12), st.sampled_from([0.2, 0.5, 1.0]))
@settings(max_examples=50, deadline=None)
def test_near_duplicates_equal_brute_force(texts, threshold):
    grams = [naive_grams(text) for text in texts]
    expected = {
        (i, j)
        for i in range(len(texts))
        for j in range(i + 1, len(texts))
        if grams[i] | grams[j] and len(grams[i] & grams[j]) / len(grams[i] | grams[j]) >= threshold
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inject.examples.pool._BLOCK", 5)
        pairs = near_duplicate_pairs(texts, threshold=threshold)
    assert {(first, second) for first, second, _ in pairs} == expected


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
@settings(max_examples=30, deadline=None)
def test_pool_counts_groups_and_texts(count, group_size, members, nonmembers, n_strata, seed):
    examples = rows(count, group_size=group_size, strata=[str(i) for i in range(n_strata)])
    made = drawn_membership(examples, members, nonmembers, seed=seed).examples
    assert drawn_membership(examples[::-1], members, nonmembers, seed=seed).examples == made
    sides = {side: [row for row in made if row.side == side] for side in ("member", "nonmember")}
    assert len(sides["member"]) == members
    assert len(sides["nonmember"]) == nonmembers
    assert len({row.example_id for row in made}) == members + nonmembers
    assert not {row.group for row in sides["member"]} & {row.group for row in sides["nonmember"]}
    for group in {row.group for row in made}:
        assert len({row.split for row in made if row.group == group}) == 1
    assert {row.source_id for row in made} <= {row.source_id for row in examples}


def test_near_duplicates_share_a_side_and_stay_within_a_group():
    base = [" ".join(f"w{index}x{word}" for word in range(40)) for index in range(30)]
    # Row 30 + i is like row i in another group; rows 60 + i and 61 + i are alike in one group.
    texts = base + [text.replace("x39", "x40") for text in base]
    pairs = [f"{text} {end}" for text in (f"v {words}" for words in base) for end in ("one", "two")]
    pairs = [text.replace("w", "u") for text in pairs]
    examples = rows(60, texts=texts) + [
        replace(row, group=f"pair {place // 2}") for place, row in enumerate(rows(60, texts=pairs))
    ]
    made = drawn_membership(examples, 25, 25, near_duplicate=0.7)
    gone = sorted(loss.source_id for loss in made.usable.losses)
    assert len(set(gone)) == len(gone) == 30
    left = [row.text for row in made.usable.rows]
    assert set(pairs) <= set(left)
    assert len(left) == 90
    members = {row.text for row in made.examples if row.side == "member"}
    others = {row.text for row in made.examples if row.side == "nonmember"}
    texts = [*members, *others]
    for first, second, _ in near_duplicate_pairs(texts, threshold=0.7):
        assert (texts[first] in members) == (texts[second] in members)


def test_row_similar_to_two_others_is_dropped_once():
    chains = []
    for number in range(12):
        first, both, last = (" ".join(f"{part}{number}x{n}" for n in range(20)) for part in "abc")
        chains += [f"{first} {both}", f"{first} {both} {last}", f"{both} {last}"]
    made = drawn_membership(rows(36, texts=chains), 5, 5, near_duplicate=0.5)
    gone = [int(loss.source_id) for loss in made.usable.losses]
    assert len(set(gone)) == len(gone)
    # A chain loses either its middle or both ends.
    left = {int(row.source_id) for row in made.usable.rows}
    assert left == set(range(36)) - {*gone}
    for start in range(0, 36, 3):
        assert {*range(start, start + 3)} & left in ({start, start + 2}, {start + 1})


def deal_all(requests, *, tune_share, near_duplicate, seed):
    usable = usable_rows(requests, near_duplicate=near_duplicate, seed=seed)
    return [
        Membership(*split_members(rows, tune_share=tune_share, seed=seed), rows) for rows in usable
    ]


def twins(count, *, datasets=("a", "b", "c")):
    """Rows of several datasets; each differs by a word from one in the next dataset."""
    made = []
    for place, dataset in enumerate(datasets):
        texts = [" ".join(f"w{index}x{word}" for word in range(40)) for index in range(count)]
        made.append(rows(count, dataset=dataset, texts=[f"{text} {place}" for text in texts]))
    return made


def across_datasets(membership):
    return [
        loss
        for loss in membership.usable.losses
        if loss.drop_reason == DropReason.NEAR_DUPLICATE_ACROSS
    ]


def test_near_duplicates_across_datasets_are_never_on_opposite_sides():
    for seed in range(2):
        pools = twins(60)
        memberships = deal_all(
            [PoolRequest(examples=pool, members=6, nonmembers=4) for pool in pools],
            tune_share=0.25,
            near_duplicate=0.7,
            seed=seed,
        )
        made = [row for membership in memberships for row in membership.examples]
        assert [len(membership.examples) for membership in memberships] == [10, 10, 10]
        across = [
            (first, second)
            for first, second, _ in near_duplicate_pairs([row.text for row in made], threshold=0.7)
            if made[first].side != made[second].side
        ]
        assert across == []
        names = [{f"{row.dataset} {row.source_id}" for row in pool} for pool in pools]
        for number, membership in enumerate(memberships):
            for loss in across_datasets(membership):
                assert f"{loss.dataset} {loss.source_id}" in names[number]
                assert loss.duplicate_of in set().union(*names) - names[number]
        # 40 of 60 rows of each are examined: most of them are in at least two of the three.
        assert sum(len(across_datasets(membership)) for membership in memberships) > 30


def test_dataset_that_loses_a_near_duplicate_is_random():
    first, second = twins(200, datasets=("a", "b"))
    memberships = deal_all(
        [PoolRequest(examples=pool, members=20, nonmembers=20) for pool in (first, second)],
        tune_share=0.25,
        near_duplicate=0.7,
        seed=1,
    )
    # 160 of 200 rows of each are examined, about 128 of them in both.
    lost = [len(across_datasets(membership)) for membership in memberships]
    assert min(lost) > 35
    assert abs(lost[0] - lost[1]) < 4.5 * np.sqrt(sum(lost))


def test_too_few_rows_or_groups_are_rejected():
    with pytest.raises(InputError, match=r"contaminants\.toy: 30 members .* only 40 usable rows"):
        drawn_membership(rows(40), 30, 30)
    with pytest.raises(InputError, match="stays on one side"):
        drawn_membership(rows(40, group_size=40), 10, 10)


def test_pool_examines_more_rows_when_near_duplicates_leave_too_few():
    """80 of 100 rows differ by one word, so only 21 are usable; any 40 contain about 9."""
    passage = " ".join(f"word{place}" for place in range(60))
    texts = [f"{passage} last{number}" for number in range(80)]
    texts += [" ".join(f"w{number}x{word}" for word in range(20)) for number in range(20)]
    examples = rows(100, texts=texts)
    for seed in range(5):
        membership = drawn_membership(examples, 10, 10, seed=seed)
        assert [row.side for row in membership.examples].count("member") == 10
        small = drawn_membership(examples, 5, 5, seed=seed)
        assert len(small.examples) == 10
        assert 40 <= small.usable.considered <= 100
