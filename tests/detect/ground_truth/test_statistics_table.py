"""Token statistics as a table, whatever fields the dataclass has."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pytest

from detect.ground_truth import statistics_table as module
from detect.token_statistics import TemperedStatistics, unscored
from tests.detect.evidence_samples import statistics_of


@dataclass(frozen=True, kw_only=True)
class Inner:
    value: npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Later:
    """What token statistics may be in a later version."""

    ids: npt.NDArray[np.int32]
    log_probability: npt.NDArray[np.float32]
    rank: npt.NDArray[np.int32]
    places: npt.NDArray[np.int32]
    by_number: Mapping[float, Inner] = field(default_factory=dict)
    reason: str | None = None


@pytest.fixture
def later(monkeypatch):
    monkeypatch.setattr(module, "TokenStatistics", Later)
    module._fields.cache_clear()
    yield
    module._fields.cache_clear()


def row(count: int, *, reason: str | None = None) -> Later:
    numbers = np.arange(count, dtype=np.int32)
    values = -np.arange(count, dtype=np.float32)
    inner = {key: Inner(value=values * np.float32(key)) for key in (0.5, 2.0)} if count else {}
    return Later(
        ids=numbers,
        log_probability=values,
        rank=numbers + 1,
        places=np.stack([numbers, numbers + 1], axis=1).astype(np.int32),
        by_number=inner,
        reason=reason,
    )


def test_a_new_field_needs_no_change(later):
    rows = [row(0, reason="empty text"), row(3), row(1)]
    table = module.statistics_table(rows, np.zeros(3, dtype=np.bool_))
    found = module.statistics_rows(table, where="here")
    for one, other in zip(rows, found, strict=True):
        assert one.reason == other.reason
        for name in ("ids", "log_probability", "rank", "places"):
            first, second = getattr(one, name), getattr(other, name)
            assert first.shape == second.shape
            assert first.dtype == second.dtype
            assert np.array_equal(first, second)
        assert one.by_number.keys() == other.by_number.keys()
        for key, inner in one.by_number.items():
            assert np.array_equal(inner.value, other.by_number[key].value)


def test_inverse_temperatures_and_offsets_go_in_and_come_out():
    plain = statistics_of([-1.0, -2.0, -0.5], offsets=[(0, 2), (2, 5), (5, 6)])
    tempered = {
        beta: TemperedStatistics(
            log_probability=plain.log_probability * np.float32(beta),
            mean=plain.mean,
            deviation=plain.deviation,
        )
        for beta in (0.5, 1.5)
    }
    rows = [unscored("empty text"), replace(plain, tempered=tempered)]
    table = module.statistics_table(rows, np.zeros(2, dtype=np.bool_))
    empty, found = module.statistics_rows(table, where="here")
    assert (len(empty), empty.reason, dict(empty.tempered)) == (0, "empty text", {})
    assert np.array_equal(found.offsets, plain.offsets)
    assert list(found.tempered) == [0.5, 1.5]
    for beta, one in tempered.items():
        for name in ("log_probability", "mean", "deviation"):
            assert np.array_equal(getattr(one, name), getattr(found.tempered[beta], name))
    hidden = module.statistics_rows(
        module.statistics_table(rows, np.array([False, True])), where="here"
    )[1]
    for name in ("ids", "top_id", "offsets"):
        assert (getattr(hidden, name) == -1).all(), name
    assert np.array_equal(hidden.top_log_probability, plain.top_log_probability)


def test_integers_of_withheld_rows_are_left_out_but_for_the_rank(later):
    rows = [row(2), row(3), row(4)]
    for withheld in ([False, True, False], [True, True, True]):
        table = module.statistics_table(rows, np.array(withheld))
        found = module.statistics_rows(table, where="here")
        for one, other, hidden in zip(rows, found, withheld, strict=True):
            assert np.array_equal(one.log_probability, other.log_probability)
            assert np.array_equal(one.rank, other.rank)
            assert np.array_equal(one.by_number[2.0].value, other.by_number[2.0].value)
            assert other.places.shape == one.places.shape
            assert (other.ids == -1).all() == hidden
            assert (other.places == -1).all() == hidden
        assert all(
            table["ids"].combine_chunks().is_null().to_pylist()[at] == hidden
            for at, hidden in enumerate(withheld)
        )
