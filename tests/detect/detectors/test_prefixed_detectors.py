"""recall, con_recall and codec against their definitions, reimplemented in float64."""

import math
from decimal import Decimal

import numpy as np
import pytest

from detect.detectors import codec, con_recall, recall
from detect.evidence import Evidence, PrefixedStatistics
from detect.token_statistics import EMPTY_TEXT, unscored
from detect.views import TEXT
from tests.detect.evidence_samples import statistics_of

TEXTS = ["a plain text", "one one one one", "天地玄黃", "certain", "tied", "long " * 400]


def random_rows(seed, lengths=(12, 1, 30, 4, 11, 2000)):
    draw = np.random.default_rng(seed)
    return [statistics_of(-draw.exponential(3, size)) for size in lengths]


def evidence_of(plain, **prefixed):
    return Evidence(
        texts=TEXTS[: len(plain)],
        statistics={TEXT: plain},
        datasets=["one"] * len(plain),
        prefixed={
            name.replace("_", "-"): PrefixedStatistics(statistics=rows)
            for name, rows in prefixed.items()
        },
    )


def mean(values):
    return math.fsum(float(value) for value in values) / len(values)


def test_recall_is_the_mean_after_shots_over_the_plain_mean():
    plain, behind = random_rows(0), random_rows(1)
    columns = recall.DETECTOR.score(
        evidence_of(plain, nonmembers_0_7=behind), [recall.RecallParameters()]
    )
    for score, prefixed, other in zip(columns[0].scores, behind, plain, strict=True):
        assert score.value == pytest.approx(
            mean(prefixed.log_probability) / mean(other.log_probability)
        )


def test_recall_reports_why_a_score_is_missing():
    plain = [unscored(EMPTY_TEXT), statistics_of([0.0, 0.0]), statistics_of([-1.0])]
    behind = [unscored(EMPTY_TEXT), statistics_of([-1.0, -1.0]), unscored("no shot")]
    scores = recall.DETECTOR.score(
        evidence_of(plain, nonmembers_0_7=behind), [recall.RecallParameters()]
    )[0].scores
    assert [math.isnan(score.value) for score in scores] == [True] * 3
    assert [score.reason for score in scores] == [EMPTY_TEXT, recall.CERTAIN, "no shot"]


def test_con_recall_has_the_sign_of_its_definition():
    plain, unseen, seen = random_rows(0), random_rows(1), random_rows(2)
    evidence = evidence_of(plain, nonmembers_0_7=unseen, members_0_7=seen)
    settings = [con_recall.ConRecallParameters(gamma=Decimal(gamma)) for gamma in ("0", "0.5", "1")]
    columns = con_recall.DETECTOR.score(evidence, settings)
    for setting, column in zip(settings, columns, strict=True):
        for score, plain_row, unseen_row, seen_row in zip(
            column.scores, plain, unseen, seen, strict=True
        ):
            expected = mean(unseen_row.log_probability) - float(setting.gamma) * mean(
                seen_row.log_probability
            )
            assert score.value == pytest.approx(expected / mean(plain_row.log_probability))
    alone = recall.DETECTOR.score(evidence, [recall.RecallParameters()])[0].scores
    assert [score.value for score in columns[0].scores] == pytest.approx(
        [score.value for score in alone]
    )


def codec_by_hand(plain, draws, skip=10):
    changes = []
    for draw in draws:
        changes.append(mean(draw.log_probability[skip:]) - mean(plain.log_probability[skip:]))
    return -mean(changes)


def test_codec_averages_draws_and_skips_the_first_ten_tokens():
    plain = random_rows(0)
    draws = [random_rows(10 + draw) for draw in range(5)]
    evidence = evidence_of(plain, **{f"nonmembers_{n}_1": rows for n, rows in enumerate(draws)})
    [column] = codec.DETECTOR.score(evidence, [codec.CodecParameters()])
    expected = []
    for row, (score, statistics) in enumerate(zip(column.scores, plain, strict=True)):
        if len(statistics) <= 10:
            assert math.isnan(score.value)
            assert score.reason == "no token behind the first 10"
        else:
            expected.append(codec_by_hand(statistics, [rows[row] for rows in draws]))
            assert score.value == pytest.approx(expected[-1])
    share = f"{np.mean([statistics > 0 for statistics in expected]):.0%} of {len(expected)} texts"
    assert share in column.notes[0]
    assert column.notes[0].startswith("one: ")


def test_codec_skips_missing_draws():
    plain = random_rows(0)[:1]
    prefixed = random_rows(3)[:1]
    rows = {"nonmembers_0_1": prefixed, "nonmembers_1_1": [unscored("no shot")]}
    [column] = codec.DETECTOR.score(
        evidence_of(plain, **rows), [codec.CodecParameters(draws=2, skip=2)]
    )
    assert column.scores[0].value == pytest.approx(codec_by_hand(plain[0], prefixed, skip=2))
    none = {"nonmembers_0_1": [unscored("no shot")], "nonmembers_1_1": [unscored("no shot")]}
    [column] = codec.DETECTOR.score(evidence_of(plain, **none), [codec.CodecParameters(draws=2)])
    assert column.scores[0].reason == "no shot"
