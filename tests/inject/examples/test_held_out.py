"""Held-out rows against their definition, by brute force."""

import random
import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.errors import InputError
from inject.examples.example import example_id
from inject.examples.membership import split_members
from inject.examples.pool import PoolRequest, draw_held_out, usable_rows
from tests.inject.examples.drawing import plain_row
from tests.inject.examples.test_membership import POOLS, assert_binomial, pool

ALPHABETS = ("abcdefghij", "абвгдежзик", "αβγδεζηθικ", "天地玄黃宇宙洪荒日月")


def texts_of(count, *, alphabet, seed, alike=0.0):
    """Texts of ten invented words; some differ from another one by a word."""
    draw = random.Random(seed)
    texts = []
    for _ in range(count):
        if texts and draw.random() < alike:
            words = draw.choice(texts).split(" ")
            words[-1] = "".join(draw.choices(alphabet, k=5))
        else:
            words = ["".join(draw.choices(alphabet, k=5)) for _ in range(10)]
        texts.append(" ".join(words))
    return texts


def dataset(name, sizes, *, alphabet=ALPHABETS[0], seed=0, alike=0.0, strata=3):
    """Rows in groups of the given sizes."""
    texts = iter(texts_of(sum(sizes), alphabet=alphabet, seed=seed, alike=alike))
    rows = []
    for number, size in enumerate(sizes):
        for place in range(size):
            text = next(texts)
            made = plain_row(
                example_id(text),
                f"g{number}" if size > 1 else None,
                dataset=name,
                source_id=f"{number}-{place}",
                stratum=f"s{number % strata}",
                text=text,
            )
            rows.append(made)
    return list({row.example_id: row for row in rows}.values())


def grams(text):
    """Word 3-grams, reimplemented: words are runs of letters, or single ideographs."""
    words = re.findall(r"[一-鿿]|[^\W_]+", text.lower())
    return {tuple(words[at : at + 3]) for at in range(max(1, len(words) - 2))}


def similarity(text, other):
    first, second = grams(text), grams(other)
    return len(first & second) / len(first | second)


def draw_rows(datasets, counts, *, sides=(4, 5), seed=0, near_duplicate=0.7, stratify=True):
    requests = [
        PoolRequest(
            examples=rows,
            members=sides[0],
            nonmembers=sides[1],
            stratify=stratify,
            held_out=number,
        )
        for rows, number in zip(datasets, counts, strict=True)
    ]
    usable = usable_rows(requests, near_duplicate=near_duplicate, seed=seed)
    scored = [row for pool in usable for row in split_members(pool, tune_share=0.25, seed=seed)[0]]
    held_out = draw_held_out(requests, scored, near_duplicate=near_duplicate, seed=seed)
    return scored, held_out


@given(
    sizes=st.lists(st.integers(1, 3), min_size=25, max_size=40),
    other=st.lists(st.integers(1, 2), min_size=20, max_size=30),
    alphabet=st.sampled_from(ALPHABETS),
    alike=st.sampled_from([0.0, 0.15]),
    seed=st.integers(0, 2**32),
    counts=st.tuples(st.integers(0, 5), st.integers(0, 4)),
    stratify=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_held_out_rows_are_disjoint_from_scored_rows(
    sizes, other, alphabet, alike, seed, counts, stratify
):
    datasets = [
        dataset("one", sizes, alphabet=alphabet, seed=seed, alike=alike),
        dataset("two", other, alphabet=alphabet, seed=seed + 1, alike=alike),
    ]
    try:
        scored, held_out = draw_rows(datasets, counts, seed=seed, stratify=stratify)
    except InputError:
        return  # Too few rows are left; another test looks at the error.
    assert [len(rows) for rows in held_out] == list(counts)
    all_rows = [row for rows in held_out for row in rows]
    assert {(row.side, row.split) for row in all_rows} <= {("nonmember", "tune")}
    assert len({row.example_id for row in all_rows}) == len(all_rows)
    on_a_side = {(row.dataset, row.group) for row in scored}
    assert not on_a_side & {(row.dataset, row.group) for row in all_rows}
    assert not {row.text for row in scored} & {row.text for row in all_rows}
    for place, row in enumerate(all_rows):
        apart = [
            item
            for item in (*scored, *all_rows[:place])
            if (item.dataset, item.group) != (row.dataset, row.group)
        ]
        assert all(similarity(row.text, item.text) < 0.7 for item in apart)


@pytest.mark.parametrize("name", ["strata of 1 to 5 rows", "groups of 1 to 4 rows"])
def test_remaining_rows_are_equally_likely_and_strata_keep_their_share(name):
    rows = pool(POOLS[name])
    scored = [row for row in rows if int(row.source_id.split("-")[1]) % 4 == 0]
    taken = {row.group for row in scored}
    free = [row for row in rows if row.group not in taken]
    if not free:
        free, scored = rows, []
    count = max(1, round(0.3 * len(free)))
    sizes = Counter(row.stratum for row in free)
    counts = Counter({row.example_id: 0 for row in free})
    seeds = 300
    for seed in range(seeds):
        request = PoolRequest(examples=rows, members=0, nonmembers=0, held_out=count)
        [held_out] = draw_held_out([request], scored, near_duplicate=None, seed=seed)
        assert len({row.example_id for row in held_out}) == count
        counts.update(row.example_id for row in held_out)
        inside = Counter(row.stratum for row in held_out)
        assert all(
            abs(inside[stratum] - count * size / len(free)) < 1 for stratum, size in sizes.items()
        )
    assert_binomial(counts.values(), seeds, count / len(free))


def test_too_few_rows_error_gives_the_count():
    rows = dataset("one", [1] * 12)
    with pytest.raises(InputError) as caught:
        draw_rows([rows], [5])
    text = str(caught.value)
    assert "5 held-out rows requested, but only 3 rows can be held out" in text
    assert "of 12 usable rows 9 are members or non-members" in text
    assert caught.value.where == "contaminants.one.held_out"
    assert caught.value.allowed == "0 to 3"
    draw_rows([rows], [3])


def test_equal_texts_of_two_datasets_are_held_out_once_without_near_duplicate_checks():
    rows = dataset("one", [1] * 12)
    twins = [replace(original, dataset="two") for original in rows]
    requests = [
        PoolRequest(examples=part, members=0, nonmembers=0, held_out=5) for part in (rows, twins)
    ]
    # Wherever all five of one dataset are free to be drawn, five others are left to the other.
    held_out = None
    for seed in range(40):
        try:
            held_out = draw_held_out(requests, rows[:2], near_duplicate=None, seed=seed)
            break
        except InputError:
            continue
    assert held_out is not None
    names = [row.example_id for part in held_out for row in part]
    assert sorted(names) == sorted(row.example_id for row in rows[2:])


def test_only_one_of_similar_rows_is_held_out():
    rows = dataset("one", [1] * 12)
    twins = [
        plain_row(example_id(f"{row.text} x"), dataset="one", text=f"{row.text} x") for row in rows
    ]
    request = PoolRequest(examples=[*rows, *twins], members=0, nonmembers=0, held_out=12)
    [held_out] = draw_held_out([request], [], near_duplicate=0.7, seed=0)
    assert sorted(row.text.removesuffix(" x") for row in held_out) == sorted(r.text for r in rows)


def test_unassigned_rows_can_be_held_out():
    rows = dataset("one", [1] * 12)
    request = PoolRequest(examples=rows[:4], further=rows[4:], members=1, nonmembers=1, held_out=10)
    [held_out] = draw_held_out([request], rows[:2], near_duplicate=0.7, seed=0)
    assert sorted(row.example_id for row in held_out) == sorted(row.example_id for row in rows[2:])
