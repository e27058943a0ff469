"""Each suite's numbers against its code, written out again from the model's logits."""

import math
import zlib

import numpy as np
import pytest
import torch

from detect.compat.suites import SUITES, get_suite, suite_names
from detect.detector import check_detector
from detect.engine.forward_pass import token_statistics
from detect.policy import ScoringPolicy
from detect.scoring import score_rows
from inject.errors import InputError
from tests.conftest import make_texts
from tests.detect.evidence_samples import evidence_of
from tests.detect.models import random_target

TEXTS = [*make_texts(4, seed=3, words=25), "a b", "ÄÖ ß 漢字 text", "a a a a a a a a a a a a"]


@pytest.fixture(scope="module")
def target(tiny_tokenizer):
    return random_target("llama", tiny_tokenizer)


@pytest.fixture(scope="module")
def statistics(target):
    return token_statistics(target, TEXTS, ScoringPolicy())


def by_hand(target, text):
    """Return (log-probabilities, expected ones, variances) as `run.py` of mink++ has them."""
    ids = torch.tensor([target.tokenizer.encode(text)])
    with torch.no_grad():
        logits = target.model(ids).logits
    log_probs = torch.log_softmax(logits[0, :-1].double(), dim=-1)
    token = log_probs.gather(-1, ids[0][1:].unsqueeze(-1)).squeeze(-1)
    mean = (log_probs.exp() * log_probs).sum(-1)
    variance = (log_probs.exp() * log_probs.square()).sum(-1) - mean.square()
    return token.numpy(), mean.numpy(), variance.numpy()


def suite_scores(name, statistics):
    suite = get_suite(name)
    evidence = evidence_of(*statistics, texts=TEXTS)
    table = score_rows([str(at) for at in range(len(TEXTS))], evidence, suite.settings()).table
    found = {}
    for row in table.to_pylist():
        found.setdefault(row["detector"].partition(".")[2], []).append(row["score"])
    return found


def lowest(values, count):
    return float(np.mean(np.sort(values)[:count])) if count else math.nan


@pytest.mark.parametrize("name", ["mink++", "mimir"])
def test_mink_plus_plus_and_mimir(name, target, statistics):
    found = suite_scores(name, statistics)
    for row, text in enumerate(TEXTS):
        token, mean, variance = by_hand(target, text)
        count = int(len(token) * 0.2)
        loss = float(np.mean(token))
        assert found["loss"][row] == pytest.approx(loss, abs=1e-4)
        packed = len(zlib.compress(bytes(text, "utf-8")))
        assert found["zlib"][row] == pytest.approx(loss / packed, abs=1e-4)
        wanted = lowest(token, count)
        assert found["min_k"][row] == pytest.approx(wanted, abs=1e-4, nan_ok=True)
        plus = lowest((token - mean) / np.sqrt(variance), count)
        assert found["min_k_plus_plus"][row] == pytest.approx(plus, abs=1e-3, nan_ok=True)
    assert any(map(math.isnan, found["min_k"])), "a text of fewer than five tokens has no number"


def test_mia_llms_benchmark_divides_by_a_ratio(target, statistics):
    found = suite_scores("mia_llms_benchmark", statistics)
    assert "min_k_plus_plus" not in found, "it cannot be had from the token statistics"
    for row, text in enumerate(TEXTS):
        token, _, _ = by_hand(target, text)
        ratio = len(zlib.compress(text.encode())) / len(text)
        assert found["zlib"][row] == pytest.approx(float(np.mean(token)) / ratio, abs=1e-4)
        wanted = lowest(token, int(20 / 100 * len(token)))
        assert found["min_k"][row] == pytest.approx(wanted, abs=1e-4, nan_ok=True)


def test_fast_mia_takes_a_half_and_at_least_one_token(target, statistics):
    found = suite_scores("fast-mia", statistics)
    for row, text in enumerate(TEXTS):
        token, _, _ = by_hand(target, text)
        wanted = lowest(token, max(1, int(len(token) * 0.5)))
        assert found["min_k"][row] == pytest.approx(wanted, abs=1e-4)


def test_floats_select_a_token_less_than_the_exact_rule():
    (few,) = [one for one in get_suite("mink++").detectors if one.name == "min_k"]
    from detect.compat.suite import float_floor

    assert float_floor(0.29)(100) == 28
    assert few.difference.startswith("the number of tokens is int(n·k) on floats")


def test_every_suite_names_its_source_and_what_is_not_reproduced():
    assert suite_names() == ("mink++", "mimir", "mia_llms_benchmark", "fast-mia")
    for suite in SUITES:
        assert suite.repository.count("/") == 1
        assert suite.files
        assert all(len(commit) == 12 for commit in suite.files.values())
        assert suite.not_reproduced
        assert len(suite.settings()) == len(suite.corrected()) == len(suite.detectors)
        for one in suite.settings():
            check_detector(one.detector, where=suite.name)
    with pytest.raises(InputError, match=r"Did you mean 'mimir'"):
        get_suite("mimr")
