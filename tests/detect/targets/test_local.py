"""A local text model, against `model.generate` and a slow decoder without cache or batch."""

import numpy as np
import pytest
import torch

from detect.engine.target import make_target
from detect.targets import decoding
from detect.targets.decoding import end_tokens
from detect.targets.local import LocalTextModel
from detect.targets.text_model import Sampling
from inject.corpus.tokenizer import encode_texts
from inject.errors import InputError
from inject.keyed import Stream, item_key, unit, words
from tests.conftest import make_texts
from tests.detect.models import random_target

PROMPTS = ["the", *make_texts(3, words=5), *make_texts(2, seed=1, words=17), "Уже ночь, and"]


@pytest.fixture(scope="module")
def target(tiny_tokenizer):
    return random_target("llama", tiny_tokenizer)


def texts(rows):
    return [[completion.text for completion in row] for row in rows]


def naive_ids(target, ids, sampling, key, sample):
    """One sequence in plain loops: each pass starts over, probabilities are float64."""
    written = []
    for position in range(sampling.max_tokens):
        with torch.inference_mode():
            logits = target.model(torch.tensor([[*ids, *written]])).logits[0, -1].double().numpy()
        if sampling.temperature == 0:
            token = int(np.argmax(logits))
        else:
            odds = np.exp((logits - logits.max()) / sampling.temperature)
            p = odds / odds.sum()
            order = sorted(range(len(p)), key=lambda token: -p[token])
            if sampling.top_k is not None:
                for token in order[sampling.top_k :]:
                    p[token] = 0
                p = p / p.sum()
            if sampling.top_p < 1:
                total = 0.0
                for token in order:
                    before, total = total, total + p[token]
                    if before >= sampling.top_p:
                        p[token] = 0
                p = p / p.sum()
            number = float(unit(words(sampling.seed, Stream.CONTINUATION, key, sample, position)))
            total, token = 0.0, 0
            for token in range(len(p)):
                total += p[token]
                if total > number:
                    break
        if token in end_tokens(target):
            break
        written.append(token)
    return written


SAMPLINGS = (
    Sampling(max_tokens=6, temperature=1.0, samples=3, seed=4),
    Sampling(max_tokens=6, temperature=0.7, samples=2, top_k=5),
    Sampling(max_tokens=6, temperature=1.5, samples=2, top_p=0.8, top_k=40),
)


@pytest.mark.parametrize(
    ("family", "sampling", "prompts"),
    [
        ("llama", SAMPLINGS[0], PROMPTS),
        ("llama", Sampling(max_tokens=12), PROMPTS),
        ("olmo2", SAMPLINGS[1], PROMPTS[2:5]),
        ("gpt_neox", SAMPLINGS[2], PROMPTS[2:5]),
        # Of equal length: the library decides about padding next to a sliding window.
        ("mistral", SAMPLINGS[0], PROMPTS[1:2]),
    ],
)
def test_samples_match_a_slow_decoder(family, sampling, prompts, tiny_tokenizer):
    more = {"sliding_window": 6} if family == "mistral" else {}
    target = random_target(family, tiny_tokenizer, **more)
    rows = LocalTextModel(target).complete(prompts, sampling)
    for prompt, row in zip(prompts, rows, strict=True):
        ids = tiny_tokenizer(prompt)["input_ids"]
        assert row[0].tokens_in == len(ids)
        for number, completion in enumerate(row):
            own = naive_ids(target, ids, sampling, item_key(prompt), number)
            assert completion.tokens_out == len(own)
            assert (prompt + completion.text).endswith(tiny_tokenizer.decode(own))


def test_samples_depend_only_on_prompt_number_and_seed(target):
    sampling = Sampling(max_tokens=10, temperature=1.0, samples=3)
    together = texts(LocalTextModel(target).complete(PROMPTS, sampling))
    for batch_tokens in (1, 100):
        model = LocalTextModel(target, batch_tokens=batch_tokens)
        reverse = texts(model.complete(PROMPTS[::-1], sampling))
        assert reverse[::-1] == together
    assert all(len(set(row)) == 3 for row in together)
    others = {
        "fewer": Sampling(max_tokens=10, temperature=1.0, samples=2),
        "another seed": Sampling(max_tokens=10, temperature=1.0, samples=3, seed=1),
    }
    results = {
        name: texts(LocalTextModel(target).complete(PROMPTS[:3], other))
        for name, other in others.items()
    }
    assert results["fewer"] == [row[:2] for row in together[:3]]
    assert results["another seed"] != together[:3]


def test_row_that_fills_a_learned_context_ends_while_others_continue(tiny_tokenizer):
    target = random_target("gpt2", tiny_tokenizer, context=64)
    target.model.generation_config.eos_token_id = None
    random = np.random.default_rng(0)
    # No end token: the first prompt ends when the context is full, with fewer tokens.
    prompts = [random.integers(1, 512, length) for length in (32, 20, 20)]
    sampling = Sampling(max_tokens=40, temperature=1.0, top_p=1.0, samples=1, seed=0)
    together = decoding.generate(target, prompts, range(3), sampling)
    assert together == [
        decoding.generate(target, [prompt], [key], sampling)[0]
        for key, prompt in enumerate(prompts)
    ]
    assert len(together[0][0]) == 32


def test_equal_prompts_are_read_once_and_finished_rows_leave(target, tiny_tokenizer):
    fed = []
    forward = target.model.forward

    def count_call(*args, **inputs):
        fed.append(tuple(inputs["input_ids"].shape))
        return forward(*args, **inputs)

    count_call.__signature__ = __import__("inspect").signature(forward)
    target.model.forward = count_call
    # About a quarter of all tokens end a text.
    target.model.generation_config.eos_token_id = list(range(128))
    sampling = Sampling(max_tokens=20, temperature=1.0, samples=16)
    try:
        first, again = LocalTextModel(target).complete([PROMPTS[1]] * 2, sampling)
    finally:
        target.model.forward = forward
        target.model.generation_config.eos_token_id = 0
    length = len(tiny_tokenizer(PROMPTS[1])["input_ids"])
    assert fed[0] == (1, length), "the prompt is read once for all samples"
    rows = [size for size, _ in fed[1:]]
    assert all(width == 1 for _, width in fed[1:])
    assert rows == sorted(rows, reverse=True)
    assert min(rows) <= 4 < max(rows) == 16
    assert "" in [completion.text for completion in first], "one ended at once"
    own = sum(completion.tokens_out for completion in first)
    assert sum(rows) <= 2 * (own + 16), "fewer than half of what is read is thrown away"
    assert [completion.tokens_in for completion in first] == [length] + [0] * 15
    assert [completion.text for completion in first] == [completion.text for completion in again]
    assert sum(completion.tokens_in + completion.tokens_out for completion in again) == 0


def test_completion_ends_before_the_stop_text(target):
    whole = texts(LocalTextModel(target).complete(PROMPTS, Sampling(max_tokens=20)))
    stop = whole[1][0][6:9]
    cut = LocalTextModel(target).complete(PROMPTS, Sampling(max_tokens=20, stop=(stop, "none")))
    for (shortened,), (text,) in zip(cut, whole, strict=True):
        assert shortened.text == text.partition(stop)[0]
    assert cut[1][0].tokens_out < 20


def test_extreme_random_numbers_choose_a_token_of_positive_probability():
    logits = torch.tensor([[-np.inf, 0.0, 1.0, -np.inf]], dtype=torch.float32)
    sampling = Sampling(max_tokens=1, temperature=1.0)
    for number, token in ((1e-17, 1), (1 - 1e-16, 2)):
        numbers = torch.tensor([number], dtype=torch.float64)
        assert decoding.sample_tokens(logits, numbers, sampling).tolist() == [token]


def test_overlong_prompt_keeps_its_end_and_is_reported(tiny_tokenizer, caplog):
    target = random_target("llama", tiny_tokenizer, context=16)
    prompt = make_texts(1, words=30)[0]
    (completion,) = LocalTextModel(target).complete([prompt], Sampling(max_tokens=6))[0]
    ids = tiny_tokenizer(prompt)["input_ids"][-10:]
    own = naive_ids(target, ids, Sampling(max_tokens=6), 0, 0)
    assert completion.tokens_out == len(own)
    assert completion.tokens_in == 10
    assert "a context of 16 tokens: prompts beyond half of it keep their end" in caplog.text
    (long,) = LocalTextModel(target).complete([prompt], Sampling(max_tokens=50))[0]
    assert long.tokens_out <= 8


def test_token_outside_the_model_vocabulary_is_named(tiny_tokenizer):
    from copy import deepcopy

    tokenizer = deepcopy(tiny_tokenizer)
    added = [f"<|{number}|>" for number in range(512 - len(tokenizer) + 1)]
    tokenizer.add_tokens(added)
    target = random_target("llama", tokenizer)
    with pytest.raises(InputError, match=r"\(id 512\)"):
        LocalTextModel(target).complete(["the" + added[-1]], Sampling(max_tokens=2))


def test_special_token_in_a_prompt_is_read_as_letters(target, tiny_tokenizer):
    spelled = "the<|endoftext|> river"
    letters = encode_texts(tiny_tokenizer, [spelled])[0].tolist()
    assert 0 not in letters
    model = LocalTextModel(target)
    assert model.prompt_tokens([spelled]) == [len(letters)]
    (written,) = model.complete([spelled], Sampling(max_tokens=5))[0]
    own = naive_ids(target, letters, Sampling(max_tokens=5), 0, 0)
    whole, before = tiny_tokenizer.decode([*letters, *own]), tiny_tokenizer.decode(letters)
    assert written.text == whole.removeprefix(before)


def test_chat_question_goes_through_the_template(target, tiny_tokenizer):
    from copy import deepcopy

    tokenizer = deepcopy(tiny_tokenizer)
    tokenizer.chat_template = (
        "{% for one in messages %}{{ one.role }}: {{ one.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}"
    )
    model = LocalTextModel(make_target(target.model, tokenizer, name="chat"))
    sampling = Sampling(max_tokens=6)
    (answered,) = model.answer(["the river"], sampling)[0]
    (completed,) = model.complete(["user: the river\nassistant:"], sampling)[0]
    assert (answered.text, answered.tokens_in) == (completed.text, completed.tokens_in)
    plain = LocalTextModel(target)
    assert plain.answer(["the river"], sampling) == plain.complete(["the river"], sampling)


def test_a_tokenizer_that_ends_every_text_does_not_end_the_prompt(target, tiny_tokenizer):
    from copy import deepcopy

    from tokenizers import processors

    tokenizer = deepcopy(tiny_tokenizer)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)]
    )
    assert tokenizer("the")["input_ids"][-1] == 0
    ending = LocalTextModel(make_target(target.model, tokenizer, name="ending"))
    sampling = Sampling(max_tokens=6)
    assert ending.complete(PROMPTS, sampling) == LocalTextModel(target).complete(PROMPTS, sampling)
