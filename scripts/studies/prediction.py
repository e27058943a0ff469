"""Predictions of an arm that a law was not fitted to, and their verdicts.

A verdict is on predicted minus observed AUC, the mean over the predicted numbers of copies. The
interval is the jackknife's over seeds, which the fitted arms and the left-out one share: without a
seed, the law is fitted and the left-out arm observed without it. If the left-out arm has other
seeds, both variances are added, with the degrees of freedom of the smaller number of seeds; that is
too wide if some seeds are shared.

In simulations (500 studies of eight seeds whose AUCs deviate by 0.02 / 0.035) the interval is
±0.028 / ±0.033 and covers 94 / 95 %; a true law is predicted in 97 / 88 %, and one that is 0.05 off
is refuted in 91 / 77 %. With five seeds at 0.035: ±0.047, 92 %, predicted in 49 %.
Under that law at 0.035 the line is refuted in 18 % (it misses by 0.016, with a misfit of 3.2 in
place of 1.1), and the power by size, which is right as well, is predicted in 47 % (±0.047).
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from analysis.intervals.clustered import FROM_SEEDS
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import Floats
from inject.errors import InputError
from inject.settings import PositiveInt, Settings
from scripts.studies.laws import (
    Design,
    DoseCells,
    FittedLaw,
    jackknife_error,
    jackknife_half,
)

MARGIN = 0.06
"""A prediction whose error surely is within this margin counts as predicted."""


class Prediction(Settings):
    """The AUC of one detector in an arm that was left out, under one law."""

    detector: str
    """The detector, with its default setting."""
    law: str
    """One of `LAWS`."""
    terms: dict[str, tuple[float, float, float]]
    """Value and interval of each term of the law."""
    fitted: PositiveInt
    """AUCs of the fit."""
    left_out: Annotated[int, Field(ge=0)]
    """AUCs left out since they are saturated, or since their rows do not differ."""
    misfit: Annotated[float, Field(ge=0)]
    """Weighted mean square of the residuals."""
    copies: tuple[PositiveInt, ...]
    """Predicted numbers of copies."""
    seeds: tuple[int, ...]
    """Of the fitted arms."""
    auc: tuple[float, ...]
    """By number of copies."""
    low: tuple[float, ...]
    """Of the law's curve: the seeds of the left-out arm vary as well."""
    high: tuple[float, ...]
    without: tuple[tuple[float, ...], ...]
    """The AUCs without each seed."""


class Verdict(NamedTuple):
    """What became of a prediction."""

    difference: Estimate
    """Predicted minus observed AUC, the mean over numbers of copies."""
    text: str
    """`predicted`, `refuted`, `predicted and refuted` (by a small amount, surely), or `open`."""
    paired: bool
    """Whether both sides have the same seeds."""


def predict_aucs(
    detector: str,
    law: FittedLaw,
    copies: Sequence[int],
    *,
    parameters: float,
    rate: float,
    confidence: float = 0.95,
) -> Prediction:
    """Return the prediction of a law for another arm.

    Args:
        detector: whose AUCs the law was fitted to.
        law: fitted without the arm.
        copies: numbers of copies to predict.
        parameters: of the arm's model.
        rate: its learning rate.
        confidence: of the intervals.
    """
    from scipy.special import ndtr

    probit, without = law.probits(Design.of(copies, parameters, rate))
    half = jackknife_half(without, confidence)
    terms = law.estimates(confidence)
    return Prediction(
        detector=detector,
        law=law.name,
        terms={term: (each.value, each.low, each.high) for term, each in terms.items()},
        fitted=law.fitted,
        left_out=law.left_out,
        misfit=law.misfit,
        copies=tuple(copies),
        seeds=law.seeds,
        auc=tuple(ndtr(probit).tolist()),
        low=tuple(ndtr(probit - half).tolist()),
        high=tuple(ndtr(probit + half).tolist()),
        without=tuple(tuple(seed) for seed in ndtr(without).tolist()),
    )


def observed_aucs(cells: DoseCells, copies: Sequence[int], *, place: str) -> Floats:
    """Return the AUCs of one arm at some numbers of copies, [S, D].

    Raises:
        InputError: when the arm lacks one; names the arm as `place`.
    """
    places = {int(count): at for at, count in enumerate(cells.copies.tolist())}
    if missing := [count for count in copies if count not in places]:
        raise InputError(
            f"has no AUC of members with {' or '.join(map(str, missing))} copies in every seed",
            where=place,
            allowed=", ".join(map(str, places)) or "none; no number of copies has enough members",
        )
    return cells.auc[:, [places[count] for count in copies]]


def judge_prediction(
    prediction: Prediction,
    observed: Floats,
    seeds: Sequence[int],
    *,
    margin: float = MARGIN,
    confidence: float = 0.95,
) -> Verdict:
    """Return the verdict on a prediction.

    Args:
        prediction: written before.
        observed: AUCs of the left-out arm at the predicted numbers of copies, [S, D].
        seeds: of the left-out arm, S of them.
        margin: within which the difference counts as predicted.
        confidence: of the interval.

    Raises:
        InputError: for fewer than three seeds.
    """
    if len(seeds) < FROM_SEEDS:
        raise InputError(
            f"the left-out arm has {len(seeds)} seeds", allowed=f"{FROM_SEEDS} or more"
        )
    by_seed = dict(zip(seeds, observed.mean(axis=1).tolist(), strict=True))
    predicted = dict(
        zip(prediction.seeds, np.array(prediction.without).mean(axis=1).tolist(), strict=True)
    )
    value = float(np.mean(prediction.auc) - np.mean(list(by_seed.values())))
    paired = set(seeds) == set(prediction.seeds)
    half = (
        _paired_half(predicted, by_seed, confidence)
        if paired
        else _unpaired_half(predicted, by_seed, confidence)
    )
    difference = Estimate(value, value - half, value + half, seeds=len(seeds))
    verdicts = {
        "predicted": max(abs(difference.low), abs(difference.high)) <= margin,
        "refuted": not difference.contains(0.0),
    }
    text = " and ".join(name for name, holds in verdicts.items() if holds) or "open"
    return Verdict(difference, text, paired)


def _paired_half(
    predicted: dict[int, float], observed: dict[int, float], confidence: float
) -> float:
    seeds = sorted(predicted)
    observed_without = means_without(np.array([observed[seed] for seed in seeds]))
    gaps = np.array([predicted[seed] for seed in seeds]) - observed_without
    return float(jackknife_half(gaps, confidence))


def _unpaired_half(
    predicted: dict[int, float], observed: dict[int, float], confidence: float
) -> float:
    from scipy.stats import t

    both = np.array([*predicted.values()]), means_without(np.array([*observed.values()]))
    error = float(np.hypot(*(jackknife_error(without) for without in both)))
    return float(t.ppf((1 + confidence) / 2, min(map(len, both)) - 1)) * error


def means_without(values: Floats) -> Floats:
    """Return the mean over seeds without each seed, same shape: [S, …]."""
    return np.asarray((values.sum(axis=0) - values) / (len(values) - 1))
