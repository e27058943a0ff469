"""AUC by copies in each fitted arm with the law, and the prediction of the left-out arm."""

from collections.abc import Iterable, Sequence
from math import log2, nan

import numpy as np
from scipy.special import ndtr

from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.unit import AUC, Dot
from scripts.studies.laws import LAWS, Design
from scripts.studies.prediction import Prediction
from scripts.studies.prediction_file import FittedPoint

_STEPS = 25
"""Places of a curve."""


def draw_detector(
    prediction: Prediction,
    fitted: Sequence[FittedPoint],
    observed: Sequence[FittedPoint],
    title: str,
) -> Panels:
    """Return one panel per fitted arm, and a last one for the predicted arm.

    Args:
        prediction: by the law that is drawn.
        fitted: the AUCs of the fitted arms.
        observed: those of the predicted arm; none before it is scored.
        title: of its panel.
    """
    by_arm: dict[str, list[FittedPoint]] = {}
    for point in fitted:
        by_arm.setdefault(point.arm, []).append(point)
    panels = [
        LinePanel(arm, [_curve(prediction, points), _observed(points)])
        for arm, points in by_arm.items()
    ]
    band = [
        (log2(copies), Dot(value, low, high, ""))
        for copies, value, low, high in zip(
            prediction.copies, prediction.auc, prediction.low, prediction.high, strict=True
        )
    ]
    left_out = [Line(band, "chosen", marks=False)]
    if observed:
        left_out.append(_observed(observed))
    panels.append(
        LinePanel(title, left_out, "predicted, then observed" if observed else "predicted")
    )
    doses = sorted({point.copies for point in (*fitted, *observed)})
    return Panels(
        panels=panels,
        x=[(log2(copies), str(copies)) for copies in doses],
        y=[(at / 10, f"{at / 10:.1f}") for at in range(_lowest((*fitted, *observed)), 11)],
        centre=0.5,
        x_label="copies (vertical: AUC)",
        label=f"AUC of {prediction.detector} by copies, the {prediction.law} and its prediction",
        height=230.0,
        per_row=4,
    )


def _lowest(points: Iterable[FittedPoint]) -> int:
    """Return the lowest tick in tenths: 0.4, or below every interval."""
    return min(4, *(int(10 * max(point.low, 0.0)) for point in points))


def _curve(prediction: Prediction, points: Sequence[FittedPoint]) -> Line:
    """Return the law in one arm, from its least to its largest number of copies."""
    first = points[0]
    copies = np.geomspace(first.copies, points[-1].copies, _STEPS)
    terms = np.array([value for value, _, _ in prediction.terms.values()])
    probits = LAWS[prediction.law].probit(terms, Design.of(copies, first.parameters, first.rate))
    places = zip(copies.tolist(), ndtr(probits).tolist(), strict=True)
    return Line([(log2(count), Dot(auc, nan, nan, "")) for count, auc in places], marks=False)


def _observed(points: Sequence[FittedPoint]) -> Line:
    dots = [
        (
            log2(point.copies),
            Dot(
                point.value,
                point.low,
                point.high,
                f"{point.copies} copies: {AUC.text(point.value, point.low, point.high)}",
            ),
        )
        for point in points
    ]
    return Line(dots, "points")
