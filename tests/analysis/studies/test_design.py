"""Rank, inflation and aliases of designs: the studies' numbers, and the definition by inverses."""

import itertools
from math import inf, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.design import INTERCEPT, design

STUDY_1 = [
    {"parameters": size * 1_000_000, "lr": lr}
    for size, lr in ((1, 5e-4), (1, 1e-3), (1, 2e-3), (2, 2e-3), (4, 1e-3), (4, 2e-3))
]


def study_2(arms: int) -> list[dict[str, float]]:
    """Return arms 1 to 8, or 1 to 10; steps are whole numbers, as in training."""
    rows = []
    for tokens, tails in ((800_000, (40, 400, 400, 40)), (3_200_000, (400, 40, 40, 400))):
        for tail, (repeat, batch) in zip(
            tails, itertools.product((1, 4), (2048, 8192)), strict=True
        ):
            rows.append({"T": tokens, "U": tokens // repeat, "batch": batch, "tail": tail * 1000})
    rows = [{**row, "members": 66} for row in rows]
    rows += [{**rows[0], "members": 264}, {**rows[4], "members": 264}]
    return [{**row, "steps": row["T"] // row["batch"]} for row in rows[:arms]]


def rounded(rows, columns) -> tuple[int, list[float]]:
    result = design(rows, columns)
    return result.rank, [round(value, 1) for value in result.inflation.values()]


def test_study_1_separates_size_and_rate_and_their_product():
    assert rounded(STUDY_1, ["parameters", "lr"]) == (3, [1.1, 1.1])
    # The product of the distances from the middle levels.
    products = [
        {**row, "product": 2 ** (log2(row["parameters"] / 2e6) * log2(row["lr"] / 1e-3))}
        for row in STUDY_1
    ]
    rank, inflation = rounded(products, ["parameters", "lr", "product"])
    assert rank == 4
    assert max(inflation) == 1.8


def test_study_2_separates_its_four_columns_and_members():
    columns = ["U", "steps", "batch", "tail"]
    assert rounded(study_2(8), columns) == (5, [2.0, 4.0, 3.0, 1.0])
    result = design(study_2(10), [*columns, "members"])
    assert result.rank == 6
    published = [2.5, 4.5, 3.4, 1.0, 1.4]
    assert list(result.inflation.values()) == pytest.approx(published, abs=0.0501)


def test_study_2_cannot_separate_tokens_from_steps_and_batch():
    columns = ["U", "steps", "batch", "tail", "members", "T"]
    result = design(study_2(10), columns)
    assert (result.rank, result.size) == (6, 7)
    assert result.aliased == {"T": ("steps", "batch")}
    aliased = {name for name, value in result.inflation.items() if value == inf}
    assert aliased == {"T", "steps", "batch"}


def test_study_3_has_orthogonal_columns():
    rows = []
    for kind, background, tokens in itertools.product("ab", "ab", (800_000, 2_400_000)):
        match = 2 ** (1 if kind == background else -1)
        interaction = match if tokens > 1_000_000 else 1 / match
        rows.append(
            {"kind": kind, "background": background, "T": tokens, "match": match, "mT": interaction}
        )
    assert rounded(rows, list(rows[0])) == (6, [1.0] * 5)


def test_a_column_that_is_the_same_in_all_arms_is_the_intercept():
    result = design([{"a": 1, "b": "x"}, {"a": 2, "b": "x"}], ["a", "b"])
    assert result.rank == 2
    assert result.aliased == {"b": (INTERCEPT,)}
    assert result.inflation == pytest.approx({"a": 1.0, "b": inf})


def test_texts_and_numbers_that_are_not_positive_have_one_dummy_per_further_level():
    rows = [
        {"shape": name, "tail": tail} for name, tail in zip("abcab", (0, 1, 0, 1, 0), strict=True)
    ]
    result = design(rows, ["shape", "tail"])
    assert list(result.inflation) == ["shape=b", "shape=c", "tail=1"]


def test_more_columns_than_arms_leave_the_rank_at_the_number_of_arms():
    rows = [{"a": 1, "b": 1, "c": 3}, {"a": 2, "b": 1, "c": 1}, {"a": 1, "b": 5, "c": 1}]
    assert design(rows, "abc").rank == 3


@given(st.integers(0, 10**6), st.integers(2, 4))
def test_rank_and_inflation_equal_their_definitions(seed, k):
    values = np.exp2(np.random.default_rng(seed).normal(size=(12, k)))
    names = [f"x{at}" for at in range(k)]
    result = design([dict(zip(names, row, strict=True)) for row in values.tolist()], names)
    logs = np.log2(values)
    assert result.rank == np.linalg.matrix_rank(np.column_stack([np.ones(12), logs]))
    inverse = np.linalg.inv(np.corrcoef(logs, rowvar=False).reshape(k, k))
    assert list(result.inflation.values()) == pytest.approx(list(np.diag(inverse)))
