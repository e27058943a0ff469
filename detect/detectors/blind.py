"""`blind`: a classifier of members and non-members without any model; it must fail.

Das et al. 2024, Meeus et al. 2024.

A logistic regression on words, TF-IDF or lengths, scored out of fold, whole groups at a time.
If its AUC's interval does not contain 0.5, the two sides differ, and other detectors may detect
that difference.

Folds are used in one direction only: of an odd number of folds in a circle, each is scored by a
model trained on the half that follows it. In ordinary cross-validation two examples train each
other's scorer; that counts each accidental likeness twice, and an interval that assumes independent
examples is too narrow: over 40 random splits of similar texts the AUC's standard deviation was 1.35
times the nominal one (95 % intervals covered 0.5 in 85 %), with this rule 1.0 times (96 % of 80
splits). The cost: models train on 43 % of the rows.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from detect.detector import Column, Detector, Score
from detect.evidence import Evidence
from detect.evidence.membership import Sides
from detect.token_statistics import EMPTY_TEXT
from inject.settings import Settings

_FOLDS = 7
_FEWEST_FOLDS = 3
_SEED = 0
_WORD = r"(?u)\b\w+\b"


class BlindParameters(Settings):
    """The classifier's features."""

    features: Literal["words", "tfidf", "length"] = "words"
    """`words`: which words occur; `tfidf`: words weighted by rarity; `length`: characters,
    words, and their ratio."""


def half_circle_folds(
    members: npt.NDArray[np.bool_], groups: Sequence[str]
) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Return (train, test) row indices of each fold, or nothing if a side is too small.

    No group is in both, and of two rows at most one trains the model that scores the other.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    names = np.array(groups)
    smallest = min(len(set(names[members])), len(set(names[~members])))
    number = min(_FOLDS, smallest if smallest % 2 else smallest - 1)
    if number < _FEWEST_FOLDS:
        return []
    splitter = StratifiedGroupKFold(number, shuffle=True, random_state=_SEED)
    fold = np.zeros(len(members), np.int64)
    for index, (_, test) in enumerate(splitter.split(members, members, names)):
        fold[test] = index
    result = []
    for index in range(number):
        after = (fold - index) % number
        train = np.flatnonzero((after >= 1) & (after <= number // 2))
        result.append((train, np.flatnonzero(fold == index)))
    return result


def out_of_fold(
    texts: Sequence[str],
    members: npt.NDArray[np.bool_],
    groups: Sequence[str],
    features: Literal["words", "tfidf", "length"],
) -> npt.NDArray[np.float64] | str:
    """Return each row's probability of being a member, or the reason for its absence.

    The result does not depend on the order of the rows.
    """
    order = sorted(range(len(texts)), key=lambda row: (texts[row], groups[row], members[row]))
    ordered = [texts[row] for row in order]
    sides = members[order]
    folds = half_circle_folds(sides, [groups[row] for row in order])
    if not folds:
        return f"fewer than {_FEWEST_FOLDS} groups of members or of non-members"
    result = np.zeros(len(texts))
    for train, test in folds:
        if len(set(sides[train])) < 2:
            return "groups so large that a fold holds one side only"
        model = _pipeline(features)
        try:
            model.fit([ordered[row] for row in train], sides[train])
        except ValueError as error:
            if "empty vocabulary" in str(error):
                return "no words in the texts"
            raise
        if len(test):
            probabilities = model.predict_proba([ordered[row] for row in test])[:, 1]
            result[np.array(order)[test]] = probabilities
    return result


def _pipeline(features: Literal["words", "tfidf", "length"]) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    regression = LogisticRegression(max_iter=1000, class_weight="balanced")
    if features == "words":
        return make_pipeline(CountVectorizer(binary=True, token_pattern=_WORD), regression)
    if features == "tfidf":
        return make_pipeline(TfidfVectorizer(token_pattern=_WORD), regression)
    return make_pipeline(FunctionTransformer(_lengths), StandardScaler(), regression)


def _lengths(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return [texts, 3]: log characters, log words, characters per word."""
    characters = np.array([len(text) for text in texts], dtype=np.float64)
    words = np.array([max(1, len(text.split())) for text in texts], dtype=np.float64)
    return np.stack([np.log1p(characters), np.log(words), characters / words], axis=1)


def _score(evidence: Evidence, settings: Sequence[BlindParameters]) -> list[Column]:
    rows = [row for row, text in enumerate(evidence.texts) if text]
    texts = [evidence.texts[row] for row in rows]
    sides = evidence.members or []
    groups = evidence.groups or evidence.texts
    columns = []
    for setting in settings:
        values: npt.NDArray[np.float64] | str = "no labels"
        if sides:
            members = np.array([sides[row] for row in rows], dtype=np.bool_)
            values = out_of_fold(texts, members, [groups[row] for row in rows], setting.features)
        scores = [Score(math.nan, EMPTY_TEXT)] * len(evidence.texts)
        for index, row in enumerate(rows):
            scores[row] = (
                Score(math.nan, values) if isinstance(values, str) else Score(float(values[index]))
            )
        columns.append(Column(scores))
    return columns


DETECTOR = Detector(
    name="blind",
    title="Blind",
    summary="no model: a classifier on words, TF-IDF or lengths; must not separate the sides",
    source="Das et al. 2024, Meeus et al. 2024",
    needs=(Sides(),),
    libraries=("scikit-learn", "unicode"),
    depends_on_rows=True,
    assumption=(
        "members and non-members were drawn at random from one source, so that no classifier "
        "of texts can separate them"
    ),
    order=95,
    parameters=BlindParameters,
    grid=(
        BlindParameters(),
        BlindParameters(features="tfidf"),
        BlindParameters(features="length"),
    ),
    score=_score,
)
