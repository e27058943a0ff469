"""Questions kept by the ratio rule against the rest: ROUGE-L recall of the sampled answers.

As Shi et al. 2024, section 7.2.2: 0.23 for the kept against 0.10 for the rest. A question's value
is the mean over its sampled answers; the difference has an interval by groups of questions.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from analysis.intervals.estimate import Estimate
from analysis.unlearning_audit.estimates import Clusters, difference, mean
from analysis.unlearning_audit.ratio import Band, Floats


class Question(NamedTuple):
    """A question with its true answer."""

    question: str
    answer: str
    group: str
    """Questions of one group are not independent; a question of its own is its own group."""
    place: str

    @property
    def text(self) -> str:
        """What is scored: the question and its answer."""
        return f"{self.question} {self.answer}"


class QuestionFindings(NamedTuple):
    """What the questions say."""

    questions: int
    kept: int
    """Questions whose ratio lies in the band."""
    recall_kept: Estimate
    recall_rest: Estimate
    difference: Estimate
    """Of the kept less the rest."""


def question_findings(
    questions: Sequence[Question], ratios: Floats, recall: Floats, band: Band
) -> QuestionFindings:
    """Return the recall of kept questions against the rest.

    Args:
        questions: n of them.
        ratios: of each, [n]; those without a ratio are on neither side.
        recall: mean ROUGE-L recall of each question's answers, [n].
        band: of ratios that are kept.
    """
    there = np.flatnonzero(np.isfinite(ratios))
    clusters = Clusters(tuple(questions[place].group for place in there.tolist()))
    kept = band.holds(ratios)[there]
    values = recall[there]
    return QuestionFindings(
        questions=len(questions),
        kept=int(kept.sum()),
        recall_kept=_mean_of(values, kept, clusters),
        recall_rest=_mean_of(values, ~kept, clusters),
        difference=difference(values, kept.tolist(), clusters),
    )


def _mean_of(values: Floats, side: Any, clusters: Clusters) -> Estimate:
    return mean(values[side], clusters.at(np.flatnonzero(side)))
