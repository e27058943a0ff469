"""The time of 1,000 rows under all detectors of stored statistics, with their grids.

Invented token statistics of 250 tokens per row, of the target, a reference model and 16 shadow
models, and invented counts of tokens and words. All built-in detectors that need no more are run as
in an experiment, including checks and table; `blind`, which trains classifiers of texts, is skipped
with all detectors that need labels.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from detect.detector_settings import DetectorSetting
    from detect.evidence import Evidence
    from detect.token_statistics import TokenStatistics

ROWS, TOKENS, SHADOWS, VOCABULARY = 1000, 250, 16, 2000
WORDS_A_SENTENCE = 15


class TableSeconds(NamedTuple):
    """What scoring from stored statistics took."""

    total: float
    """Total CPU time in seconds."""
    by_detector: dict[str, float]
    """By the clock, grid included."""


def table_seconds() -> TableSeconds:
    """Score all rows under all settings, once."""
    from detect.scoring import score_rows

    evidence = make_evidence()
    settings = [setting for group in runnable_settings(evidence).values() for setting in group]
    seconds_by_name: dict[str, float] = {}
    started = time.process_time()
    score_rows(
        [str(row) for row in range(ROWS)],
        evidence,
        settings,
        on_scored=lambda name, seconds: seconds_by_name.update({name: round(seconds, 3)}),
    )
    return TableSeconds(round(time.process_time() - started, 1), seconds_by_name)


def runnable_settings(evidence: "Evidence") -> "dict[str, list[DetectorSetting]]":
    """Return the settings of each detector that the evidence suffices for, grid included."""
    from detect.detector_settings import parse_detectors, with_grids
    from detect.evidence.membership import Sides

    runnable: dict[str, list[DetectorSetting]] = {}
    for setting in with_grids(parse_detectors("all")):
        needs = setting.needs
        if needs and all(need.met_by(evidence) and not isinstance(need, Sides) for need in needs):
            runnable.setdefault(setting.name, []).append(setting)
    return runnable


def make_evidence() -> "Evidence":
    """Return made-up evidence of `ROWS` rows."""
    from detect.evidence import Evidence, ShadowModel
    from detect.evidence.token_counts import count_words
    from detect.token_frequency import TokenFrequency

    random = np.random.Generator(np.random.Philox(key=0))
    texts, offsets = _texts(random)
    target = [make_statistics(random, places) for places in offsets]

    def like(rows: "Sequence[TokenStatistics]") -> "list[TokenStatistics]":
        others = (make_statistics(random, places) for places in offsets)
        return [
            replace(statistics_row, ids=row.ids)
            for row, statistics_row in zip(rows, others, strict=True)
        ]

    return Evidence(
        texts=texts,
        statistics={"text": target, "lowercase": like(target)},
        reference=like(target),
        frequency=TokenFrequency(
            counts=random.integers(0, 1000, VOCABULARY), words=count_words(texts[: ROWS // 10])
        ),
        shadows=[
            ShadowModel(
                statistics=like(target), inside=[(row + shadow) % 2 == 0 for row in range(ROWS)]
            )
            for shadow in range(SHADOWS)
        ],
    )


def make_statistics(
    random: np.random.Generator, offsets: "np.ndarray[tuple[int, int], np.dtype[np.int32]]"
) -> "TokenStatistics":
    """Return made-up statistics of one text with tokens at `offsets`."""
    from detect.token_statistics import TokenStatistics

    count = len(offsets)
    ids = random.integers(0, VOCABULARY, count).astype(np.int32)
    log_probability = -random.gamma(1.0, 2.0, count).astype(np.float32)
    entropy = random.gamma(2.0, 1.5, count).astype(np.float32)
    is_top = random.random(count) < 0.4
    gap = np.where(is_top, 0, random.random(count)).astype(np.float32)
    return TokenStatistics(
        ids=ids,
        log_probability=log_probability,
        mean_log_prob=-entropy,
        std_log_prob=random.gamma(2.0, 1.0, count).astype(np.float32),
        entropy=entropy,
        rank=np.where(is_top, 1, 5).astype(np.int32),
        top_log_probability=log_probability * (1 - gap),
        top_id=np.where(is_top, ids, (ids + 1) % VOCABULARY).astype(np.int32),
        offsets=offsets,
    )


def _texts(
    random: np.random.Generator,
) -> "tuple[list[str], list[np.ndarray[tuple[int, int], np.dtype[np.int32]]]]":
    """Return texts of one-token words in sentences, and the positions of their tokens."""
    texts, offsets = [], []
    for _ in range(ROWS):
        words = [f"w{number}" for number in random.zipf(1.3, TOKENS) % 5000]
        words = [
            f"{word}." if place % WORDS_A_SENTENCE == WORDS_A_SENTENCE - 1 else word
            for place, word in enumerate(words)
        ]
        stops = np.cumsum([len(word) + 1 for word in words]) - 1
        starts = np.concatenate([[0], stops[:-1] + 1])
        texts.append(" ".join(words))
        offsets.append(np.stack([starts, stops], axis=1).astype(np.int32))
    return texts, offsets
