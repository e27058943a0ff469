"""`rmia`: does the text gain more over other models than texts of the population?

RMIA (Zarifzadeh et al. 2024): P_x = p_θ(x) / p̄(x) with p = exp(mean ℓ) and p̄ the mean over shadow
models; score = share of population texts z with P_x / P_z > γ. The population is the held-out rows
of the text's dataset, which neither the target nor any shadow model saw.

- `online`: p̄(x) is the mean of the shadow models that saw x and of those that did not, each side
  counting one half; p̄(z) is the mean over all of them.
- `offline`: p̄ = (1 + a)/2 · mean_out + (1 − a)/2, for x and for z alike.

A few dozen z make many ties. They are broken by the mean over z of log(P_x / P_z), squeezed into
less than half of the step from one share to the next, so no order of two different shares changes.
The shadow models' membership labels are known, never guessed from the size of the signal.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from detect.detector import Column, Detector, Score
from detect.detectors.loss import mean_log_probability
from detect.evidence import Evidence
from detect.evidence.held_out import HeldOut
from detect.evidence.membership import Shadows
from detect.evidence.views import View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.keyed import F64
from inject.settings import Settings

NO_POPULATION = "no held-out row of its dataset"
NO_SHADOW = "no shadow model on one side"


class RmiaParameters(Settings):
    """The average of other models' probabilities, and the smallest ratio that counts."""

    variant: Literal["online", "offline"] = "online"
    """Shadow models of both sides, or only those that did not see the text."""
    a: Annotated[Decimal, Field(ge=0, le=1)] = Decimal("0.3")
    """For `offline`: how far models that saw the text are above those that did not."""
    gamma: Annotated[Decimal, Field(gt=0)] = Decimal(1)
    """The ratio above which x counts as above z."""


class _Probabilities(NamedTuple):
    """exp(mean ℓ) of one text; NaN if there is none."""

    target: float
    inside: float
    """Mean over the shadow models that saw the text."""
    outside: float
    """Mean over the shadow models that did not."""

    def ratio(self, setting: RmiaParameters, *, population: bool) -> float:
        """Return P of the text."""
        if setting.variant == "offline":
            a = float(setting.a)
            return self.target / ((1 + a) / 2 * self.outside + (1 - a) / 2)
        return self.target / (self.outside if population else (self.inside + self.outside) / 2)


def pairwise_score(own: float, population: F64, gamma: float) -> float:
    """Return the share of the population below a text's ratio, ties broken by the mean log ratio.

    Args:
        own: P_x, above 0.
        population: P_z, at least one, above 0.
        gamma: the ratio that must be exceeded.
    """
    share = float(np.mean(own / population > gamma))
    mean = float(np.mean(np.log(own) - np.log(population)))
    # atan is strictly increasing and below π/2, so this is below half of 1/len(population).
    return share + math.atan(mean) / math.pi / len(population) * (1 - 1e-9)


def _probability(statistics: TokenStatistics) -> float:
    return math.exp(mean_log_probability(statistics)) if len(statistics) else math.nan


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _probabilities(evidence: Evidence) -> list[_Probabilities]:
    shadows = evidence.shadows or ()
    probabilities = []
    for row, text in enumerate(evidence.statistics[TEXT]):
        sides: tuple[list[float], list[float]] = ([], [])
        for shadow in shadows:
            sides[0 if shadow.inside[row] else 1].append(_probability(shadow.statistics[row]))
        probabilities.append(_Probabilities(_probability(text), _mean(sides[0]), _mean(sides[1])))
    return probabilities


def _population(evidence: Evidence) -> dict[str, list[_Probabilities]]:
    """Return the held-out rows of each dataset that every model could read."""
    held_out = evidence.held_out
    population: dict[str, list[_Probabilities]] = {}
    if held_out is None or held_out.shadows is None:
        return population
    for row, dataset in enumerate(held_out.datasets):
        probabilities = _Probabilities(
            _probability(held_out.statistics[row]),
            math.nan,
            _mean([_probability(shadow[row]) for shadow in held_out.shadows]),
        )
        if not math.isnan(probabilities.target + probabilities.outside):
            population.setdefault(dataset, []).append(probabilities)
    return population


def _score(evidence: Evidence, settings: Sequence[RmiaParameters]) -> list[Column]:
    scored, population = _probabilities(evidence), _population(evidence)
    datasets = evidence.datasets or [""] * len(scored)
    columns = []
    for setting in settings:
        ratios = {
            dataset: np.array([reference.ratio(setting, population=True) for reference in rows])
            for dataset, rows in population.items()
        }
        scores = []
        for row, (probabilities, dataset) in enumerate(zip(scored, datasets, strict=True)):
            own = probabilities.ratio(setting, population=False)
            if math.isnan(probabilities.target):
                scores.append(Score(math.nan, evidence.statistics[TEXT][row].reason))
            elif math.isnan(own):
                scores.append(Score(math.nan, NO_SHADOW))
            elif dataset not in ratios:
                scores.append(Score(math.nan, NO_POPULATION))
            else:
                value = pairwise_score(own, ratios[dataset], float(setting.gamma))
                scores.append(Score(value))
        sizes = ", ".join(f"{len(values)} of {name}" for name, values in sorted(ratios.items()))
        note = f"{len(evidence.shadows or ())} shadow models; population: {sizes or 'none'}."
        columns.append(Column(scores, (note,)))
    return columns


DETECTOR = Detector(
    name="rmia",
    title="RMIA",
    summary="share of unseen texts whose gain over shadow models is smaller",
    source="Zarifzadeh et al. 2024 (RMIA)",
    needs=(View(TEXT), Shadows(), HeldOut(shadows=True)),
    assumption=(
        "shadow models are trained as the target, each on a random half of the examples, and "
        "held-out rows are like the scored ones"
    ),
    order=92,
    parameters=RmiaParameters,
    grid=(
        RmiaParameters(),
        *(RmiaParameters(variant="offline", a=Decimal(tenths) / 10) for tenths in range(11)),
    ),
    score=_score,
)
