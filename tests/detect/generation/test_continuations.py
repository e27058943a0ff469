"""Prompt lengths, and the requests that a model receives."""

import json
from decimal import Decimal

import pytest

from detect.detector_settings import needs_of, parse_detectors, with_grids
from detect.evidence.continuations import Continuations
from detect.generation.continuations import (
    ContinuationRequest,
    Continued,
    PromptLength,
    PromptSplit,
    continue_texts,
    divide,
    read_request,
    request_record,
)
from detect.targets.local import LocalTextModel
from detect.targets.text_model import Completion
from inject.errors import InputError
from tests.conftest import make_texts
from tests.detect.models import random_target


class Scribe:
    """Answers with its own counter, and records its requests."""

    name = "scribe"

    def __init__(self):
        self.asked = []

    def complete(self, prompts, sampling, *, progress=None):
        self.asked.append((list(prompts), sampling))
        return [
            [
                Completion(f" {prompt[-3:]} {number}", 5 if number == 0 else 0, 2)
                for number in range(sampling.samples)
            ]
            for prompt in prompts
        ]

    def answer(self, questions, sampling, *, progress=None):
        return self.complete([f"Q:{question}" for question in questions], sampling)


@pytest.mark.parametrize(
    ("unit", "amount", "beginning", "remainder"),
    [
        ("share", "0.5", "One  two", "\nthree four five "),
        ("words", "1", "One", "  two\nthree four five "),
        ("words", "4", "One  two\nthree four", " five "),
    ],
)
def test_text_is_divided_between_words_without_loss(unit, amount, beginning, remainder):
    text = "One  two\nthree four five "
    division = divide(text, PromptLength(unit, Decimal(amount)), None)
    assert division == PromptSplit(beginning, remainder, None)
    assert division.beginning + division.rest == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty text"),
        (" \n", "empty text"),
        ("one", "1 words are too few to divide at share 0.5"),
        ("夜深了村里的人都睡了", "1 words are too few"),
    ],
)
def test_indivisible_text_has_a_reason(text, reason):
    assert reason in divide(text, PromptLength(), None)
    (result,) = continue_texts(Scribe(), [text], ContinuationRequest())
    assert (result.texts, result.tokens_out) == ((), 0)
    assert reason in result.reason


def test_remainder_has_as_many_tokens_as_the_prompt(tiny_tokenizer):
    """Duarte et al. 2024: a prefix of 32 or 50 tokens and a suffix of the same length."""
    model = LocalTextModel(random_target("llama", tiny_tokenizer))
    text = make_texts(1, words=30)[0]
    ids = tiny_tokenizer(text)["input_ids"]
    request = ContinuationRequest(beginning=PromptLength("tokens", Decimal(8)))
    (result,) = continue_texts(model, [text], request)
    assert tiny_tokenizer(result.beginning)["input_ids"] == ids[:8]
    assert result.beginning + result.rest == tiny_tokenizer.decode(ids[:16])
    assert 0 < result.tokens_out <= 8
    (short,) = continue_texts(model, ["the river"], request)
    assert "fewer than twice 8" in short.reason
    with pytest.raises(InputError, match="requires the model's tokenizer"):
        continue_texts(Scribe(), [text], request)


def test_continuation_may_be_as_long_as_the_remainder(tiny_tokenizer):
    model = LocalTextModel(random_target("llama", tiny_tokenizer))
    short, long = make_texts(1, words=10)[0], make_texts(1, words=60)[0]
    results = continue_texts(model, [short, long], ContinuationRequest())
    lengths = [len(tiny_tokenizer(result.rest)["input_ids"]) for result in results]
    for result, length in zip(results, lengths, strict=True):
        assert length < result.tokens_out <= length + 24
    scribe = Scribe()
    continue_texts(scribe, [short, long], ContinuationRequest(max_tokens=40))
    assert sorted(sampling.max_tokens for _, sampling in scribe.asked) == [32, 40]


def test_results_keep_text_order_and_equal_texts_are_requested_once():
    scribe = Scribe()
    texts = ["a b", "", "c d e f", "a b", *make_texts(300, words=6)]
    request = ContinuationRequest(samples=2, temperature=1.0, top_k=7, seed=3)
    seen = []
    results = continue_texts(
        scribe, texts, request, progress=lambda done, total: seen.append((done, total))
    )
    assert results[0] == results[3] == Continued("a", " b", (" a 0", " a 1"), 5, 4)
    assert [result.reason is None for result in results[:4]] == [True, False, True, True]
    sent = [prompt for prompts, _ in scribe.asked for prompt in prompts]
    assert sent.count("a") == 1
    assert seen[-1] == (303, 303)
    sampling = scribe.asked[0][1]
    assert (sampling.samples, sampling.temperature, sampling.top_k, sampling.seed) == (2, 1.0, 7, 3)


def test_killed_run_requests_only_the_missing_answers(tmp_path):
    class Mortal(Scribe):
        def complete(self, prompts, sampling, *, progress=None):
            if len(self.asked) == 2:
                raise KeyboardInterrupt
            return super().complete(prompts, sampling)

    texts = make_texts(300, words=6)
    request = ContinuationRequest(samples=2, temperature=1.0)
    whole = continue_texts(Scribe(), texts, request)
    mortal, again = Mortal(), Scribe()
    with pytest.raises(KeyboardInterrupt):
        continue_texts(mortal, texts, request, answers=tmp_path / "answers")
    assert continue_texts(again, texts, request, answers=tmp_path / "answers") == whole
    requests = [
        (prompt, sampling.max_tokens)
        for prompts, sampling in mortal.asked + again.asked
        for prompt in prompts
    ]
    assert len(requests) == len(set(requests))
    other = ContinuationRequest(samples=2, temperature=1.0, seed=1)
    continue_texts(third := Scribe(), texts, other, answers=tmp_path / "answers")
    assert len(third.asked) == len(mortal.asked + again.asked)


@pytest.mark.parametrize("damage", [lambda text: text[:-9], lambda text: "", lambda text: "[]"])
def test_damaged_answers_are_reported_and_requested_again(tmp_path, damage, caplog):
    texts, request = make_texts(30, words=6), ContinuationRequest()
    whole = continue_texts(Scribe(), texts, request, answers=tmp_path)
    for path in tmp_path.iterdir():
        path.write_text(damage(path.read_text()))
    again = Scribe()
    assert continue_texts(again, texts, request, answers=tmp_path) == whole
    assert len(caplog.messages) == len(again.asked) == len(list(tmp_path.iterdir()))
    assert all(str(tmp_path) in note and "damaged" in note for note in caplog.messages)
    continue_texts(third := Scribe(), texts, request, answers=tmp_path)
    assert third.asked == []


def test_detector_requests_round_trip():
    for need in needs_of(with_grids(parse_detectors("all"))):
        if isinstance(need, Continuations):
            record = json.loads(json.dumps(request_record(need.request)))
            assert read_request(record) == need.request
            assert request_record(read_request(record)) == record
