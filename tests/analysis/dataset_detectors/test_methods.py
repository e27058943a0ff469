"""Dataset-level detectors: their power on seen rows and their level on unseen rows."""

import math

import numpy as np
import pytest
from scipy.stats import kstest, spearmanr, ttest_1samp

from analysis.dataset_detectors.detector import (
    asked_dataset_detectors,
    dataset_detector_names,
    get_dataset_detector,
    holm,
)
from analysis.dataset_detectors.methods.dataset_inference import DETECTOR as INFERENCE
from analysis.dataset_detectors.methods.ensemble import DETECTOR as ENSEMBLE
from analysis.dataset_detectors.methods.exchangeability import DETECTOR as EXCHANGEABILITY
from analysis.dataset_detectors.methods.paraphrase_test import DETECTOR as PARAPHRASES
from analysis.dataset_detectors.methods.prism import DETECTOR as PRISM
from analysis.dataset_detectors.methods.prism import drawn_groups, spearman
from inject.errors import InputError
from tests.analysis.dataset_detectors.evidence import order_table, simulated
from tests.analysis.oracles import auc

SIMULATIONS = 150


def uniform(p_values: list[float]) -> bool:
    """Return whether p-values look uniform (a test of level 0.001) with few below 0.05."""
    return kstest(p_values, "uniform").pvalue > 0.001 and np.mean(np.array(p_values) < 0.05) < 0.12


@pytest.mark.parametrize("group", [1, 4])
def test_dataset_inference_keeps_its_level_on_unseen_data(group):
    members, control = [], []
    for number in range(SIMULATIONS):
        random = np.random.default_rng([number, group])
        findings = INFERENCE.find(simulated(random, group=group, rows=60, detectors=3))
        members.append(findings[0].p_value)
        control.append(findings[1].p_value)
    assert uniform(members)
    assert uniform(control)


def test_dataset_inference_detects_members_but_not_its_control():
    findings = INFERENCE.find(simulated(np.random.default_rng(0), effect=0.8))
    assert findings[0].p_value < 1e-4
    assert findings[1].p_value > 0.01
    assert findings[0].n == 80


def test_dataset_inference_learns_only_from_tune_rows():
    evidence = simulated(np.random.default_rng(3), effect=0.5)
    changed = {name: scores.copy() for name, scores in evidence.scores.items()}
    for scores in changed.values():
        scores[evidence.test] = 0.0
    other = simulated(np.random.default_rng(3), scores=changed)
    assert "all values are equal" in INFERENCE.find(other)[0].note


def test_ensemble_value_is_the_auc_of_held_out_rows():
    evidence = simulated(np.random.default_rng(1), effect=1.0, detectors=1)
    (finding,) = ENSEMBLE.find(evidence)
    scores, test = evidence.scores["d0"], evidence.test
    # With one detector the fit keeps its order, up to ties beyond the tuning rows' range.
    plain = auc(scores[test & evidence.seen], scores[test & evidence.unseen])
    assert finding.value == pytest.approx(plain, abs=0.02)
    assert finding.low < finding.value < finding.high


def test_ensemble_is_at_chance_on_unseen_data():
    values = [
        ENSEMBLE.find(simulated(np.random.default_rng(number)))[0].value for number in range(60)
    ]
    assert abs(np.mean(values) - 0.5) < 0.02, "fitted and reported on different rows"


def test_exchangeability_is_the_papers_t_test():
    gains = [3.0, -1.0, 2.0, 0.5, 1.5]
    findings = EXCHANGEABILITY.find(
        simulated(np.random.default_rng(0), orders=order_table({"members": gains}))
    )
    expected = ttest_1samp(gains, 0, alternative="greater")
    assert (findings[0].value, findings[0].p_value) == pytest.approx(tuple(expected))
    assert findings[0].n == 5
    assert "n too small" in findings[1].note, "the control has no shards here"


def test_exchangeability_keeps_its_level_when_no_order_was_seen():
    """A model may prefer any order: the p-value only assumes exchangeable rows."""
    p_values = []
    for number in range(SIMULATIONS):
        random = np.random.default_rng(number)
        texts = random.normal(size=(12, 5))
        weights = random.normal(size=(5, 5))
        gains = []
        for shard in texts:

            def preference(order: np.ndarray, weights: np.ndarray = weights) -> float:
                return float(sum(weights[at, at] * value for at, value in enumerate(order)))

            shuffled = [preference(random.permutation(shard)) for _ in range(8)]
            gains.append(preference(shard) - np.mean(shuffled))
        table = order_table({"members": gains})
        findings = EXCHANGEABILITY.find(simulated(random, orders=table))
        p_values.append(findings[0].p_value)
    assert uniform(p_values)


def test_paraphrase_test_is_a_paired_t_test_by_group():
    random = np.random.default_rng(0)
    texts, others = random.normal(1.0, 1, 160), random.normal(0, 1, 160)
    evidence = simulated(random, paraphrase_scores={"loss": (texts, others)})
    findings = {finding.rows: finding for finding in PARAPHRASES.find(evidence)}
    used = evidence.seen & evidence.test
    expected = ttest_1samp((texts - others)[used], 0, alternative="greater")
    assert (findings["members"].value, findings["members"].p_value) == pytest.approx(
        tuple(expected)
    )
    assert findings["members"].n == 40
    assert findings["non-members"].note == "the control"


def test_paraphrase_test_keeps_its_level_when_texts_and_paraphrases_are_alike():
    p_values = []
    for number in range(SIMULATIONS):
        random = np.random.default_rng(number)
        pair = (random.normal(size=160), random.normal(size=160))
        findings = PARAPHRASES.find(simulated(random, group=4, paraphrase_scores={"loss": pair}))
        p_values.append(findings[0].p_value)
    assert uniform(p_values)


def test_prism_value_is_the_rank_correlation():
    random = np.random.default_rng(0)
    target = random.normal(size=480)
    reference = target + random.normal(size=480)
    evidence = simulated(random, rows=240, target_scores=target, reference_scores=reference)
    finding = PRISM.find(evidence)[0]
    used = evidence.seen & evidence.test
    assert finding.value == pytest.approx(spearmanr(target[used], reference[used]).statistic)
    assert finding.low < finding.value < finding.high
    assert math.isnan(finding.p_value)


def test_prism_intervals_cover_the_truth():
    """The interval of independent values covers 0 about as often as stated."""
    covered = []
    for number in range(SIMULATIONS):
        random = np.random.default_rng(number)
        pair = random.normal(size=(2, 480))
        evidence = simulated(random, rows=240, target_scores=pair[0], reference_scores=pair[1])
        finding = PRISM.find(evidence)[0]
        covered.append(finding.low <= 0 <= finding.high)
    assert 0.88 <= np.mean(covered) <= 0.99


def test_unit_weights_give_the_plain_correlation_with_ties():
    first, second = np.array([1.0, 2, 2, 3, 5]), np.array([2.0, 1, 1, 4, 4])
    correlations = spearman(first, second, np.ones((5, 1)))
    assert correlations[0] == pytest.approx(spearmanr(first, second).statistic)


def test_resampled_groups_are_complete():
    names = [str(row // 3) for row in range(18)]
    weights = drawn_groups(names, replicates=50, seed=1, stratum="members")
    assert (weights[:, 0] == 1).all()
    assert (weights[0::3] == weights[1::3]).all()
    assert (weights[0::3] == weights[2::3]).all()
    assert (weights.sum(axis=0) == 18).all()
    assert weights[:, 1:].std() > 0.5
    again = drawn_groups(names, replicates=50, seed=1, stratum="members")
    assert (again == weights).all()
    for seed, stratum in ((2, "members"), (1, "non-members")):
        assert (drawn_groups(names, replicates=50, seed=seed, stratum=stratum) != weights).any()


def test_holm_is_the_step_down_rule():
    adjusted = holm(np.array([0.01, 0.04, np.nan, 0.03]))
    assert adjusted[[0, 1, 3]] == pytest.approx([0.03, 0.06, 0.06])
    assert math.isnan(adjusted[2]), "a detector without a p-value does not count"
    assert holm(np.array([0.9, 0.8])).max() == 1.0


def test_detectors_are_found_by_name_and_declare_their_assumptions():
    names = dataset_detector_names()
    assert names == (
        "dataset_inference", "ensemble", "exchangeability", "paraphrase_test", "prism"
    )  # fmt: skip
    for detector in asked_dataset_detectors("all"):
        assert detector.name in names
        assert len(detector.assumption.split()) > 5
        assert detector.source
    with pytest.raises(InputError, match="Did you mean 'prism'"):
        get_dataset_detector("prsm")
