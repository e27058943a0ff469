"""`lira`: is the text as likely as under models that saw it, or as under models that did not?

Online LiRA (Carlini et al. 2022, "Membership inference attacks from first principles", algorithm 1)
on the mean log-probability x of the whole text, which needs no logit scaling: each example
has a Gaussian of the shadow models that saw it, and one of those that did not, and its score is

    log N(x; μ_in, σ_in²) − log N(x; μ_out, σ_out²).

With eight models or more on both sides of each example, its variances are its own. With fewer they
cannot be estimated, and one variance is pooled over all examples and both sides (a fixed variance,
as the paper has it for few models); it scales all scores alike and changes no rank. With one model
a side there is nothing to pool, and the variance is set to 1. An upper bound rather than an attack:
the shadow models know the background, how copy counts are drawn, and the places of the copies.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from detect.detector import Column, Detector, Score
from detect.detectors.loss import mean_log_probability
from detect.evidence import Evidence
from detect.needs import Shadows, View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT

Floats = npt.NDArray[np.float64]

FEWEST = 8
"""Models a side from which an example has variances of its own."""


class Ratios(NamedTuple):
    """Log-likelihood ratios, and how the variances were found."""

    values: Floats
    """[examples]; NaN where the shadow models of a side agree exactly."""
    variance: str
    """`own`, `pooled` or `unknown`."""


def likelihood_ratios(target: Floats, means: Floats, inside: npt.NDArray[np.bool_]) -> Ratios:
    """Return the log-likelihood ratio of each example; see the module.

    Args:
        target: mean log-probability under the target, shape [examples].
        means: the same under each shadow model, shape [models, examples].
        inside: whether the model saw the example, of the same shape; each example was seen by
            one model at least, and not seen by another.
    """
    count = np.stack([inside.sum(axis=0), (~inside).sum(axis=0)])
    weights = np.stack([inside, ~inside])
    centre = (weights * means).sum(axis=1) / count
    squares = (weights * (means - centre[:, None]) ** 2).sum(axis=1)
    freedom = int((count - 1).sum())
    if count.min() >= FEWEST:
        variance, how = squares / (count - 1), "own"
    elif freedom:
        variance, how = np.full_like(squares, squares.sum() / freedom), "pooled"
    else:
        variance, how = np.ones_like(squares), "unknown"
    variance = np.where(variance > 0, variance, np.nan)
    density = -0.5 * (np.log(variance) + (target - centre) ** 2 / variance)
    return Ratios(density[0] - density[1], how)


def _means(statistics: Sequence[TokenStatistics], rows: Sequence[int]) -> Floats:
    return np.array([mean_log_probability(statistics[row]) for row in rows], dtype=np.float64)


def _score(evidence: Evidence, settings: Sequence[Any]) -> list[Column]:
    shadows = evidence.shadows or ()
    views = [evidence.statistics[TEXT], *(shadow.statistics for shadow in shadows)]
    scores, rows = [], []
    for row in range(len(evidence.texts)):
        unread = next((view[row] for view in views if not len(view[row])), None)
        sides = {shadow.inside[row] for shadow in shadows}
        if unread is None and len(sides) == 2:
            rows.append(row)
        reason = "no shadow model on one side" if unread is None else unread.reason
        scores.append(Score(math.nan, reason))
    if not rows:
        return [Column(scores)] * len(settings)
    found = likelihood_ratios(
        _means(views[0], rows),
        np.stack([_means(view, rows) for view in views[1:]]),
        np.array([[shadow.inside[row] for row in rows] for shadow in shadows], dtype=np.bool_),
    )
    for row, value in zip(rows, found.values.tolist(), strict=True):
        reason = "the shadow models agree exactly" if math.isnan(value) else None
        scores[row] = Score(value, reason)
    variances = {
        "own": "each example has variances of its own",
        "pooled": "one variance is pooled over all examples",
        "unknown": "too few to estimate a variance, which is set to 1; ranks do not depend on it",
    }
    note = f"{len(shadows)} shadow models: {variances[found.variance]}."
    return [Column(scores, (note,))] * len(settings)


DETECTOR = Detector(
    name="lira",
    summary="likelihood ratio of shadow models that saw the text and that did not",
    source="Carlini et al. 2022, algorithm 1",
    needs=(View(TEXT), Shadows()),
    depends_on_rows=True,
    assumption=(
        "the shadow models are trained as the target was, each on a random half of the "
        "examples, and the mean log-probabilities are close to Gaussian"
    ),
    order=90,
    score=_score,
)
