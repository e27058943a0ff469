"""Numbers, their differences and intervals against loops over rows, pairs and groups."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.arm import Cohort, load_arm
from analysis.auc_cells import PreparedCohort, measure_columns
from analysis.intervals.clustered import Part, cluster
from analysis.intervals.ends import IntervalMethod, find_difference, find_interval
from analysis.intervals.influence import Side, auc_sample, difference, trend_sample
from analysis.intervals.rows import Rows, auc_numbers
from analysis.settings import AnalysisSettings
from tests.analysis.oracles import auc
from tests.analysis.synthetic import make_arm

FAST = AnalysisSettings(dataset_detectors=(), min_members=5)


class TiedRows:
    """Scores with ties, of rows in groups that may be on both sides."""

    def __init__(self, random: np.random.Generator):
        m, n = random.integers(2, 14, 2)
        self.scores = [random.integers(0, 6, size).astype(float) for size in (m, n)]
        self.n_groups = int(random.integers(2, 12))
        self.groups = [random.integers(0, self.n_groups, size) for size in (m, n)]
        self.within = random.random((int(random.integers(1, 4)), m)) < 0.6
        self.copies = random.integers(0, 4, m)

    def sides(self) -> list[Side]:
        return [Side(*pair) for pair in zip(self.scores, self.groups, strict=True)]


@st.composite
def tied_rows(draw) -> TiedRows:
    return TiedRows(np.random.default_rng(draw(st.integers(0, 10**6))))


def plain_auc(rows: TiedRows, cell: np.ndarray) -> tuple[float, np.ndarray]:
    """Return an AUC and its influence by side and group, computed from all pairs of rows."""
    members, nonmembers = rows.scores
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


@given(tied_rows())
@settings(max_examples=60, deadline=None)
def test_aucs_and_trends_match_loops_over_pairs(rows):
    sample = auc_sample(*rows.sides(), rows.within, rows.n_groups)
    trend, pairs = trend_sample(rows.sides()[0], rows.copies, rows.n_groups)
    for k, cell in enumerate(rows.within):
        if not cell.any():
            assert np.isnan(sample.value[k])
            continue
        value, influence = plain_auc(rows, cell)
        assert sample.value[k] == pytest.approx(value, abs=1e-13)
        assert sample.influence[:, k] == pytest.approx(influence, abs=1e-13)
    signs = 0.0
    for i, j in itertools.product(range(len(rows.copies)), repeat=2):
        if rows.copies[i] > rows.copies[j]:
            signs += np.sign(rows.scores[0][i] - rows.scores[0][j])
    assert trend.value[0] == pytest.approx(signs / pairs if pairs else np.nan, nan_ok=True)


@pytest.fixture(scope="module", params=[(0,), (0, 1, 2)], ids=["one seed", "three seeds"])
def measured(request, tmp_path_factory):
    """Two datasets; `surp` fails too often on one of them and is measured on its own rows."""
    folder = tmp_path_factory.mktemp("measured")
    arms = [
        make_arm(folder / f"{seed}", axes={}, seed=seed, effect=0.8, n=60, unscored={"surp": 30})
        for seed in request.param
    ]
    loaded = [load_arm(arm) for arm in arms]
    # All scores of one column are equal.
    flat = next(column for column in loaded[0].columns if column.detector == "zlib")
    for arm in loaded:
        arm.scores[:, arm.index[flat]] = 1.0
    columns = list(loaded[0].columns)
    work = PreparedCohort.prepare(Cohort((), "contaminated"), loaded, columns, FAST)
    return work, measure_columns(work, columns)


def of_cell(seed, dataset, k):
    """Return one cell's number for each dataset."""
    return {
        name: Part(part.sample.part(slice(k, k + 1)), part.weight[k : k + 1])
        for name, part in seed.items()
        if dataset in (None, name)
    }


def test_table_bounds_match_cells_computed_separately(measured):
    """Compare with each number computed separately from its own influence values."""
    work, by_column = measured
    for column, dataset in itertools.product(by_column, (None, *work.datasets)):
        for k, cell in enumerate(by_column[column].aucs(dataset or "all").values()):
            pooled = cluster([of_cell(seed, dataset, k) for seed in by_column[column].auc.seeds])
            low, high, about = find_interval(pooled, IntervalMethod.AUC, confidence=0.95)
            if np.isnan(cell.value):
                assert cell.reason == "no value"
                continue
            assert (cell.low, cell.high) == pytest.approx((low[0], high[0]), rel=1e-12, nan_ok=True)
            assert cell.about == about[0]


def test_difference_bounds_match_influence_values_computed_separately(measured):
    work, by_column = measured
    best, *others = [by_column[column].auc for column in by_column if column.detector != "surp"]
    for dataset, other in itertools.product((None, *work.datasets), others):
        gaps = (other - best).estimates(dataset, confidence=0.95)
        for k, gap in enumerate(gaps):
            first, second = (
                [of_cell(seed, dataset, k) for seed in numbers.seeds] for numbers in (other, best)
            )
            plain = [
                {
                    name: Part(difference(part.sample, second_parts[name].sample), part.weight)
                    for name, part in first_parts.items()
                }
                for first_parts, second_parts in zip(first, second, strict=True)
            ]
            clusters = [cluster(parts) for parts in (plain, first, second)]
            low, high, about = find_difference(*clusters, confidence=0.95)
            assert gap[1:3] == pytest.approx((low[0], high[0]), rel=1e-12, nan_ok=True)
            assert gap.about == about[0]


def test_rows_without_a_value_are_omitted_from_numbers_and_counts():
    """Two datasets and two seeds; the second seed lacks one dataset."""
    rows = Rows(
        seed=np.repeat([0, 1], [12, 6]),
        dataset=np.array(["a"] * 6 + ["b"] * 6 + ["a"] * 6, dtype=object),
        group=np.array([0, 0, 1, 2, 3, 4] * 3),
        member=np.array(
            [True] * 3 + [False] * 3 + [True] * 3 + [False] * 3 + [True] * 3 + [False] * 3
        ),
        nonmember=np.array(
            [False] * 3 + [True] * 3 + [False] * 3 + [True] * 3 + [False] * 3 + [True] * 3
        ),
    )
    scores = np.arange(18.0)[::-1].copy()
    scores[2] = np.nan
    numbers = auc_numbers(rows, scores)
    (pooled,), (single,) = (numbers.estimates(name, confidence=0.9) for name in (None, "b"))
    assert (pooled.members, pooled.nonmembers, pooled.groups, pooled.seeds) == (8, 9, 4, 2)
    assert (single.members, single.nonmembers, single.groups, single.seeds) == (3, 3, 2, 1)
    assert (numbers.left_out(), numbers.left_out("b")) == (1, 0)
    assert pooled.value == 1.0
    assert pooled.reason == "2 groups on one side"
    assert numbers.estimates("c", confidence=0.9) == []
