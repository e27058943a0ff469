"""Deliberately wrong detectors, as a user's file could contain them."""

SOURCE = '''
import itertools
import math
import time

import numpy as np

from spikein import Access, Column, Detector, ExampleEvidence, Score, Sides, TokenStatistics, View


def right(statistics: TokenStatistics) -> float:
    return float(np.mean(statistics.log_probability - statistics.mean_log_prob))


def turned(statistics: TokenStatistics) -> float:
    return -right(statistics)


def length(statistics: TokenStatistics) -> float:
    return float(len(statistics)) ** 0.5


def _batch(evidence, settings):
    values = np.array([right(one) for one in evidence.statistics["text"]])
    spread = (values - values.mean()) / (values.std() + 1e-9)
    return [Column([Score(float(value)) for value in spread])]


BATCH = Detector(
    name="by_batch",
    summary="normalised",
    needs=(View("text"),),
    access=Access.DISTRIBUTION,
    score=_batch,
)
TRANSDUCTIVE = Detector(
    name="transductive",
    summary="normalised, and says so",
    needs=(View("text"),),
    access=Access.DISTRIBUTION,
    depends_on_rows=True,
    score=_batch,
)


def _picky(evidence, settings):
    """No score for every second non-member: it knows the labels, as a leak would."""
    scores = []
    for row, one in enumerate(evidence.statistics["text"]):
        gone = not evidence.members[row] and len(evidence.texts[row]) % 2
        scores.append(Score(math.nan, "not sure") if gone else Score(right(one)))
    return [Column(scores)]


PICKY = Detector(
    name="picky",
    summary="NaN by side",
    needs=(View("text"), Sides()),
    access=Access.DISTRIBUTION,
    score=_picky,
)


def _leak(evidence, settings):
    members = enumerate(evidence.members)
    return [Column([Score(float(member) + row * 1e-9) for row, member in members])]


LEAK = Detector(name="leak", summary="the labels", needs=(Sides(),), score=_leak)

_count = itertools.count()


def counter(statistics: TokenStatistics) -> float:
    return float(next(_count))


def _position(evidence, settings):
    rows = evidence.statistics["text"]
    return [Column([Score(right(one) + 0.01 * at) for at, one in enumerate(rows)])]


POSITION = Detector(
    name="position",
    summary="x",
    needs=(View("text"),),
    access=Access.DISTRIBUTION,
    score=_position,
)


def loss_again(statistics: TokenStatistics) -> float:
    return 3.0 * float(np.mean(statistics.log_probability)) + 1.0


def constant(statistics: TokenStatistics) -> float:
    return 1.0


def coarse(statistics: TokenStatistics) -> float:
    return float(round(right(statistics)))


def infinite(statistics: TokenStatistics) -> float:
    return math.inf if len(statistics) % 5 == 0 else right(statistics)


def fails(example: ExampleEvidence) -> float:
    return 1 / 0


def shape(example: ExampleEvidence) -> float:
    return np.zeros(3)


def text_length(example: ExampleEvidence) -> float:
    return float(len(example.text)) + right(example.statistics["text"])


def ids(statistics: TokenStatistics) -> float:
    return float(statistics.ids.sum())


def slow(statistics: TokenStatistics) -> float:
    time.sleep(0.01)
    return right(statistics)


def either(row):
    return float(len(row.ids))


def whole(row):
    return float(len(row.statistics["text"]))


def neither(row):
    return float(row.nothing)
'''
