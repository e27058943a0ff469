"""Coverage of a dose law's intervals, and the verdicts on its predictions, with known truth.

python -m scripts.calibration.dose_law                        # 500 studies a line: some minutes
python -m scripts.calibration.dose_law --studies 50

A study has six arms and one that is left out, 93 members and 450 non-members on `test`, and scores
with normal errors. Half of a row's variance is shared by all arms and seeds; sides and copies are
assigned again in each seed. A seed moves all AUCs of an arm by one amount on the probit scale; half
of its variance is the same in all arms. The deviation is that of an AUC of 0.70.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import Floats
from analysis.intervals.rows import Rows
from scripts.studies.laws import (
    LAWS,
    Design,
    DoseCells,
    FittedLaw,
    dose_cells,
    fit_law,
    join_cells,
)
from scripts.studies.prediction import Verdict, judge_prediction, observed_aucs, predict_aucs

ARMS = (
    (1.05e6, 5e-4), (1.05e6, 1e-3), (1.05e6, 2e-3), (2.1e6, 2e-3), (4.12e6, 1e-3), (4.12e6, 2e-3),
)  # fmt: skip
"""Parameters and learning rate of the fitted arms."""
LEFT_OUT = (15.4e6, 2e-3)
MEMBERS = {1: 28, 2: 23, 4: 18, 8: 14, 16: 5, 32: 5}
"""Members in each seed by number of copies."""
NONMEMBERS = 450
TERMS = (0.23, 0.8, 0.25, 0.5)
"""Of the power law; AUC 0.70 is reached near 2 copies at 1.05 M and 2e-3."""
PREDICTED = (1, 2, 4, 8)
TRUE_LAW = "power law"


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What the simulated studies are like."""

    deviation: float
    """Of the true AUC over seeds, at 0.70."""
    seeds: int = 8
    off: float = 0.0
    """The left-out arm's AUCs are this much lower than the law's."""


class StudyResult(NamedTuple):
    """The law of one study, and what became of its prediction."""

    law: FittedLaw
    verdict: Verdict


def simulate_study(truth: Truth, random: np.random.Generator, law: str = TRUE_LAW) -> StudyResult:
    """Simulate a study; fit a law to it and judge its prediction."""
    copies = np.repeat([0, *MEMBERS], [NONMEMBERS, *MEMBERS.values()])
    dealt = np.stack([random.permutation(copies) for _ in range(truth.seeds)])
    texts = random.normal(size=len(copies))
    of_seed = random.normal(size=truth.seeds)
    arms = []
    for parameters, rate in (*ARMS, LEFT_OUT):
        off = truth.off if (parameters, rate) == LEFT_OUT else 0.0
        luck = np.sqrt(0.5) * (of_seed + random.normal(size=truth.seeds))
        moved = truth.deviation * luck / norm.pdf(ndtri(0.7))
        probit = _probits(dealt, parameters, rate, off) + np.where(dealt > 0, moved[:, None], 0.0)
        scores = np.sqrt(0.5) * (texts + random.normal(size=dealt.shape)) + np.sqrt(2) * probit
        arms.append(_cells(dealt, scores, parameters, rate))
    fitted = fit_law(join_cells(arms[:-1]), law)
    parameters, rate = LEFT_OUT
    prediction = predict_aucs("simulated", fitted, PREDICTED, parameters=parameters, rate=rate)
    observed = observed_aucs(arms[-1], PREDICTED, place="simulated")
    return StudyResult(fitted, judge_prediction(prediction, observed, arms[-1].seeds))


def _probits(copies: Floats, parameters: float, rate: float, off: float) -> Floats:
    """Return the probit of the true AUC of each row's number of copies; 0 of none."""
    design = Design.of(np.maximum(copies, 1), parameters, rate)
    probit = LAWS[TRUE_LAW].probit(np.array(TERMS), design)
    return np.where(copies > 0, ndtri(ndtr(probit) - off) if off else probit, 0.0)


def _cells(dealt: Floats, scores: Floats, parameters: float, rate: float) -> DoseCells:
    seeds, texts = dealt.shape
    member = dealt.ravel() > 0
    rows = Rows(
        seed=np.repeat(np.arange(seeds), texts),
        dataset=np.full(dealt.size, "texts", dtype=object),
        group=np.tile(np.arange(texts), seeds),
        member=member,
        nonmember=~member,
    )
    return dose_cells(rows, scores.ravel(), dealt.ravel(), parameters=parameters, rate=rate)


def summarise(truth: Truth, results: list[StudyResult]) -> Iterator[str]:
    """Yield coverage of each term and of predicted minus observed, its width, and verdicts."""
    if results[0].law.name == TRUE_LAW:
        for term, value in zip(LAWS[TRUE_LAW].terms, TERMS, strict=True):
            yield _coverage(term, [result.law.estimates()[term] for result in results], value)
    gaps = [result.verdict.difference for result in results]
    yield _coverage("predicted - observed", gaps, truth.off)
    yield f"misfit: {np.mean([result.law.misfit for result in results]):.2f}"
    for verdict in ("predicted", "refuted"):
        share = np.mean([verdict in result.verdict.text for result in results])
        yield f"{verdict}: {share:.1%}"


def _coverage(name: str, estimates: Sequence[Estimate], truth: float) -> str:
    covered = np.mean([estimate.contains(truth) for estimate in estimates])
    half = np.mean([estimate.high - estimate.value for estimate in estimates])
    bias = np.mean([estimate.value for estimate in estimates]) - truth
    return f"{name}: covered {covered:.1%}, half-width {half:.3f}, bias {bias:+.3f}"


CASES = (
    (Truth(deviation=0.02), TRUE_LAW),
    (Truth(deviation=0.035), TRUE_LAW),
    (Truth(deviation=0.035, seeds=5), TRUE_LAW),
    (Truth(deviation=0.02, off=0.05), TRUE_LAW),
    (Truth(deviation=0.035, off=0.05), TRUE_LAW),
    (Truth(deviation=0.035), "line"),
    (Truth(deviation=0.035), "power by size"),
)


def main() -> None:
    """Simulate each case and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=500)
    studies = parser.parse_args().studies
    for truth, law in CASES:
        key = truth.seeds, round(1e4 * truth.deviation)
        results = [
            simulate_study(truth, np.random.default_rng([*key, study]), law)
            for study in range(studies)
        ]
        print(f"{truth}, {law}", *summarise(truth, results), sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
