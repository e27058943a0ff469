"""The law of doses: terms from exact AUCs, the jackknife, and what a fit leaves out."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import t

from analysis.intervals.rows import Rows
from inject.errors import InputError
from scripts.calibration.dose_law import Truth, simulate_study
from scripts.studies.laws import (
    LAWS,
    Design,
    DoseCells,
    dose_cells,
    fit_law,
    jackknife_half,
    join_cells,
)
from tests.analysis.oracles import auc as auc_by_pairs

PLACES = ((1e6, 5e-4), (1e6, 2e-3), (2e6, 2e-3), (4e6, 1e-3), (4e6, 2e-3))
COPIES = (1, 2, 4, 8, 16)
TERMS = {
    "power law": (0.25, 0.8, 0.3, 0.5),
    "line": (0.1, 0.3, 0.2, 0.4),
    "power by size": (0.25, 0.8, 0.3, 0.5, -0.1),
}


def exact_cells(name: str = "power law", terms=None, *, seeds: int = 5) -> DoseCells:
    """Return the AUCs that a law expects, the same under every seed."""
    places = np.repeat(np.array(PLACES), len(COPIES), axis=0)
    copies = np.tile(np.array(COPIES, dtype=float), len(PLACES))
    design = Design.of(copies, places[:, 0], places[:, 1])
    auc = ndtr(LAWS[name].probit(np.array(terms or TERMS[name]), design))
    return DoseCells(
        seeds=tuple(range(seeds)),
        parameters=places[:, 0],
        rate=places[:, 1],
        copies=copies,
        auc=np.tile(auc, (seeds, 1)),
        variance=np.full(len(copies), 0.02**2),
    )


def noisy(cells: DoseCells, deviation: float, draw: int = 0) -> DoseCells:
    noise = np.random.default_rng(draw).normal(scale=deviation, size=cells.auc.shape)
    return replace(cells, auc=np.clip(cells.auc + noise, 0.0, 1.0))


@pytest.mark.parametrize("name", LAWS)
def test_exact_aucs_give_the_terms_of_each_law(name):
    law = fit_law(exact_cells(name), name)
    assert law.terms == pytest.approx(TERMS[name], abs=1e-5)
    assert law.without == pytest.approx(np.tile(TERMS[name], (5, 1)), abs=1e-5)
    assert law.misfit == pytest.approx(0.0, abs=1e-8)
    estimate = law.estimates()["ν"]
    assert (estimate.value, estimate.low, estimate.seeds) == (
        pytest.approx(TERMS[name][2], abs=1e-5),
        pytest.approx(estimate.high, abs=1e-5),
        5,
    )


def test_rival_fits_worse_than_the_law_that_made_the_aucs():
    cells = exact_cells()
    misfits = {name: fit_law(cells, name).misfit for name in LAWS}
    assert misfits["line"] > 100 * misfits["power law"]
    # The power law is the special case κ = 0.
    assert fit_law(cells, "power by size").terms[4] == pytest.approx(0.0, abs=1e-5)


def test_saturated_aucs_are_left_out_and_counted():
    exact = exact_cells()
    saturated = exact.auc[0] > 0.98
    assert saturated.sum() == 4
    wrong = replace(exact, auc=np.where(saturated, 0.999, exact.auc))
    law = fit_law(wrong)
    assert (law.fitted, law.left_out) == (21, 4)
    assert law.terms == pytest.approx(TERMS["power law"], abs=1e-5)


def test_cell_without_a_difference_between_rows_is_left_out():
    exact = exact_cells()
    first = np.arange(len(exact.copies)) == 0
    tied = replace(
        exact,
        auc=np.where(first, 0.5, exact.auc),
        variance=np.where(first, 0.0, exact.variance),
    )
    assert fit_law(tied).terms == pytest.approx(TERMS["power law"], abs=1e-5)


def test_auc_below_one_half_pulls_the_law_down():
    exact = exact_cells()
    assert exact.auc[0, 0] < 0.57
    below = exact.auc.copy()
    below[:, 0] = 0.4
    law = fit_law(replace(exact, auc=below))
    assert np.isfinite(law.terms).all()
    assert law.terms[0] < TERMS["power law"][0]


def test_imprecise_auc_weighs_nothing():
    exact = exact_cells()
    first = np.arange(len(exact.copies)) == 0
    cells = replace(
        exact,
        auc=np.where(first, 0.9, exact.auc),
        variance=np.where(first, 1e6, exact.variance),
    )
    assert fit_law(cells).terms == pytest.approx(TERMS["power law"], abs=1e-4)


def test_law_of_aucs_at_chance_expects_chance():
    cells = noisy(exact_cells(terms=(0.0, 0.8, 0.0, 0.0)), 0.01)
    law = fit_law(cells)
    probit, _ = law.probits(Design.of(COPIES, 2e6, 1e-3))
    assert ndtr(probit) == pytest.approx(0.5, abs=0.02)


def test_jackknife_of_a_mean_is_students_t():
    values = np.random.default_rng(1).normal(size=8)
    without = np.array([np.delete(values, at).mean() for at in range(8)])
    expected = t.ppf(0.975, 7) * values.std(ddof=1) / np.sqrt(8)
    assert jackknife_half(without, 0.95) == pytest.approx(expected)


def test_jackknife_fits_again_without_each_seed():
    cells = noisy(exact_cells(), 0.03)
    law = fit_law(cells)
    used = cells.part(cells.usable)
    for seed in range(5):
        others = np.delete(used.auc, seed, axis=0)
        # The weights remain those of all seeds.
        reduced = replace(used, seeds=tuple(range(4)), auc=others)
        slopes = [pdf_at_mean(auc) for auc in (used.auc, others)]
        weighted = replace(reduced, variance=used.variance * (slopes[1] / slopes[0]) ** 2)
        assert fit_law(weighted).terms == pytest.approx(law.without[seed], abs=1e-4)


def pdf_at_mean(auc):
    from scipy.special import ndtri
    from scipy.stats import norm

    return norm.pdf(ndtri(auc.mean(axis=0)))


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (exact_cells(seeds=2), "a law of 2 seeds has no interval"),
        (exact_cells().part(exact_cells().parameters == 1e6), "1 model sizes and 2 learning rates"),
        (exact_cells().part(exact_cells().rate == 2e-3), "3 model sizes and 1 learning rates"),
        (exact_cells().part(exact_cells().copies == 1).part(np.arange(5) < 4), "4 AUCs"),
    ],
)
def test_law_without_enough_arms_or_seeds_is_refused(cells, message):
    with pytest.raises(InputError, match=message):
        fit_law(cells)


def test_arms_of_different_seeds_are_not_joined():
    cells = exact_cells()
    with pytest.raises(InputError, match="differ in their seeds"):
        join_cells([cells, replace(cells, seeds=(1, 2, 3, 4, 5))])
    both = join_cells([cells, cells])
    assert both.auc.shape == (5, 50)
    assert both.copies.tolist() == cells.copies.tolist() * 2


def simulated_rows(seeds: int = 3):
    """Return rows of two datasets in groups of two, their scores and copies."""
    random = np.random.default_rng(3)
    n = 160
    pairs = np.repeat([0, 1, 2, 7], [50, 15, 14, 1])
    copies = np.repeat([random.permutation(pairs) for _ in range(seeds)], 2)
    member = (copies > 0) | (random.random(len(copies)) < 0.1)
    rows = Rows(
        seed=np.repeat([4, 5, 9], n),
        dataset=np.tile(np.repeat(np.array(["news", "facts"], dtype=object), n // 2), seeds),
        group=np.tile(np.arange(n) % (n // 2) // 2, seeds),
        member=member,
        nonmember=~member,
    )
    scores = random.normal(size=len(copies)) + 0.4 * copies
    scores[3] = np.nan
    return rows, scores, copies


def pooled_auc(rows, scores, copies, count, keep):
    """Return the AUC of members of some copies by loops, datasets weighted by members."""
    total, weight = 0.0, 0
    for dataset in ("news", "facts"):
        own = keep & (rows.dataset == dataset) & np.isfinite(scores)
        inside = scores[own & rows.member & (copies == count)]
        outside = scores[own & rows.nonmember]
        total += len(inside) * auc_by_pairs(inside, outside)
        weight += len(inside)
    return total / weight


def test_cells_of_an_arm_match_loops_over_pairs():
    rows, scores, copies = simulated_rows()
    cells = dose_cells(rows, scores, copies, parameters=1e6, rate=1e-3)
    # 6 members with 7 copies over all seeds are too few; members without a copy are on no side.
    assert cells.copies.tolist() == [1, 2]
    assert cells.seeds == (4, 5, 9)
    for s, seed in enumerate(cells.seeds):
        for c, count in enumerate((1, 2)):
            expected = pooled_auc(rows, scores, copies, count, rows.seed == seed)
            assert cells.auc[s, c] == pytest.approx(expected)


def test_variance_of_a_cell_matches_leaving_out_groups():
    rows, scores, copies = simulated_rows()
    cells = dose_cells(rows, scores, copies, parameters=1e6, rate=1e-3)
    means = []
    for dataset in ("news", "facts"):
        for group in range(40):
            keep = ~((rows.dataset == dataset) & (rows.group == group))
            aucs = [
                pooled_auc(rows, scores, copies, 1, keep & (rows.seed == seed))
                for seed in cells.seeds
            ]
            means.append(np.mean(aucs))
    jackknife = (len(means) - 1) * np.var(means)
    assert cells.variance[0] == pytest.approx(jackknife, rel=0.15)


def test_count_that_a_seed_lacks_has_no_cell():
    rows, scores, copies = simulated_rows()
    gone = (rows.seed == 9) & (copies == 2)
    cells = dose_cells(rows, np.where(gone, np.nan, scores), copies, parameters=1e6, rate=1e-3)
    assert cells.copies.tolist() == [1]


def test_arm_with_too_few_members_of_each_count_is_refused():
    rows, scores, copies = simulated_rows()
    few = np.where(copies == 7, 7, 0)
    for unusable in (few, np.zeros_like(copies)):
        with pytest.raises(InputError, match="no number of copies has 10 members with a score"):
            dose_cells(rows, scores, unusable, parameters=1e6, rate=1e-3)
    with pytest.raises(InputError, match="no number of copies"):
        dose_cells(rows, np.full(len(scores), np.nan), copies, parameters=1e6, rate=1e-3)


def test_simulated_law_is_covered_and_its_prediction_holds():
    """The long simulation is `scripts.calibration.dose_law`."""
    studies = [
        simulate_study(Truth(deviation=0.03), np.random.default_rng([7, n])) for n in range(20)
    ]
    terms = (0.23, 0.8, 0.25, 0.5)
    for term, value in zip(LAWS["power law"].terms, terms, strict=True):
        covered = [study.law.estimates()[term].contains(value) for study in studies]
        assert np.mean(covered) >= 0.8, term
    assert np.mean([study.verdict.difference.contains(0.0) for study in studies]) >= 0.8
    assert np.mean([study.verdict.text == "predicted" for study in studies]) >= 0.6


def test_simulated_arm_below_the_law_refutes_it():
    truth = Truth(deviation=0.03, off=0.08)
    studies = [simulate_study(truth, np.random.default_rng([8, n])) for n in range(10)]
    assert np.mean([study.verdict.text == "refuted" for study in studies]) >= 0.7
    assert np.mean([study.verdict.difference.contains(0.08) for study in studies]) >= 0.7
