"""Token statistics as a table, whatever fields the dataclass has."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest

from detect.ground_truth import statistics_table as module


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
