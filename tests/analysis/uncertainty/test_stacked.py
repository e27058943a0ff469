"""Many columns at once against one at a time, and against loops over rows, pairs and groups."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.adjusted import adjusted_samples, base_samples
from analysis.arm import Cohort, load_arm
from analysis.auc_cells import measure_columns
from analysis.intervals.clustered import Clustered, Part, cluster
from analysis.intervals.ends import Scale, find_difference, find_interval
from analysis.intervals.influence import (
    Sample,
    Side,
    auc_sample,
    difference,
    trend_sample,
)
from analysis.settings import AnalysisSettings
from analysis.tables import PreparedCohort
from analysis.uncertainty.column_intervals import (
    column_intervals,
    difference_intervals,
)
from tests.analysis.oracles import auc
from tests.analysis.synthetic import make_arm

FAST = AnalysisSettings(dataset_detectors=(), min_members=5)


class Drawn:
    """Columns of scores with ties, on rows in groups that may lie on both sides."""

    def __init__(self, random: np.random.Generator, columns: int):
        m, n = random.integers(2, 14, 2)
        self.scores = [random.integers(0, 6, (columns, size)).astype(float) for size in (m, n)]
        self.n_groups = int(random.integers(2, 12))
        self.groups = [random.integers(0, self.n_groups, size) for size in (m, n)]
        self.within = random.random((int(random.integers(1, 4)), m)) < 0.6
        self.copies = random.integers(0, 4, m)
        # A group lies in one stratum.
        self.strata = self.groups[0] % 3

    def sides(self, column: int | slice) -> tuple[Side, Side]:
        pairs = zip(self.scores, self.groups, strict=True)
        members, nonmembers = (Side(scores[column], groups) for scores, groups in pairs)
        return members, nonmembers


@st.composite
def drawn(draw) -> Drawn:
    return Drawn(np.random.default_rng(draw(st.integers(0, 10**6))), draw(st.integers(1, 5)))


def equal(one: Sample | Clustered, other: Sample | Clustered) -> bool:
    """Whether values are equal to the last bit, and all else but for the order of sums."""
    return np.array_equal(one.value, other.value, equal_nan=True) and all(
        (a is None and b is None) or np.allclose(a, b, rtol=1e-12, atol=1e-14, equal_nan=True)
        for a, b in zip(one, other, strict=True)
    )


def plain_auc(rows: Drawn, column: int, cell: np.ndarray) -> tuple[float, np.ndarray]:
    """Return an AUC and its influence by side and group, from all pairs of rows."""
    members, nonmembers = (scores[column] for scores in rows.scores)
    value = auc(members[cell], nonmembers)
    influence = np.zeros((2, rows.n_groups))
    for at in np.flatnonzero(cell):
        influence[0, rows.groups[0][at]] += (auc([members[at]], nonmembers) - value) / cell.sum()
    for at, score in enumerate(nonmembers):
        off = auc(members[cell], [score]) - value
        influence[1, rows.groups[1][at]] += off / len(nonmembers)
    for side, groups in enumerate((rows.groups[0][cell], rows.groups[1])):
        count = len(set(groups.tolist()))
        influence[side] *= np.sqrt(count / max(count - 1, 1))
    return value, influence


@given(drawn())
@settings(max_examples=60, deadline=None)
def test_stacked_aucs_and_trends_are_those_of_loops_over_pairs(rows):
    found = auc_sample(*rows.sides(slice(None)), rows.within, rows.n_groups)
    trend, pairs = trend_sample(rows.sides(slice(None))[0], rows.copies, rows.n_groups)
    columns, cells = len(rows.scores[0]), len(rows.within)
    for column, k in itertools.product(range(columns), range(cells)):
        at = column * cells + k
        if not rows.within[k].any():
            assert np.isnan(found.value[at])
            continue
        value, influence = plain_auc(rows, column, rows.within[k])
        assert found.value[at] == pytest.approx(value, abs=1e-13)
        assert found.influence[:, at] == pytest.approx(influence, abs=1e-13)
    for column in range(columns):
        signs = 0.0
        scores = rows.scores[0][column]
        for i, j in itertools.product(range(len(scores)), repeat=2):
            if rows.copies[i] > rows.copies[j]:
                signs += np.sign(scores[i] - scores[j])
        assert trend.value[column] == pytest.approx(signs / pairs if pairs else np.nan, nan_ok=True)


@pytest.fixture(scope="module", params=[(0,), (0, 1, 2)], ids=["one seed", "three seeds"])
def cohort(request, tmp_path_factory):
    """Two datasets; `surp` fails too often on one of them and is measured on rows of its own."""
    folder = tmp_path_factory.mktemp("stacked")
    arms = [
        make_arm(folder / f"{seed}", axes={}, seed=seed, effect=0.8, n=60, unscored={"surp": 30})
        for seed in request.param
    ]
    bases = [
        make_arm(folder / f"base {seed}", axes={}, seed=seed, effect=0.0, n=60, model="base")
        for seed in request.param
    ]
    loaded = [load_arm(arm) for arm in arms]
    # One column without any difference between its rows.
    flat = next(one for one in loaded[0].columns if one.detector == "zlib")
    for arm in loaded:
        arm.scores[:, arm.index[flat]] = 1.0
    columns = list(loaded[0].columns)
    work = PreparedCohort.prepare(Cohort((), "contaminated"), loaded, columns, FAST)
    return work, columns, [load_arm(arm) for arm in bases]


def test_columns_that_are_measured_together_are_what_each_is_alone(cohort):
    work, columns, _ = cohort
    where = (work.datasets, work.cells, FAST)
    together = measure_columns(work.arms, columns, *where)
    assert list(together) == columns
    apart = {column for arm in work.arms for rows in arm.compared.values() for column in rows.own}
    assert apart
    for column in columns:
        alone = measure_columns(work.arms, [column], *where)[column]
        for name in ("values", "n_members", "n_nonmembers", "n_seeds", "trend", "trend_members"):
            mine, single = getattr(together[column], name), getattr(alone, name)
            assert np.array_equal(mine, single, equal_nan=True)
        assert str(together[column].intervals) == str(alone.intervals)
        for dataset in (None, *work.datasets):
            mine, single = together[column].sample.auc(dataset), alone.sample.auc(dataset)
            assert mine is not None
            assert single is not None
            assert equal(mine, single)


def test_the_ends_in_the_tables_are_those_of_one_column_and_cell_at_a_time(cohort):
    """The long way: each number by itself, from its own influence values."""
    work, columns, _ = cohort
    found = measure_columns(work.arms, columns, work.datasets, work.cells, FAST)
    for column, d in itertools.product(columns, range(len(work.datasets) + 1)):
        sample = found[column].sample
        dataset = work.datasets[d - 1] if d else None
        for k in range(len(work.cells)):
            one = cluster(
                [
                    {
                        name: Part(part.auc.part(slice(k, k + 1)), part.members[k : k + 1])
                        for name, part in seed.items()
                        if dataset in (None, name)
                    }
                    for seed in sample.seeds
                ]
            )
            low, high, about = find_interval(one, Scale.AUC, confidence=0.95)
            cell = found[column].intervals[d].cells[0][k]
            assert (cell.low, cell.high) == pytest.approx((low[0], high[0]), rel=1e-12, nan_ok=True)
            assert cell.about == about[0]


def test_adjusted_columns_are_what_each_is_alone(cohort):
    work, columns, bases = cohort
    found = measure_columns(work.arms, columns, work.datasets, work.cells, FAST)
    samples = {column: found[column].sample for column in columns}
    base = base_samples(work.arms, bases, samples, work.cells, FAST)
    assert set(base) == set(columns)
    for dataset in (None, *work.datasets):
        together = adjusted_samples(samples, base, dataset)
        for column in columns:
            mine = {column: samples[column]}
            own = base_samples(work.arms, bases, mine, work.cells, FAST)
            single = adjusted_samples(mine, own, dataset)[column]
            for one, other in zip(together[column][1:], single[1:], strict=True):
                assert np.array_equal(one, other, equal_nan=True)
            how = {"cells": len(work.cells), "rates": 0, "confidence": 0.95}
            ends = [
                column_intervals([one.sample], dataset, **how) for one in (together[column], single)
            ]
            assert str(ends[0]) == str(ends[1])


def test_differences_of_many_columns_are_those_of_each(cohort):
    work, columns, _ = cohort
    found = measure_columns(work.arms, columns, work.datasets, work.cells, FAST)
    shared = [one for one in columns if one.detector != "surp"]
    best, *others = [found[column].sample for column in shared]
    wanted = [0, len(work.cells) - 1]
    for dataset in (None, *work.datasets):
        many = difference_intervals(others, best, dataset, confidence=0.95, wanted=wanted)
        for band, other in zip(many, others, strict=True):
            (single,) = difference_intervals(
                [other], best, dataset, confidence=0.95, wanted=range(len(work.cells))
            )
            for k in wanted:
                assert band[k][:2] == pytest.approx(single[k][:2], rel=1e-12, nan_ok=True)
                assert band[k].about == single[k].about
                gap = cluster(
                    [
                        {
                            name: Part(difference(part.auc, theirs[name].auc), part.members)
                            for name, part in mine.items()
                            if dataset in (None, name)
                        }
                        for mine, theirs in zip(other.seeds, best.seeds, strict=True)
                    ]
                )
                ends = find_difference(gap, other.auc(dataset), best.auc(dataset), confidence=0.95)
                plain = (ends.low[k], ends.high[k])
                assert band[k][:2] == pytest.approx(plain, rel=1e-12, nan_ok=True)
