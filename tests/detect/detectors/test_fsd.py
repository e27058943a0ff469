"""fsd against its definition; tuning is repeatable and does not change the target."""

import math
import zlib

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from detect.detectors.fsd import DETECTOR, FsdParameters
from detect.engine.forward_pass import token_statistics
from detect.engine.target import load_target
from detect.engine.tuning import train_adapter, with_adapter
from detect.evidence import Evidence
from detect.settings import ScoringPolicy
from detect.token_statistics import EMPTY_TEXT, unscored
from detect.views import LOWERCASE, TEXT
from inject.errors import InputError
from tests.conftest import make_texts
from tests.detect.evidence_samples import random_statistics
from tests.detect.models import random_target

POLICY = ScoringPolicy()
TEXTS = ["one", "two two", "天地玄黃", ""]
NOTHING = unscored(EMPTY_TEXT)


def by_hand(kind, statistics, lowered, text):
    values = sorted(float(value) for value in statistics.log_probability)
    if kind == "min_k":
        values = values[: max(1, len(values) // 5)]
    mean = math.fsum(values) / len(values)
    if kind == "perplexity":
        return -math.exp(-mean)
    if kind == "lowercase":
        return math.fsum(map(float, lowered.log_probability)) / len(lowered) / mean
    return mean / len(zlib.compress(text.encode("utf-8"), 6)) if kind == "zlib" else mean


def rows(first):
    return [*(random_statistics(size, seed=first + size) for size in (1, 9, 40)), NOTHING]


def test_score_is_before_minus_after_for_each_kind():
    """Zhang et al. 2025: the first of the authors' scores is the difference of perplexities."""
    before = {TEXT: rows(0), LOWERCASE: rows(100)}
    after = {view: rows(50 + number) for number, view in enumerate(before)}
    settings = [
        FsdParameters(score=kind, adapters=adapters)
        for kind in ("loss", "perplexity", "lowercase", "min_k", "zlib")
        for adapters in ("all_linear", "peft")
    ]
    tuned = {
        f"{view}-{adapters}": statistics if adapters == "peft" else before[view]
        for view, statistics in after.items()
        for adapters in ("all_linear", "peft")
    }
    columns = DETECTOR.score(Evidence(texts=TEXTS, statistics=before, tuned=tuned), settings)
    for setting, column in zip(settings, columns, strict=True):
        for row, text in enumerate(TEXTS[:3]):
            expected = [
                by_hand(setting.score, views[TEXT][row], views[LOWERCASE][row], text)
                for views in (before, after)
            ]
            if setting.adapters == "all_linear":
                expected[1] = expected[0]
            score = column.scores[row].value
            assert score == pytest.approx(expected[0] - expected[1], abs=1e-12)
        assert EMPTY_TEXT in column.scores[3].reason


@pytest.mark.parametrize(
    ("adapters", "layers", "decay"),
    [
        ("peft", {"q_proj", "v_proj"}, 0.0005),
        (
            "all_linear",
            {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"},
            0.0,
        ),
    ],
)
def test_the_papers_adapters_are_pefts_defaults(
    tmp_path, tiny_model_path, monkeypatch, adapters, layers, decay
):
    decays = []
    optimizer = torch.optim.AdamW

    def recorded(weights, **options):
        decays.append(options["weight_decay"])
        return optimizer(weights, **options)

    monkeypatch.setattr(torch.optim, "AdamW", recorded)
    target = load_target(str(tiny_model_path))
    train_adapter(tmp_path, target, make_texts(2), POLICY, context=None, adapters=adapters)
    saved = load_file(tmp_path / "adapter_model.safetensors")
    assert {name.split(".")[-3] for name in saved} == layers
    assert decays == [decay]


def test_architecture_without_default_layers_is_rejected(tmp_path, tiny_tokenizer):
    target = random_target("olmo2", tiny_tokenizer)
    with pytest.raises(InputError, match=r"no default layers.*Allowed: adapters=all_linear"):
        train_adapter(tmp_path, target, make_texts(2), POLICY, context=None, adapters="peft")


def means(target, texts):
    return [float(np.mean(row.log_probability)) for row in token_statistics(target, texts, POLICY)]


def test_tuning_is_repeatable_helps_its_texts_and_keeps_the_target_unchanged(
    tmp_path, tiny_model_path
):
    def load():
        return load_target(str(tiny_model_path))

    held_out, others = make_texts(20, seed=8, words=15), make_texts(6, seed=9, words=15)
    state = torch.random.get_rng_state()
    runs = []
    for name in ("one", "two"):
        train_adapter(tmp_path / name, load(), held_out, POLICY, context=load().context)
        tuned = with_adapter(load(), tmp_path / name)
        runs.append(means(tuned, [*held_out, *others]))
    assert torch.equal(state, torch.random.get_rng_state())
    assert runs[0] == runs[1]
    plain = means(load(), [*held_out, *others])
    assert np.mean(runs[0][:20]) > np.mean(plain[:20])
    target = load()
    tuned = with_adapter(target, tmp_path / "one")
    assert means(tuned, others) == runs[0][20:]
    assert means(target, others) == plain[20:]


def test_held_out_texts_are_all_read_in_shuffled_order(tmp_path, tiny_model_path):
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
    stripped = [[tuple(item[:4]) for item in epoch] for epoch in epochs]
    assert len({frozenset(item) for item in stripped}) == 1
    assert len({tuple(item) for item in stripped}) == 3
    assert sorted(stripped[0]) != stripped[0]


def test_texts_without_two_tokens_cannot_tune_a_model(tmp_path, tiny_model_path):
    target = load_target(str(tiny_model_path))
    with pytest.raises(InputError, match="no held-out text has two tokens"):
        train_adapter(tmp_path, target, ["", "a"], POLICY, context=None)
