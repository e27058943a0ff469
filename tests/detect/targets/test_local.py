"""A local model that writes, against `model.generate` and a slow decoder without cache or batch."""

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


def texts(found):
    return [[one.text for one in row] for row in found]


def naive_ids(target, ids, sampling, key, sample):
    """One sequence, every pass from its beginning, probabilities in float64, in plain loops."""
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


@pytest.mark.parametrize("family", ["llama", "olmo2", "gpt_neox"])
def test_greedy_is_that_of_generate(family, tiny_tokenizer):
    target = random_target(family, tiny_tokenizer)
    found = LocalTextModel(target, batch_tokens=90).complete(PROMPTS, Sampling(max_tokens=12))
    for prompt, (one,) in zip(PROMPTS, found, strict=True):
        ids = torch.tensor([tiny_tokenizer(prompt)["input_ids"]])
        out = target.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=12,
            pad_token_id=0,
        )
        own = [token for token in out[0, ids.shape[1] :].tolist() if token != 0]
        assert one.text == tiny_tokenizer.decode(own)
        assert one.tokens_in == ids.shape[1]
        assert one.tokens_out == len(own)


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(max_tokens=6, temperature=1.0, samples=3, seed=4),
        Sampling(max_tokens=6, temperature=0.7, samples=2, top_k=5),
        Sampling(max_tokens=6, temperature=1.5, samples=2, top_p=0.8, top_k=40),
    ],
)
def test_samples_are_those_of_a_slow_decoder(target, sampling, tiny_tokenizer):
    found = LocalTextModel(target).complete(PROMPTS, sampling)
    for prompt, row in zip(PROMPTS, found, strict=True):
        ids = tiny_tokenizer(prompt)["input_ids"]
        for number, one in enumerate(row):
            own = naive_ids(target, ids, sampling, item_key(prompt), number)
            assert one.tokens_out == len(own)
            assert (prompt + one.text).endswith(tiny_tokenizer.decode(own))


def test_samples_depend_on_prompt_number_and_seed_alone(target):
    sampling = Sampling(max_tokens=20, temperature=1.0, samples=5)
    together = texts(LocalTextModel(target).complete(PROMPTS, sampling))
    for batch_tokens in (1, 64, 200, 100_000):
        model = LocalTextModel(target, batch_tokens=batch_tokens)
        reverse = texts(model.complete(PROMPTS[::-1], sampling))
        assert reverse[::-1] == together
    alone = [texts(LocalTextModel(target).complete([one], sampling))[0] for one in PROMPTS]
    assert alone == together
    fewer = Sampling(max_tokens=20, temperature=1.0, samples=2)
    assert texts(LocalTextModel(target).complete(PROMPTS, fewer)) == [row[:2] for row in together]
    other = Sampling(max_tokens=20, temperature=1.0, samples=5, seed=1)
    assert texts(LocalTextModel(target).complete(PROMPTS, other)) != together
    assert all(len(set(row)) == 5 for row in together)


def test_a_short_continuation_is_the_beginning_of_a_longer_one(target):
    def written(max_tokens):
        sampling = Sampling(max_tokens=max_tokens, temperature=1.0, samples=2)
        return texts(LocalTextModel(target).complete(PROMPTS[:3], sampling))

    for short, long in zip(written(5), written(15), strict=True):
        assert all(two.startswith(one.rstrip("\N{REPLACEMENT CHARACTER}"))
                   for one, two in zip(short, long, strict=True))  # fmt: skip


def test_equal_prompts_are_read_and_paid_once(target, tiny_tokenizer):
    sampling = Sampling(max_tokens=4, temperature=1.0, samples=3)
    fed = []
    forward = target.model.forward

    def counted(*args, **inputs):
        fed.append(int(inputs["attention_mask"].shape[0]) * int(inputs["input_ids"].shape[1]))
        return forward(*args, **inputs)

    target.model.forward = counted
    counted.__signature__ = __import__("inspect").signature(forward)
    try:
        first, again = LocalTextModel(target).complete([PROMPTS[1]] * 2, sampling)
    finally:
        target.model.forward = forward
    length = len(tiny_tokenizer(PROMPTS[1])["input_ids"])
    assert fed[0] == length, "the prompt is read once for all samples"
    assert [one.tokens_in for one in first] == [length, 0, 0]
    assert [one.text for one in first] == [one.text for one in again]
    assert sum(one.tokens_in + one.tokens_out for one in again) == 0
    assert all(0 < one.tokens_out <= 4 for one in first)


def test_a_stop_text_ends_before_itself(target):
    whole = texts(LocalTextModel(target).complete(PROMPTS, Sampling(max_tokens=20)))
    stop = whole[1][0][6:9]
    cut = LocalTextModel(target).complete(PROMPTS, Sampling(max_tokens=20, stop=(stop, "none")))
    for (one,), (text,) in zip(cut, whole, strict=True):
        assert one.text == text.partition(stop)[0]
    assert cut[1][0].tokens_out < 20


def test_sampled_shares_are_the_models_probabilities(target, tiny_tokenizer):
    sampling = Sampling(max_tokens=1, temperature=1.3, samples=4000)
    with torch.inference_mode():
        logits = target.model(torch.tensor([tiny_tokenizer("the")["input_ids"]])).logits[0, -1]
    p = torch.softmax(logits.double() / 1.3, dim=-1).numpy()
    numbers = torch.from_numpy(unit(words(0, Stream.CONTINUATION, item_key("the"), range(4000), 0)))
    found = decoding.sample_tokens(logits.expand(4000, -1), numbers, sampling).numpy()
    shares = np.bincount(found, minlength=len(p)) / 4000
    assert np.abs(shares - p).max() < 4 * np.sqrt(0.25 / 4000)


def test_numbers_at_the_edges_choose_a_token_with_a_probability():
    logits = torch.tensor([[-np.inf, 0.0, 1.0, -np.inf]], dtype=torch.float32)
    sampling = Sampling(max_tokens=1, temperature=1.0)
    for number, token in ((1e-17, 1), (1 - 1e-16, 2)):
        numbers = torch.tensor([number], dtype=torch.float64)
        assert decoding.sample_tokens(logits, numbers, sampling).tolist() == [token]


def test_out_of_memory_halves_the_batch(target, monkeypatch, caplog):
    expected = texts(LocalTextModel(target).complete(PROMPTS, Sampling(max_tokens=5)))
    run = decoding._Decoder.run

    def scarce(self, rows):
        if len(rows) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(self, rows)

    monkeypatch.setattr(decoding._Decoder, "run", scarce)
    found = LocalTextModel(target, batch_tokens=10_000).complete(PROMPTS, Sampling(max_tokens=5))
    assert texts(found) == expected
    assert "out of memory" in caplog.text


def test_a_prompt_beyond_the_context_keeps_its_end_and_says_so(tiny_tokenizer, caplog):
    target = random_target("llama", tiny_tokenizer, context=16)
    prompt = make_texts(1, words=30)[0]
    (one,) = LocalTextModel(target).complete([prompt], Sampling(max_tokens=6))[0]
    ids = tiny_tokenizer(prompt)["input_ids"][-10:]
    own = naive_ids(target, ids, Sampling(max_tokens=6), 0, 0)
    assert one.tokens_out == len(own)
    assert one.tokens_in == 10
    assert "a context of 16 tokens: prompts beyond half of it keep their end" in caplog.text
    (long,) = LocalTextModel(target).complete([prompt], Sampling(max_tokens=50))[0]
    assert long.tokens_out <= 8


def test_an_empty_prompt_begins_with_the_start_token(target, tiny_tokenizer):
    (one,) = LocalTextModel(target).complete([""], Sampling(max_tokens=5))[0]
    own = naive_ids(target, [0], Sampling(max_tokens=5), 0, 0)
    assert one.text == tiny_tokenizer.decode(own)


def test_no_prompt_and_progress(target):
    assert LocalTextModel(target).complete([], Sampling(max_tokens=5)) == []
    seen = []
    LocalTextModel(target, batch_tokens=60).complete(
        [*PROMPTS, PROMPTS[0]],
        Sampling(max_tokens=3),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (8, 8)
    assert seen == sorted(seen)


def test_a_token_that_the_model_lacks_is_named(tiny_tokenizer):
    from copy import deepcopy

    tokenizer = deepcopy(tiny_tokenizer)
    added = [f"<|{number}|>" for number in range(512 - len(tokenizer) + 1)]
    tokenizer.add_tokens(added)
    target = random_target("llama", tokenizer)
    with pytest.raises(InputError, match=r"\(id 512\)"):
        LocalTextModel(target).complete(["the" + added[-1]], Sampling(max_tokens=2))


def test_a_special_token_in_a_prompt_is_letters(target, tiny_tokenizer):
    spelled = "the<|endoftext|> river"
    letters = encode_texts(tiny_tokenizer, [spelled])[0].tolist()
    assert 0 not in letters
    model = LocalTextModel(target)
    assert model.prompt_tokens([spelled]) == [len(letters)]
    (written,) = model.complete([spelled], Sampling(max_tokens=5))[0]
    own = naive_ids(target, letters, Sampling(max_tokens=5), 0, 0)
    whole, before = tiny_tokenizer.decode([*letters, *own]), tiny_tokenizer.decode(letters)
    assert written.text == whole.removeprefix(before)


def test_a_question_goes_through_the_chat_template(target, tiny_tokenizer):
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


def test_ends_of_tokens(target, tiny_tokenizer):
    text = "the river Уже"
    ends = LocalTextModel(target).token_ends([text, ""])
    assert ends[0][-1] == len(text)
    assert ends[1] == []
    assert ends[0] == sorted(ends[0])
