"""fsd against its definition; tuning is repeatable and leaves the target as it is."""

import math
import zlib

import numpy as np
import pytest
import torch

from detect.detectors.fsd import DETECTOR, FsdParameters
from detect.engine.forward_pass import token_statistics
from detect.engine.target import load_target
from detect.engine.tuning import learning_rate_share, train_adapter, tuned_target, with_adapter
from detect.evidence import Evidence
from detect.policy import ScoringPolicy
from detect.token_statistics import EMPTY_TEXT, unscored
from detect.views import TEXT
from inject.errors import InputError
from tests.conftest import make_texts
from tests.detect.evidence_samples import random_statistics

POLICY = ScoringPolicy()
TEXTS = ["one", "two two", "天地玄黃", ""]


def by_hand(kind, statistics, text):
    values = sorted(float(one) for one in statistics.log_probability)
    if kind == "min_k":
        values = values[: max(1, len(values) // 5)]
    mean = math.fsum(values) / len(values)
    return mean / len(zlib.compress(text.encode("utf-8"), 6)) if kind == "zlib" else mean


def test_the_score_before_less_the_score_after_for_each_kind():
    before = [random_statistics(size, seed=size) for size in (1, 9, 40)]
    after = [random_statistics(size, seed=50 + size) for size in (1, 9, 40)]
    nothing = unscored(EMPTY_TEXT)
    evidence = Evidence(texts=TEXTS, statistics={TEXT: [*before, nothing]}, tuned=[*after, nothing])
    columns = DETECTOR.score(evidence, DETECTOR.grid)
    for setting, column in zip(DETECTOR.grid, columns, strict=True):
        for score, one, two, text in zip(column.scores[:3], before, after, TEXTS, strict=False):
            expected = by_hand(setting.score, one, text) - by_hand(setting.score, two, text)
            assert score.value == pytest.approx(expected)
        assert column.scores[3].reason == EMPTY_TEXT


def means(target, texts):
    return [float(np.mean(one.log_probability)) for one in token_statistics(target, texts, POLICY)]


def test_tuning_is_repeatable_helps_its_texts_and_leaves_the_target_alone(
    tmp_path, tiny_model_path
):
    def load():
        return load_target(str(tiny_model_path))

    held_out, others = make_texts(20, seed=8, words=15), make_texts(6, seed=9, words=15)
    state = torch.random.get_rng_state()
    found = [
        means(tuned_target(tmp_path / name, load, held_out, POLICY), [*held_out, *others])
        for name in ("one", "two")
    ]
    assert torch.equal(state, torch.random.get_rng_state())
    assert found[0] == found[1]
    plain = means(load(), [*held_out, *others])
    assert np.mean(found[0][:20]) > np.mean(plain[:20])
    target = load()
    tuned = with_adapter(target, tmp_path / "one")
    assert means(tuned, others) == found[0][20:]
    assert means(target, others) == plain[20:]


def test_all_held_out_texts_are_read_in_an_order_that_is_shuffled(tmp_path, tiny_model_path):
    """Pitfall: the result of the shuffle is discarded."""
    target = load_target(str(tiny_model_path))
    seen = []
    forward = type(target.model).forward

    def recorded(self, input_ids=None, **inputs):
        seen.extend(tuple(row.tolist()) for row in input_ids)
        return forward(self, input_ids=input_ids, **inputs)

    texts = [f"{number} {number} {number}" for number in range(10, 30)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(target.model), "forward", recorded)
        train_adapter(tmp_path, target, texts, POLICY, context=None)
    assert len(seen) == 60
    epochs = [seen[:20], seen[20:40], seen[40:]]
    stripped = [[tuple(one[:4]) for one in epoch] for epoch in epochs]
    assert len({frozenset(one) for one in stripped}) == 1
    assert len({tuple(one) for one in stripped}) == 3
    assert sorted(stripped[0]) != stripped[0]


def test_the_learning_rate_warms_up_and_falls_as_a_cosine():
    shares = [learning_rate_share(step, 110, 10) for step in range(110)]
    assert np.all(np.diff(shares[:11]) > 0)
    assert np.all(np.diff(shares[10:]) < 0)
    assert shares[10] == 1.0
    assert shares[60] == pytest.approx(0.5)
    assert all(0 < one <= 1 for one in shares)
    assert learning_rate_share(0, 1, 0) == 1.0


def test_texts_without_two_tokens_cannot_tune_a_model(tmp_path, tiny_model_path):
    target = load_target(str(tiny_model_path))
    with pytest.raises(InputError, match="no held-out text has two tokens"):
        train_adapter(tmp_path, target, ["", "a"], POLICY, context=None)


def test_the_default_is_the_loss():
    assert FsdParameters().score == "loss"
