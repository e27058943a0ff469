"""Scores of many detectors as features: on one scale, outliers cut, gaps filled, fitted on `tune`.

Everything that is estimated comes from the tune rows alone, both sides together, so that no
label and no test row bears on the scale.
"""

from typing import NamedTuple

import numpy as np

from analysis.dataset_detectors.detector import DatasetEvidence, Mask
from analysis.metrics import Floats

_CUT = 2.5
"""Per cent at each end (Maini et al. 2024 cut as much)."""
_MOST_MISSING = 0.1


class Features(NamedTuple):
    """A matrix of features."""

    values: Floats
    """[rows, features]."""
    names: tuple[str, ...]


def standardised_features(evidence: DatasetEvidence, fitted: Mask) -> Features:
    """Return scores cut at the 2.5th and 97.5th percentile of the fitted rows, in their units."""
    names, columns = [], []
    for name, scores in evidence.scores.items():
        known = scores[fitted & np.isfinite(scores)]
        if len(known) < 2 or len(known) < (1 - _MOST_MISSING) * fitted.sum():
            continue
        low, high = np.percentile(known, [_CUT, 100 - _CUT])
        cut = np.clip(scores, low, high)
        within = np.clip(known, low, high)
        spread = float(within.std())
        if spread <= 0:
            continue
        column = (cut - within.mean()) / spread
        names.append(name)
        columns.append(np.where(np.isfinite(column), column, 0.0))
    return Features(_stack(columns, len(fitted)), tuple(names))


def ranked_features(evidence: DatasetEvidence, fitted: Mask) -> Features:
    """Return each score's place among the fitted rows of its own data set, from 0 to 1."""
    names, columns = [], []
    for name, scores in evidence.scores.items():
        column = np.full(len(scores), np.nan)
        for dataset in dict.fromkeys(evidence.datasets):
            here = evidence.datasets == dataset
            known = np.sort(scores[here & fitted & np.isfinite(scores)])
            asked = here & np.isfinite(scores)
            if len(known) >= 2:
                below = np.searchsorted(known, scores[asked], side="left")
                upto = np.searchsorted(known, scores[asked], side="right")
                column[asked] = (below + upto) / (2 * len(known))
        if np.isfinite(column[fitted]).mean() >= 1 - _MOST_MISSING:
            names.append(name)
            columns.append(np.where(np.isfinite(column), column, 0.5))
    return Features(_stack(columns, len(fitted)), tuple(names))


def fitted_probability(features: Features, labels: Mask, fitted: Mask) -> Floats:
    """Return a logistic regression's log-odds of every row, fitted on some of them."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=1000, class_weight="balanced")
    model.fit(features.values[fitted], labels[fitted])
    return np.asarray(model.decision_function(features.values), np.float64)


def _stack(columns: list[Floats], rows: int) -> Floats:
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0))
