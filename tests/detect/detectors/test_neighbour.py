"""The neighbourhood comparison: its formula, its sign, and from a file of rows to scores."""

import json
import math

import numpy as np
import pytest
import torch

from detect.detector_settings import parse_detectors
from detect.engine.forward_pass import token_statistics
from detect.engine.masked_model import make_masked_model
from detect.evidence import Evidence
from detect.neighbours.neighbours import NeighbourMeans, Neighbours
from detect.neighbours.proposals import find_neighbours, neighbour_means
from detect.policy import ScoringPolicy
from detect.scoring import score_rows
from detect.token_statistics import EMPTY_TEXT, unscored
from inject.errors import InputError
from spikein.scoring.detect_file import detect_file
from spikein.scoring.options import ScoringOptions
from tests.conftest import make_texts
from tests.detect.evidence_samples import statistics_of
from tests.detect.masked_models import tiny_masked_parts
from tests.detect.models import naive, random_target


def scores(evidence):
    names = [str(row) for row in range(len(evidence.texts))]
    found = score_rows(names, evidence, parse_detectors("neighbour"))
    return found.table.to_pylist(), found.notes


def evidence_of(rows, neighbours):
    return Evidence(texts=["x"] * len(rows), statistics={"text": rows}, neighbours=neighbours)


def test_the_score_is_the_mean_less_the_mean_over_neighbours():
    rows = [statistics_of([-1.0, -3.0]), statistics_of([-2.0])]
    means = [NeighbourMeans(means=(-4.0, -5.0, -9.0)), NeighbourMeans(means=(-1.0,))]
    found, notes = scores(evidence_of(rows, means))
    assert [row["score"] for row in found] == [-2.0 - (-6.0), -2.0 - (-1.0)]
    assert notes == ("neighbour: 1 of 2 texts have fewer than 3 neighbours, 1 at least",)


def test_the_mean_of_the_neighbours_counts_and_not_their_maximum():
    """A known mistake of public code."""
    means = [NeighbourMeans(means=(-1.0, -9.0))]
    assert scores(evidence_of([statistics_of([-2.0])], means))[0][0]["score"] == 3.0


def test_texts_that_cannot_be_scored_have_reasons():
    rows = [statistics_of([-1.0]), unscored(EMPTY_TEXT)]
    means = [NeighbourMeans(reason="no proposal"), NeighbourMeans(reason=EMPTY_TEXT)]
    found, _ = scores(evidence_of(rows, means))
    assert found[0]["reason"] == "neighbours: no proposal"
    assert found[1]["reason"] == EMPTY_TEXT
    assert all(math.isnan(row["score"]) for row in found)
    with pytest.raises(InputError, match="neighbour needs neighbours"):
        scores(Evidence(texts=["x"], statistics={"text": rows[:1]}))


def test_means_are_those_of_each_neighbour_on_its_own(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer)
    texts = make_texts(5, words=5)
    given = [Neighbours(texts=tuple(texts[:3])), Neighbours(reason="why"), Neighbours(texts=("a",))]
    given.append(Neighbours(texts=tuple(texts[3:])))
    found = neighbour_means(target, given, ScoringPolicy(), batch_tokens=40)
    for one, means in zip(given, found, strict=True):
        expected = [
            float(np.mean(naive(target, tiny_tokenizer(text)["input_ids"]).log_probability))
            for text in one.texts
            if len(text) > 1
        ]
        assert means.means == pytest.approx(expected, abs=1e-4)
    assert [one.reason for one in found] == [
        None, "why", "no neighbour of it could be scored", None,
    ]  # fmt: skip


def test_members_of_a_model_that_memorised_them_score_higher(tiny_tokenizer):
    members, others = make_texts(4, seed=1, words=10), make_texts(4, seed=2, words=10)
    target = random_target("llama", tiny_tokenizer)
    encoded = [torch.tensor([ids]) for ids in tiny_tokenizer(members)["input_ids"]]
    optimizer = torch.optim.AdamW(target.model.parameters(), lr=1e-2)
    for _ in range(60):
        for ids in encoded:
            target.model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model, tokenizer = tiny_masked_parts()
    masked = make_masked_model(model, tokenizer, name="tiny")
    texts, policy = [*members, *others], ScoringPolicy()
    means = neighbour_means(target, find_neighbours(masked, texts), policy)
    found, _ = scores(
        Evidence(
            texts=texts,
            statistics={"text": token_statistics(target, texts, policy)},
            neighbours=means,
        )
    )
    values = [row["score"] for row in found]
    assert min(values[:4]) > max(values[4:])


def test_a_file_of_rows_is_scored_with_a_masked_model(tmp_path, tiny_model_path):
    model, tokenizer = tiny_masked_parts()
    model.save_pretrained(tmp_path / "bert")
    tokenizer.save_pretrained(tmp_path / "bert")
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": text}) + "\n" for text in make_texts(3, words=6)))

    def detect(detectors, **more):
        options = ScoringOptions(detectors=detectors, **more)
        return detect_file(str(rows), str(tiny_model_path), tmp_path / "scores.parquet", options)

    found = detect("neighbour", neighbours=str(tmp_path / "bert"))
    assert all(math.isfinite(row["score"]) for row in found.scores.to_pylist())
    with pytest.raises(InputError, match="Name a masked language model"):
        detect("neighbour")
    left_out = detect("all")
    assert any("neighbour needs neighbours" in note for note in left_out.notes)
