"""Paraphrases by a real OpenAI-compatible server: `transformers serve` with a model of our own."""

from pathlib import Path

import pytest

from inject.errors import InputError
from inject.variants.paraphrase import Question, ServerTextGenerator
from inject.variants.settings import ParaphraseVariant
from tests.served_model import Served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def writer(served: Served, cache: Path, **more) -> ServerTextGenerator:
    settings = {
        "kind": "paraphrase", "by": "model", "model": str(served.model), "base_url": served.url,
        "temperature": 0.7, "max_tokens": 16,
    }  # fmt: skip
    return ServerTextGenerator(ParaphraseVariant(**{**settings, **more}), cache)


def test_a_served_model_writes(served, tmp_path):
    questions = [Question("the river of the town", seed) for seed in (1, 2, 3)]
    one = writer(served, tmp_path)
    answers = one.write(questions)
    assert all(isinstance(answer, str) and answer for answer in answers)
    assert one.notes() == ()
    assert writer(served, tmp_path, base_url=served.url).write(questions) == answers
    [short] = writer(served, tmp_path, max_tokens=1).write(questions[:1])
    assert 0 < len(short) < len(answers[0])


def test_a_model_that_is_not_served(served, tmp_path):
    with pytest.raises(InputError, match="gave no answer") as found:
        writer(served, tmp_path, model=str(tmp_path / "other")).write([Question("the river", 0)])
    assert found.value.where == served.url
