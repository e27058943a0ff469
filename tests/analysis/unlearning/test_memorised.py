"""Memorisation of one text, from its ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.unlearning.evidence import text_memory
from detect.token_statistics import TokenStatistics, unscored


def statistics(ranks: list[int], log_probability: float = -1.0) -> TokenStatistics:
    n = len(ranks)
    nothing, zero = np.zeros(n, np.float32), np.zeros(n, np.int32)
    return TokenStatistics(
        ids=zero,
        log_probability=np.full(n, log_probability, np.float32),
        mean=nothing,
        deviation=nothing,
        entropy=nothing,
        rank=np.array(ranks, np.int32),
        top_log_probability=nothing,
        top_id=zero,
        offsets=np.zeros((n, 2), np.int32),
    )


@given(st.lists(st.integers(1, 3), min_size=1, max_size=30))
def test_greedy_decoding_from_the_prefix_gives_the_rest_and_from_a_shorter_one_does_not(ranks):
    found = text_memory(statistics(ranks))
    prefix = round((1 - found.extraction_strength) * len(ranks))
    assert all(rank == 1 for rank in ranks[prefix:])
    assert prefix == 0 or ranks[prefix - 1] != 1
    assert 0 <= found.extraction_strength <= found.exact_memorisation <= 1
    assert found.exact_memorisation == ranks.count(1) / len(ranks)
    assert found.log_probability == -1


@pytest.mark.parametrize(
    "nothing", [unscored("empty text"), statistics([1, 1], float("nan")), statistics([1], -np.inf)]
)
def test_a_text_without_a_score_and_a_diverged_model_have_no_value(nothing):
    assert np.isnan(text_memory(nothing)).all()
