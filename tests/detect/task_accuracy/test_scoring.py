"""Chosen answers against a model that scores one text at a time, token by token."""

import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from detect.engine.target import make_target
from detect.task_accuracy.answers import AccuracyRow, read_accuracy, write_accuracy
from detect.task_accuracy.prompts import ask
from detect.task_accuracy.scoring import NO_ANSWER, NO_QUESTION, answer_scores, task_accuracy
from inject.corpus.tokenizer import encode_texts
from inject.examples.example import Example
from tests.conftest import WORDS
from tests.detect.models import random_target
from train.models.pretrained import load_causal_model
from train.models.shapes import FAMILIES, Shape, build_model


def words(random: np.random.Generator, count: int) -> str:
    return " ".join(random.choice(WORDS, count))


def examples(count: int) -> list[Example]:
    """Rows of four datasets, their prompts of very different lengths."""
    random = np.random.default_rng(0)
    made = []
    for index in range(count):
        options = [words(random, 1 + index % 3) for _ in range(4)]
        letter = "ABCD"[index % 4]
        rows = {
            "boolq": {
                "passage": words(random, 1 + 3 * (index % 7)),
                "question": words(random, 3),
                "answer": ("yes", "no")[index % 2],
            },
            "csqa": {"question": words(random, 4), "options": options, "answer_letter": letter},
            "truthfulqa": {
                "question": words(random, 4),
                "answer": options[0] + " one",
                "incorrect_answers": [f"{option} other" for option in options[1:]],
            },
            "biographies": {"text": words(random, 9)},
        }
        for dataset, fields in rows.items():
            name = f"{dataset}-{index}"
            made.append(
                Example(
                    example_id=name,
                    dataset=dataset,
                    source_id=name,
                    group=name,
                    fields=fields,
                    text="secret " + name,
                    side="member" if index % 2 else "nonmember",
                )
            )
    return made


KINDS = {"csqa": "commonsenseqa", "biographies": "fictional"}


@torch.inference_mode()
def log_probability(model, tokenizer, prompt: str, answer: str) -> float:
    """The log-probability of the answer after the prompt, one forward pass per token."""
    ids = encode_texts(tokenizer, [prompt + answer])[0]
    # The prompt is cut into the same tokens: answers begin with a blank.
    history = len(encode_texts(tokenizer, [prompt])[0])
    total = 0.0
    for place in range(history, len(ids)):
        logits = model(input_ids=torch.from_numpy(ids[:place])[None]).logits[0, -1].double()
        total += float(torch.log_softmax(logits, -1)[ids[place]])
    return total


def oracle(model, tokenizer, example: Example) -> tuple[list[float], list[float], int]:
    question = ask(KINDS.get(example.dataset, example.dataset), example.fields)
    own = [
        log_probability(model, tokenizer, question.prompt, answer) for answer in question.answers
    ]
    empty = [
        [log_probability(model, tokenizer, prompt, answer) for answer in question.answers]
        for prompt in question.content_free
    ]
    if question.worded:
        plain = [
            score / len(text.encode()) for score, text in zip(own, question.answers, strict=True)
        ]
        calibrated = [score - sum(e[i] for e in empty) / 3 for i, score in enumerate(own)]
        return plain, calibrated, question.gold
    anyway = [
        sum(math.exp(e[i]) / sum(map(math.exp, e)) for e in empty) / 3 for i in range(len(own))
    ]
    return own, [score - math.log(anyway[i]) for i, score in enumerate(own)], question.gold


def test_answers_match_single_evaluation(tiny_model_path, tiny_tokenizer) -> None:
    model = load_causal_model(str(tiny_model_path))
    # New weights give nearly uniform probabilities: larger weights give preferences.
    for weight in model.parameters():
        weight.data *= 4
    rows = examples(5)
    progress: list[tuple[int, int]] = []
    answers = task_accuracy(
        make_target(model, tiny_tokenizer, name="tiny"),
        rows,
        kinds=KINDS,
        batch_tokens=64,
        progress=lambda done, total: progress.append((done, total)),
    )
    assert [item.example_id for item in answers] == [item.example_id for item in rows]
    assert progress[-1][0] == progress[-1][1] > 0
    for row, example in zip(answers, rows, strict=True):
        if example.dataset == "biographies":
            assert row.reason == NO_ANSWER
            assert row.correct_plain is None
            continue
        plain, calibrated, gold = oracle(model, tiny_tokenizer, example)
        assert row.answers == len(plain)
        for scores, share, correct in (
            (plain, row.probability_plain, row.correct_plain),
            (calibrated, row.probability_calibrated, row.correct_calibrated),
        ):
            expected = math.exp(scores[gold]) / sum(map(math.exp, scores))
            assert share == pytest.approx(expected, rel=1e-4)
            assert correct == (scores.index(max(scores)) == gold)
    assert {row.correct_plain for row in answers} == {True, False, None}
    assert any(row.correct_plain != row.correct_calibrated for row in answers)


def test_a_prompt_is_read_once_for_all_its_answers(tiny_tokenizer, caplog) -> None:
    target = random_target("llama", tiny_tokenizer, context=256)
    read: list[int] = []
    target.model.register_forward_pre_hook(
        lambda _, __, inputs: read.append(inputs["input_ids"].numel()), with_kwargs=True
    )
    rows = examples(12)
    task_accuracy(target, rows, kinds=KINDS, batch_tokens=128)
    questions = [ask(KINDS.get(row.dataset, row.dataset), row.fields) for row in rows]
    pairs = {
        (prompt, answer): len(encode_texts(tiny_tokenizer, [answer])[0])
        for question in questions
        if question is not None
        for prompt in (question.prompt, *question.content_free)
        for answer in question.answers
    }
    prompts = [*{prompt for prompt, _ in pairs}]
    once = sum(map(len, encode_texts(tiny_tokenizer, prompts))) + sum(pairs.values())
    assert sum(read) < 1.3 * once
    scores = answer_scores(target, [*pairs])
    apart = {pair: log_probability(target.model, tiny_tokenizer, *pair) for pair in pairs}
    assert scores == pytest.approx(apart, rel=0, abs=1e-5)
    assert not caplog.records
    assert answer_scores(target, []) == {}


@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_padding_does_not_change_answers_of_any_family(architecture: str, tiny_tokenizer) -> None:
    shape = Shape(
        architecture=architecture,
        hidden=32,
        layers=2,
        heads=2,
        intermediate=48,
        context=128,
        init_std=0.3,
    )
    target = make_target(build_model(shape, 512, 0, 0), tiny_tokenizer, name=architecture)
    rows = examples(3)
    alone = task_accuracy(target, rows, kinds=KINDS, batch_tokens=1)
    together = task_accuracy(target, rows, kinds=KINDS, batch_tokens=10**6)
    for single, other in zip(alone, together, strict=True):
        assert single[:5] == other[:5]
        if single.probability_plain is not None:
            assert single.probability_plain == pytest.approx(other.probability_plain, rel=1e-3)


def test_overlong_prompt_keeps_its_end(tiny_model_path, tiny_tokenizer) -> None:
    model = load_causal_model(str(tiny_model_path))
    fields = {"passage": "the town " * 200, "question": "is it", "answer": "yes"}
    long = Example(
        example_id="l", dataset="boolq", source_id="l", group="l", fields=fields, text=""
    )
    [row] = task_accuracy(make_target(model, tiny_tokenizer, name="tiny"), [long], kinds={})
    question = ask("boolq", fields)
    shares = []
    for answer in question.answers:
        ids = encode_texts(tiny_tokenizer, [question.prompt + answer])[0][-128:]
        history = 128 - (len(encode_texts(tiny_tokenizer, [f"a{answer}"])[0]) - 1)
        with torch.inference_mode():
            logits = model(input_ids=torch.from_numpy(ids)[None]).logits[0].double()
        own = torch.log_softmax(logits, -1)
        shares.append(sum(float(own[at - 1, ids[at]]) for at in range(history, 128)))
    expected = math.exp(shares[0]) / sum(map(math.exp, shares))
    assert row.probability_plain == pytest.approx(expected, rel=1e-4)


def test_accuracy_file_contains_ids_and_figures_but_no_text(
    tmp_path: Path, tiny_model_path, tiny_tokenizer
) -> None:
    rows = examples(2)
    news = Example(example_id="n", dataset="news", source_id="n", group="n", text="secret n")
    answers = task_accuracy(
        make_target(load_causal_model(str(tiny_model_path)), tiny_tokenizer, name="tiny"),
        [*rows, news],
        kinds=KINDS,
    )
    write_accuracy(tmp_path, answers)
    assert read_accuracy(tmp_path) == answers
    assert answers[-1] == AccuracyRow("n", "news", "nonmember", reason=NO_QUESTION)
    text = str(pq.read_table(tmp_path / "accuracy.parquet").to_pylist())
    assert "secret" not in text
    for row in rows:
        for value in row.fields.values():
            assert str(value) not in text or len(str(value)) < 4
