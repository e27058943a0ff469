"""Our plain detectors against the formulas of four public suites, from a model's own logits.

What differs is stated in docs/given-labels.md; each line of that table is held here.
"""

import math
import zlib

import numpy as np
import pytest
import torch

from detect.detector_settings import parse_detectors
from detect.engine.forward_pass import token_statistics
from detect.policy import ScoringPolicy
from detect.scoring import score_rows
from tests.conftest import make_texts
from tests.detect.evidence_samples import evidence_of
from tests.detect.models import random_target

TEXTS = [*make_texts(4, seed=3, words=25), "a b", "ÄÖ ß 漢字 text", "a a a a a a a a a a a a"]
OURS = "loss,zlib,min_k:k=0.2:k_rule=floor,min_k:k=0.2,min_k:k=0.5,min_k_plus_plus:k=0.2"


@pytest.fixture(scope="module")
def scored(tiny_tokenizer):
    """Return (detector, setting) → scores, and each text's (log-probabilities, mean, variance)."""
    target = random_target("llama", tiny_tokenizer)
    evidence = evidence_of(*token_statistics(target, TEXTS, ScoringPolicy()), texts=TEXTS)
    names = [str(number) for number in range(len(TEXTS))]
    scores: dict[tuple[str, str], list[float]] = {}
    for row in score_rows(names, evidence, parse_detectors(OURS)).table.to_pylist():
        scores.setdefault((row["detector"], row["setting"]), []).append(row["score"])
    return scores, [by_hand(target, text) for text in TEXTS]


def by_hand(target, text):
    """Return what `run.py` of mink++ computes before it selects tokens."""
    ids = torch.tensor([target.tokenizer.encode(text)])
    with torch.no_grad():
        logits = target.model(ids).logits
    log_probs = torch.log_softmax(logits[0, :-1].double(), dim=-1)
    token = log_probs.gather(-1, ids[0][1:].unsqueeze(-1)).squeeze(-1)
    mean = (log_probs.exp() * log_probs).sum(-1)
    variance = (log_probs.exp() * log_probs.square()).sum(-1) - mean.square()
    return token.numpy(), mean.numpy(), variance.numpy()


def lowest(values, count):
    return float(np.mean(np.sort(values)[:count])) if count else math.nan


def test_loss_and_zlib_are_those_of_all_suites(scored):
    scores, tokens = scored
    for row, text in enumerate(TEXTS):
        loss = float(np.mean(tokens[row][0]))
        packed = len(zlib.compress(bytes(text, "utf-8")))
        assert scores["loss", "-"][row] == pytest.approx(loss, abs=1e-4)
        assert scores["zlib", "-"][row] == pytest.approx(loss / packed, abs=1e-4)
        per_character = loss / (packed / len(text))
        assert scores["zlib", "-"][row] * len(text) == pytest.approx(per_character, rel=1e-4)


def test_min_k_differs_from_mink_plus_plus_and_mimir_in_short_texts_alone(scored):
    scores, tokens = scored
    (floor,) = [found for (_, setting), found in scores.items() if "k_rule=floor" in setting]
    for row, (token, _, _) in enumerate(tokens):
        theirs = lowest(token, int(len(token) * 0.2))
        assert floor[row] == pytest.approx(theirs, abs=1e-4, nan_ok=True)
        ours = scores["min_k", "k=0.2"][row]
        assert ours == pytest.approx(theirs, abs=1e-4) or (math.isnan(theirs) and ours < 0)
    assert any(map(math.isnan, floor)), "a text of fewer than five tokens has no number"


def test_min_k_of_a_half_is_the_default_of_fast_mia(scored):
    scores, tokens = scored
    for row, (token, _, _) in enumerate(tokens):
        theirs = lowest(token, max(1, int(len(token) * 0.5)))
        assert scores["min_k", "k=0.5"][row] == pytest.approx(theirs, abs=1e-4)


def test_min_k_plus_plus_differs_from_mink_plus_plus_in_short_texts_alone(scored):
    scores, tokens = scored
    for row, (token, mean, variance) in enumerate(tokens):
        theirs = lowest((token - mean) / np.sqrt(variance), int(len(token) * 0.2))
        if math.isfinite(theirs):
            assert scores["min_k_plus_plus", "k=0.2"][row] == pytest.approx(theirs, abs=1e-3)
