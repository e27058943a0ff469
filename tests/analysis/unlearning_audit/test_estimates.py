"""Shares and differences over chunks against slow computations, and interval coverage."""

import numpy as np
import pytest

from analysis.unlearning_audit.shares import Clusters, clusters_of, difference, share
from scripts.calibration.unlearning_audit import (
    PAGE,
    TABLES,
    Case,
    coverage_of,
    difference_cases,
    edge_cases,
    missed_cases,
    page,
    read_lines,
    realised,
    share_cases,
    texts,
)

STUDIES = 120
LEAST = 0.88
"""More than three standard errors below 95 % in 120 studies."""


@pytest.mark.parametrize(
    "case",
    [*list(share_cases())[::10], *list(missed_cases())[1::9], *difference_cases(), *edge_cases()],
    ids=lambda case: case.name,
)
def test_intervals_cover_the_truth(case: Case):
    coverage = coverage_of(case, STUDIES)
    assert coverage.given == 0 or coverage.given < STUDIES / 2 or coverage.share >= LEAST


def test_page_summarises_the_file_and_the_file_is_complete():
    lines, text = read_lines(), PAGE.read_text(encoding="utf-8")
    named = [(table, case.name) for table, cases in TABLES.items() for case in cases()]
    assert [(line.table, line.case) for line in lines] == named
    assert page(text, lines) == text


def test_calibrated_band_has_the_requested_false_positive_rate():
    real, stated = realised(40, 1, 400)
    assert real == pytest.approx(0.05, abs=0.01)
    assert stated == pytest.approx(0.05, abs=0.01)


def test_share_counts_chunks_and_its_variance_clusters():
    random = np.random.default_rng(0)
    flags = random.random(60) < 0.3
    among = random.random(60) < 0.7
    names = [f"text {at // 3}" for at in range(60)]
    values = np.where(among, flags, np.nan)
    estimate = share(values, Clusters(tuple(names)))
    assert estimate.value == (flags & among).sum() / among.sum()
    assert 0 < estimate.low < estimate.value < estimate.high < 1
    weighted = share(flags, Clusters(tuple(map(str, range(60)))), weights=among.astype(float))
    assert weighted.value == estimate.value
    together = share(np.repeat(flags, 4), Clusters(tuple(np.repeat(names, 4).tolist())))
    apart = share(np.repeat(flags, 4), Clusters(tuple(map(str, range(240)))))
    assert together.high - together.low > 1.5 * (apart.high - apart.low)


def test_few_clusters_have_no_interval_and_zero_shares_an_exact_bound():
    flags = [True] * 5 + [False] * 7
    for count in (1, 2, 3):
        estimate = share(flags, Clusters(tuple(f"text {at % count}" for at in range(12))))
        assert estimate.value == pytest.approx(5 / 12)
        assert np.isfinite(estimate.low) == (count >= 3), count
    none = share(np.zeros(60), Clusters(tuple(f"text {at // 2}" for at in range(60))))
    assert (none.value, none.low) == (0, 0)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 30))


def test_difference_is_welchs_if_each_chunk_is_a_cluster():
    from scipy.stats import ttest_ind

    random = np.random.default_rng(1)
    values, first = random.normal(size=80), np.arange(80) < 30
    estimate = difference(values, first.tolist(), Clusters(tuple(map(str, range(80)))))
    ends = ttest_ind(values[first], values[~first], equal_var=False).confidence_interval(0.95)
    assert estimate.value == pytest.approx(values[first].mean() - values[~first].mean())
    assert (estimate.low, estimate.high) == pytest.approx((ends.low, ends.high))


def test_clusters_are_texts_or_runs_of_a_book():
    many = clusters_of(texts(20, 5))
    assert (len(set(many.names)), many.about) == (20, None)
    book = clusters_of(texts(1, 200))
    assert len(set(book.names)) == 40
    assert "only of this text" in book.about
    assert len(set(clusters_of(texts(4, 100)).names)) == 40
    # A few texts of one chunk each are a few clusters.
    assert set(clusters_of(texts(3, 1)).names) == {"text 0", "text 1", "text 2"}
