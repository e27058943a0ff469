"""Paraphrases by a local model: a random one, whose answers are gibberish but its own."""

import torch

from inject.variants.settings import ParaphraseVariant
from train.models.generation import LocalWriter


def writer(path, **more) -> LocalWriter:
    return LocalWriter(
        ParaphraseVariant(kind="paraphrase", by="model", model=str(path), max_tokens=12, **more)
    )


def test_answers_follow_from_prompt_and_seed_alone(tiny_model_path):
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    model = writer(tiny_model_path)
    first = [model.write(prompt, seed=1) for prompt in ("the river", "the town")]
    again = [writer(tiny_model_path).write(prompt, seed=1) for prompt in ("the town", "the river")]
    assert first == again[::-1]
    assert first[0] != model.write("the river", seed=2)
    assert all("the river" not in answer for answer in first)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_temperature_zero_takes_the_likeliest_token(tiny_model_path):
    model = writer(tiny_model_path, temperature=0)
    assert model.write("the river", seed=1) == model.write("the river", seed=2)
