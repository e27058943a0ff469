"""Paraphrases by a local random model, whose answers are gibberish but reproducible."""

import pytest
import torch

from inject.variants.paraphrase import SeededPrompt
from inject.variants.settings import ParaphraseVariant
from train.models.generation import LocalWriter


def writer(path, cache=None, **more) -> LocalWriter:
    settings = {"kind": "paraphrase", "by": "model", "model": str(path), "max_tokens": 12}
    return LocalWriter(ParaphraseVariant(**{**settings, **more}), cache)


def answer(model: LocalWriter, prompt: str, *, seed: int) -> str:
    return model.write([SeededPrompt(prompt, seed)])[0]


def test_answers_depend_only_on_prompt_and_seed(tiny_model_path):
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    model = writer(tiny_model_path)
    first = model.write([SeededPrompt(prompt, 1) for prompt in ("the river", "the town")])
    again = [
        answer(writer(tiny_model_path), prompt, seed=1) for prompt in ("the town", "the river")
    ]
    assert first == again[::-1]
    assert first[0] != answer(model, "the river", seed=2)
    assert all("the river" not in answer for answer in first)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_temperature_zero_takes_the_likeliest_token(tiny_model_path):
    model = writer(tiny_model_path, temperature=0)
    assert answer(model, "the river", seed=1) == answer(model, "the river", seed=2)


def test_answers_are_cached(tiny_model_path, tmp_path, monkeypatch):
    questions = [SeededPrompt("the river", 1), SeededPrompt("the town", 2)]
    model = writer(tiny_model_path, tmp_path)
    first = model.write(questions[:1])
    model.close()
    again = writer(tiny_model_path, tmp_path)
    seen: list[tuple[int, int]] = []
    both = again.write(questions, progress=lambda done, total: seen.append((done, total)))
    assert both[:1] == first
    assert seen == [(1, 2), (2, 2)]
    monkeypatch.setattr(
        LocalWriter, "_write", lambda *_: pytest.fail("a cached answer was generated again")
    )
    assert again.write(questions) == both
    warmer = writer(tiny_model_path, tmp_path, temperature=1.5)
    with pytest.raises(pytest.fail.Exception):
        warmer.write(questions)
