"""Rows that detectors flag: the false-discovery rate is controlled in simulations."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from analysis.arm import DetectorColumn, LoadedArm
from analysis.auc_cells import PreparedCohort
from analysis.decisions.flagged import benjamini_hochberg, clustered_share, flagged_rows, p_values
from analysis.findings import table_schema
from analysis.settings import AnalysisSettings
from analysis.validate.ranking import cohort_models
from tests.detect.ground_truths import make_truth

LEVEL = 0.1


class Pool:
    """Groups of 1 to `largest` rows on one side; rows of a group have similar scores."""

    def __init__(self, draw, groups: int, *, members: float, largest: int, like: float, shift=2.5):
        sizes = draw.integers(1, largest + 1, groups)
        self.group = np.repeat(np.arange(groups), sizes)
        self.member = np.repeat(draw.random(groups) < members, sizes)
        self.test = np.repeat(draw.random(groups) < 0.75, sizes)
        shared = np.repeat(draw.standard_normal(groups), sizes)
        own = draw.standard_normal(len(self.group))
        self.scores = np.sqrt(like) * shared + np.sqrt(1 - like) * own + shift * self.member
        self.dataset = np.full(len(self.group), "one", dtype=object)

    @property
    def names(self):
        return np.array([f"g{number}" for number in self.group], dtype=object)

    def p_values(self):
        calibrates = ~self.member & ~self.test
        return p_values(self.scores, self.dataset, self.names, calibrates)


def flag(pool: Pool, p):
    """Return which test rows are flagged, as in `flagged_rows`."""
    flagged = np.zeros(len(p), bool)
    flagged[pool.test] = benjamini_hochberg(p[pool.test].tolist(), LEVEL)
    return flagged


@pytest.mark.parametrize("members", [0.0, 0.35, 0.7])
@pytest.mark.parametrize(("largest", "like"), [(1, 0.0), (6, 0.5), (6, 1.0)])
def test_false_discovery_rate_is_controlled(members, largest, like):
    """With and without groups, on a random split of the rows as in a run."""
    draw = np.random.default_rng([largest, int(10 * like), int(100 * members)])
    shares, hits = [], []
    for _ in range(150):
        pool = Pool(draw, 340, members=members, largest=largest, like=like)
        flagged = flag(pool, pool.p_values())
        shares.append((flagged & ~pool.member).sum() / max(1, flagged.sum()))
        hits.append((flagged & pool.member).sum())
    assert np.mean(shares) <= LEVEL + 3 * np.std(shares) / np.sqrt(len(shares))
    if members:
        assert np.mean(hits) > 10  # A rule that flags no rows satisfies any rate.


def test_share_interval_covers_the_true_share_at_the_threshold():
    """The truth is the share of non-members above the threshold that the rule chose."""
    for largest, like in ((1, 0.0), (6, 1.0)):
        draw = np.random.default_rng(largest)
        covered = []
        for _ in range(100):
            pool = Pool(draw, 700, members=0.4, largest=largest, like=like, shift=2.2)
            p = pool.p_values()
            flagged = flag(pool, p)
            if not flagged.any():
                continue
            threshold = pool.scores[flagged].min()
            outside, inside = 0.6 * norm.sf(threshold), 0.4 * norm.sf(threshold - 2.2)
            truth = outside / (outside + inside)
            share = clustered_share(
                ~pool.member[flagged], pool.names[flagged].tolist(), confidence=0.95
            )
            assert share.low <= share.value <= share.high
            covered.append(share.low <= truth <= share.high)
        assert len(covered) > 80
        assert np.mean(covered) > 0.9


def test_share_interval_is_never_a_point():
    none = clustered_share(np.zeros(20, bool), [str(at) for at in range(20)], confidence=0.95)
    assert (none.value, none.low) == (0, 0)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 20))
    alike = clustered_share(np.zeros(20, bool), ["one"] * 20, confidence=0.95)
    assert alike.high == pytest.approx(0.975)
    full = clustered_share(np.ones(3, bool), list("abc"), confidence=0.95)
    assert (full.value, full.high) == (1, 1)
    assert np.isnan(clustered_share(np.zeros(0, bool), [], confidence=0.95)[:3]).all()


def by_hand(arm: LoadedArm, detector: str, level: float) -> tuple[int, int, float]:
    """Return the flagged rows, the non-members among them and the smallest p, by plain loops."""
    column = arm.index[DetectorColumn(detector, arm.arm.defaults[detector])]
    rows = range(len(arm.examples))
    pairs = []
    for row in rows:
        if not arm.test[row] or np.isnan(arm.scores[row, column]):
            continue
        if arm.member[row] and not arm.copies[row]:
            continue
        groups: dict[str, list[bool]] = {}
        for other in rows:
            same = arm.dataset[other] == arm.dataset[row]
            unseen = not arm.member[other] and not arm.test[other]
            if same and unseen and not np.isnan(arm.scores[other, column]):
                high = arm.scores[other, column] >= arm.scores[row, column]
                groups.setdefault(arm.group[other], []).append(bool(high))
        p = (1 + sum(sum(flags) / len(flags) for flags in groups.values())) / (1 + len(groups))
        pairs.append((p, bool(arm.member[row])))
    pairs.sort(key=lambda pair: pair[0])
    most = max(
        (k for k, (p, _) in enumerate(pairs, 1) if p <= level * k / len(pairs) + 1e-12), default=0
    )
    picked = [member for p, member in pairs if most and p <= pairs[most - 1][0]]
    return len(picked), picked.count(False), min(p for p, _ in pairs)


@pytest.fixture(scope="module")
def truth_and_models():
    truth = make_truth(30, arms=(16,), datasets=("news", "books"), empty=True)
    return truth, {arm.cohort.model: arm for arm in cohort_models(truth)}


def test_rows_of_an_arm_match_a_manual_count(truth_and_models):
    _, by_model = truth_and_models
    arm = by_model["contaminated"]
    settings = AnalysisSettings(false_discovery_rate=0.5)
    rows = flagged_rows(PreparedCohort.prepare(arm.cohort, arm.loaded, [], settings))
    assert {row["dataset"] for row in rows} == {"all", "news", "books"}
    assert set(rows[0]) == set(table_schema("flagged", ["copies"]).names)
    (loaded,) = arm.loaded
    pooled = {row["detector"]: row for row in rows if row["dataset"] == "all"}
    assert set(pooled) == set(loaded.detectors)
    assert any(row["flagged"] for row in pooled.values())
    for name, row in pooled.items():
        flagged, wrong, smallest = by_hand(loaded, name, 0.5)
        assert (row["flagged"], row["flagged_nonmembers"]) == (flagged, wrong), name
        assert row["smallest_p"] <= smallest + 1e-12
        assert row["setting"] == loaded.arm.defaults[name]
        assert row["members_found"] == pytest.approx((flagged - wrong) / row["n_members"])
        if flagged:
            assert row["low"] <= row["false_share"] <= row["high"]
        else:
            assert np.isnan(row["false_share"])
    # The empty text has no score and is counted as unscored.
    assert pooled["loss"]["unscored"] + pooled["loss"]["n_members"] + pooled["loss"][
        "n_nonmembers"
    ] == int((loaded.test & ~(loaded.member & (loaded.copies == 0))).sum())


def test_members_without_copies_are_apart_or_non_members(truth_and_models):
    truth, by_model = truth_and_models
    arm = by_model["contaminated"]
    (loaded,) = arm.loaded
    gone = np.flatnonzero(loaded.member & loaded.test)[:4]
    copies = loaded.copies.copy()
    copies[gone] = 0
    changed = [replace(loaded, copies=copies)]
    counts = {}
    for treatment in ("apart", "nonmember"):
        settings = AnalysisSettings(zero_copies=treatment)
        rows = flagged_rows(PreparedCohort.prepare(arm.cohort, changed, [], settings))
        (row,) = [row for row in rows if row["detector"] == "loss" and row["dataset"] == "all"]
        counts[treatment] = (row["n_members"], row["n_nonmembers"])
    before = int((loaded.member & loaded.test).sum())
    assert counts["apart"][0] == counts["nonmember"][0] <= before - 3
    assert counts["nonmember"][1] - counts["apart"][1] >= 3


def test_seeds_are_flagged_separately_and_counted_together(truth_and_models):
    _, by_model = truth_and_models
    arm = by_model["contaminated"]
    (loaded,) = arm.loaded
    twice = [loaded, replace(loaded, arm=replace(loaded.arm, seed=1))]
    single, double = (
        flagged_rows(PreparedCohort.prepare(arm.cohort, seeds, [], AnalysisSettings()))
        for seeds in ([loaded], twice)
    )
    for first, second in zip(single, double, strict=True):
        assert second["flagged"] == 2 * first["flagged"]
        assert second["n_seeds"] == 2
        # Repeated rows add no information.
        if first["flagged"]:
            assert second["high"] - second["low"] >= 0.99 * (first["high"] - first["low"])
