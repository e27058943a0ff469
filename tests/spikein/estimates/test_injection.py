"""Estimates of `spikein plan`, against the actual plans."""

import argparse
import asyncio
import email
import inspect
import logging
import multiprocessing
import statistics
import tarfile
import unittest

import numpy as np
import pytest
from scipy.stats import poisson

from inject.corpus.tokenizer import train_tokenizer
from inject.plan.settings import Copies
from spikein.api.plan import plan as plan_experiment
from spikein.estimates.injection import MAX_COUNT, expected_counts
from spikein.estimates.step_times import START_SECONDS
from tests.spikein.tiny import write_tiny


@pytest.mark.parametrize("rate", [0.3, 7.5])
def test_poisson_counts_match_the_distribution(rate):
    copies, spread, counts = expected_counts(Copies(poisson=rate), 200)
    assert copies == pytest.approx(200 * rate)
    assert spread == pytest.approx(np.sqrt(200 * poisson.var(rate)))
    expected = [200 * poisson.pmf(count, rate) for count in range(MAX_COUNT)]
    assert counts == pytest.approx([*expected, 200 * poisson.sf(MAX_COUNT - 1, rate)])


def test_fixed_and_levelled_counts_are_exact():
    assert expected_counts(Copies(fixed=3), 50) == (150, 0, (0, 0, 0, 50, 0, 0))
    copies, spread, counts = expected_counts(Copies(levels=(1, 8)), 50)
    assert (copies, spread) == (225, 0)
    assert counts == (0, 25, 0, 0, 0, 25)


def plan(path, *overrides):
    return plan_experiment(path, overrides=list(overrides), store=path.parent / "none").injection


def test_arms_that_differ_only_in_training_appear_once(tmp_path):
    path = write_tiny(tmp_path)
    sweep = "sweep: {train.lr: [1e-3, 1e-2], copies: [{fixed: 1}, {fixed: 2}]}\n"
    path.write_text(path.read_text() + sweep)
    rows = plan(path, "seeds=[0,1]")
    assert [row.copies_rule for row in rows].count("fixed=1") == 2
    assert len(rows) == 4
    assert not any(row.measured for row in rows)


def test_plan_predicts_refusals(tmp_path):
    path = write_tiny(tmp_path)
    for change, message in {
        "placement.policy=window": "must fit into one window of 64",
        "placement.between=[0,0.05]": "have room for",
    }.items():
        [row] = plan(path, change)
        assert message in row.problem


def test_a_corpus_of_any_length_is_planned_for_without_reading_it(tmp_path, tiny_tokenizer):
    path = write_tiny(tmp_path)
    tiny_tokenizer.save_pretrained(tmp_path / "tokenizer")
    path.write_text(path.read_text().replace("{vocab_size: 300}", str(tmp_path / "tokenizer")))
    [short] = plan(path)
    [row] = plan(path, "corpus.tokens=1_000_000_000_000")
    assert row.measured
    assert row.problem == ""
    assert row.stream == 10**12
    assert row.tokens / 10**12 == row.share < 1e-6
    assert (row.tokens, row.disk_bytes) == (short.tokens, short.disk_bytes)


def test_a_measured_plan_estimates_the_time_of_each_step(tmp_path):
    path = write_tiny(tmp_path)
    unmeasured = plan_experiment(path, store=tmp_path / "none")
    assert unmeasured.measured is None
    assert {row.seconds for row in unmeasured.rows if row.kind == "model"} == {None}
    measured = plan_experiment(path, store=tmp_path / "none", measure=True)
    assert measured.measured.whole
    assert all(row.seconds > 0 for row in measured.rows)
    base, arm = (row for row in measured.rows if row.kind == "model")
    # Ten times the tokens, ten times the time of the steps themselves.
    assert (arm.seconds - START_SECONDS) / (base.seconds - START_SECONDS) == pytest.approx(10)


@pytest.mark.parametrize("size", [512, 4096])
def test_tokens_without_a_tokenizer_are_close_to_those_of_a_trained_one(tmp_path, size):
    """The tokenizer is trained on docstrings of this Python, the texts are invented facts."""
    path = write_tiny(tmp_path)
    [estimate] = plan(path, f"model.tokenizer.vocab_size={size}")
    modules = [argparse, asyncio, email, logging, multiprocessing, statistics, tarfile, unittest]
    members = [value for module in modules for value in vars(module).values()]
    texts = [text for value in members if (text := inspect.getdoc(value))]
    train_tokenizer(texts, size).save_pretrained(tmp_path / "trained")
    [counted] = plan(path, f"model.tokenizer={tmp_path / 'trained'}")
    assert not estimate.measured
    assert counted.measured
    assert estimate.tokens == pytest.approx(counted.tokens, rel=0.3)
