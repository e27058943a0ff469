"""The neighbourhood comparison: its formula, its sign, and a file of rows with scores."""

import math

import numpy as np
import pytest

from detect.detector_settings import parse_detectors
from detect.evidence import Evidence
from detect.generation.neighbour_proposals import neighbour_means
from detect.scoring import score_rows
from detect.settings import ScoringPolicy
from detect.text_measures import NeighbourMeans, Neighbours
from detect.token_statistics import EMPTY_TEXT, unscored
from inject.errors import InputError
from tests.conftest import make_texts
from tests.detect.evidence_samples import statistics_of
from tests.detect.models import naive, random_target


def scores(evidence):
    names = [str(row) for row in range(len(evidence.texts))]
    table, notes = score_rows(names, evidence, parse_detectors("neighbour"))
    return table.to_pylist(), notes


def evidence_of(rows, neighbours):
    return Evidence(texts=["x"] * len(rows), statistics={"text": rows}, neighbours=neighbours)


def test_score_is_the_mean_minus_the_mean_over_neighbours():
    rows = [statistics_of([-1.0, -3.0]), statistics_of([-2.0])]
    means = [NeighbourMeans(means=(-4.0, -5.0, -9.0)), NeighbourMeans(means=(-1.0,))]
    results, notes = scores(evidence_of(rows, means))
    assert [row["score"] for row in results] == [-2.0 - (-6.0), -2.0 - (-1.0)]
    assert notes == ("neighbour: 1 of 2 texts have fewer than 3 neighbours, 1 at least",)


def test_score_uses_the_neighbours_mean_and_not_their_maximum():
    """A known mistake of public code."""
    means = [NeighbourMeans(means=(-1.0, -9.0))]
    assert scores(evidence_of([statistics_of([-2.0])], means))[0][0]["score"] == 3.0


def test_unscorable_texts_have_reasons():
    rows = [statistics_of([-1.0]), unscored(EMPTY_TEXT)]
    means = [NeighbourMeans(reason="no proposal"), NeighbourMeans(reason=EMPTY_TEXT)]
    results, _ = scores(evidence_of(rows, means))
    assert results[0]["reason"] == "neighbours: no proposal"
    assert results[1]["reason"] == EMPTY_TEXT
    assert all(math.isnan(row["score"]) for row in results)
    with pytest.raises(InputError, match="neighbour needs neighbours"):
        scores(Evidence(texts=["x"], statistics={"text": rows[:1]}))


def test_batched_means_match_each_neighbour_read_separately(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer)
    texts = make_texts(5, words=5)
    drafts = [
        Neighbours(texts=tuple(texts[:3])),
        Neighbours(reason="why"),
        Neighbours(texts=("a",)),
    ]
    drafts.append(Neighbours(texts=tuple(texts[3:])))
    results = neighbour_means(target, drafts, ScoringPolicy(), batch_tokens=40)
    for draft, means in zip(drafts, results, strict=True):
        expected = [
            float(np.mean(naive(target, tiny_tokenizer(text)["input_ids"]).log_probability))
            for text in draft.texts
            if len(text) > 1
        ]
        assert means.means == pytest.approx(expected, abs=1e-4)
    assert [draft.reason for draft in results] == [
        None, "why", "no neighbour of it could be scored", None,
    ]  # fmt: skip
