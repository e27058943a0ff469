"""`de_cop`: the share of questions in which the target picks the verbatim passage (DE-COP).

Duarte et al. 2024, "DE-COP: Detecting Copyrighted Content in Language Models Training Data",
section 4 and appendix E, algorithm 1. A passage is an option among three paraphrases of it, in all
24 orders; the score is the share of orders in which the verbatim passage is chosen. Label
probabilities are corrected by Δ_label = 0.25 − their mean over clean documents before the largest
is taken; letters from a server are used as they are. Of equally likely labels none is chosen.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from detect.choices import LABELS, RIGHT, ChoiceAnswers, ChoiceEvidence
from detect.detector import Column, Detector, Score
from detect.evidence import Evidence
from detect.evidence.choices import Choices
from inject.keyed import F64, I64
from inject.settings import Settings

NO_ANSWER = -1


class DeCopParameters(Settings):
    """The correction of the labels' probabilities."""

    calibration: Literal["clean", "none"] = "clean"
    """`clean`: by their mean over clean documents, if there are any; `none`: not at all."""


GRID = (DeCopParameters(), DeCopParameters(calibration="none"))


def among_labels(answers: ChoiceAnswers) -> F64:
    """Return the labels' probabilities among themselves, [24, 4]."""
    if answers.log_probability is None:
        raise TypeError("only letters are known")
    logs = answers.log_probability.astype(np.float64)
    shares: F64 = np.exp(logs - logs.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def adjustments(clean: Sequence[ChoiceAnswers]) -> F64 | None:
    """Return Δ of each label (algorithm 1), [4]; None if no clean passage was answered.

    Documents count alike, however many passages they have.
    """
    means: dict[str, list[F64]] = {}
    for answer in clean:
        if answer.log_probability is not None:
            means.setdefault(answer.document, []).append(among_labels(answer).mean(axis=0))
    if not means:
        return None
    observed: F64 = np.mean([np.mean(passages, axis=0) for passages in means.values()], axis=0)
    return 1 / len(LABELS) - observed


def chosen_labels(answers: ChoiceAnswers, delta: F64 | None) -> I64:
    """Return the place of the label chosen in each order, or -1; [24]."""
    if answers.letters is not None:
        return answers.letters.astype(np.int64)
    adjusted = among_labels(answers) + (0.0 if delta is None else delta)
    best = adjusted.max(axis=1, keepdims=True)
    alone = (adjusted == best).sum(axis=1) == 1
    return np.where(alone, adjusted.argmax(axis=1), NO_ANSWER)


def passage_score(answers: ChoiceAnswers, delta: F64 | None) -> Score:
    """Return the share of orders that are answered right (section 4)."""
    if answers.reason is not None:
        return Score(math.nan, answers.reason)
    return Score(float(np.mean(chosen_labels(answers, delta) == np.array(RIGHT))))


def _score(evidence: Evidence, settings: Sequence[DeCopParameters]) -> list[Column]:
    choices = evidence.choices
    if choices is None:
        raise TypeError("de_cop without answers")
    delta = adjustments(choices.clean)
    columns = []
    for setting in settings:
        used = delta if setting.calibration == "clean" else None
        scores = [passage_score(answer, used) for answer in choices.answers]
        columns.append(Column(scores, _notes(choices, setting, delta)))
    return columns


def _notes(choices: ChoiceEvidence, setting: DeCopParameters, delta: F64 | None) -> tuple[str, ...]:
    if setting.calibration == "none":
        return ()
    answered = [answer for answer in choices.answers if answer.reason is None]
    if answered and all(answer.letters is not None for answer in answered):
        return ("letters have no probabilities, so nothing is calibrated",)
    if delta is None:
        return (
            "NOT calibrated: there are no clean passages with paraphrases, so labels that the "
            "model favours count as its answers. Hold out rows that bring paraphrases "
            "(`held_out` of a contaminant, held_out=FILE).",
        )
    named = ", ".join(f"{label} {value:+.3f}" for label, value in zip(LABELS, delta, strict=True))
    passages = sum(answer.reason is None for answer in choices.clean)
    return (f"calibrated on {passages} clean passages: {named}",)


DETECTOR = Detector(
    name="de_cop",
    title="DE-COP",
    summary="how often the verbatim passage is picked among three paraphrases, in all orders",
    source="Duarte et al. 2024 (DE-COP), section 4 and algorithm 1",
    needs=(Choices(),),
    assumption=(
        "for a model that read neither, paraphrases of both sides are equally easy to "
        "distinguish from the verbatim text"
    ),
    aliases=("decop",),
    order=200,
    parameters=DeCopParameters,
    grid=GRID,
    score=_score,
)
