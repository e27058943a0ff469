"""Continuations from a shared prompt, against a slow decoder without cache or batch."""

from contextlib import closing

import numpy as np
import pytest
import torch

from detect.engine.target import make_target
from detect.generation.sampled_continuations import sample_continuations
from detect.targets import decoding
from detect.targets.server import ServerTextModel
from detect.targets.text_model import Sampling
from inject.errors import InputError
from inject.keyed import Stream, item_key, unit, words
from inject.server.address import Server
from tests.conftest import make_texts
from tests.detect.models import random_target
from tests.stub_server import prompt_of, stub_server, text
from train.models.shapes import build_model, load_shape

PROMPTS = [*make_texts(3, words=12), *make_texts(2, seed=1, words=30), "the river"]
NEAR = 1e-5
"""Within so much of an edge between two tokens, a sample may be either of them."""


@pytest.fixture(scope="module")
def target(tiny_tokenizer):
    return random_target("llama", tiny_tokenizer)


def shaped(name, tokenizer):
    """A shipped shape with random weights that are larger, so that distributions are not flat."""
    model = build_model(load_shape(name), 512, tokenizer.eos_token_id, seed=3)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim == 2:
                weights.mul_(4)
    return make_target(model, tokenizer, name=name)


def step(target, ids, temperature, top_p):
    """Edges of the cumulative distribution of the next token, over the whole sequence anew."""
    with torch.inference_mode():
        logits = target.model(torch.tensor([ids])).logits[0, -1].double().numpy()
    p = np.exp((logits - logits.max()) / temperature)
    p /= p.sum()
    if top_p < 1:
        order = np.argsort(-p, kind="stable")
        before = np.cumsum(p[order]) - p[order]
        p[order[before >= top_p]] = 0
        p /= p.sum()
    return np.cumsum(p)


def expected(target, prompt, *, samples, max_tokens, temperature=1.0, top_p=1.0, seed=0):
    """Texts one after another, every token from the beginning; None behind a near tie."""
    tokenizer = target.tokenizer
    start = list(tokenizer(prompt)["input_ids"])
    before = tokenizer.decode(start)
    found = []
    for sample in range(samples):
        ids, tie = list(start), False
        for position in range(max_tokens):
            edges = step(target, ids, temperature, top_p)
            number = unit(words(seed, Stream.CONTINUATION, item_key(prompt), sample, position))
            tie = tie or bool(np.abs(edges - number).min() < NEAR)
            token = int(np.searchsorted(edges, number, side="right"))
            if token == tokenizer.eos_token_id:
                break
            ids.append(token)
        found.append(None if tie else tokenizer.decode(ids)[len(before) :])
    return found


def assert_same(found, wanted):
    sure = [(one, other) for one, other in zip(found, wanted, strict=True) if other is not None]
    assert len(sure) >= len(found) - 1
    assert all(one == other for one, other in sure)


@pytest.mark.parametrize("name", ["llama-1m", "olmo-1m", "olmo2-1m", "gpt-neox-1m", "qwen2-1m"])
def test_samples_are_those_of_a_slow_decoder(name, tiny_tokenizer):
    target = shaped(name, tiny_tokenizer)
    asked = {"samples": 3, "max_tokens": 7, "temperature": 0.9, "top_p": 0.95, "seed": 5}
    found = sample_continuations(target, PROMPTS[:4], **asked)
    wanted = [expected(target, prompt, **asked) for prompt in PROMPTS[:4]]
    for some, others in zip(found, wanted, strict=True):
        assert_same(some, others)
    assert len({text for row in found for text in row}) == 12


@pytest.mark.parametrize("window", [6, 64])
def test_layers_with_a_sliding_window_stay_the_librarys(window, tiny_tokenizer):
    from transformers import MistralConfig, MistralForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = MistralForCausalLM(
            MistralConfig(
                vocab_size=512,
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                max_position_embeddings=128,
                sliding_window=window,
                initializer_range=0.4,
                eos_token_id=0,
            )
        )
    target = make_target(model, tiny_tokenizer, name="window")
    # Of one length: padding beside a window is the library's business.
    asked = {"samples": 4, "max_tokens": 9}
    found = sample_continuations(target, PROMPTS[-1:], **asked)
    assert_same(found[0], expected(target, PROMPTS[-1], **asked))


def test_a_row_that_fills_a_learned_context_ends_while_others_go_on(tiny_tokenizer):
    from transformers import GPT2Config, GPT2LMHeadModel

    size = {"vocab_size": 512, "n_positions": 128, "n_embd": 32, "n_layer": 2, "n_head": 4}
    config = GPT2Config(**size, initializer_range=0.4, eos_token_id=0, bos_token_id=0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        target = make_target(GPT2LMHeadModel(config), tiny_tokenizer, name="gpt2")
    target.model.generation_config.eos_token_id = None
    random = np.random.default_rng(0)
    # No end token: the first prompt ends where the context is full, with 16 tokens fewer.
    prompts = [
        decoding.PromptIds(ids=random.integers(1, 512, length), key=key)
        for key, length in enumerate([64, 40, 40, 40, 40])
    ]
    sampling = Sampling(max_tokens=80, temperature=1.0, top_p=1.0, samples=1, seed=0)
    together = decoding.generate(target, prompts, sampling)
    alone = [decoding.generate(target, [prompt], sampling)[0] for prompt in prompts]
    assert together == alone
    assert len(together[0][0]) == 64


def test_prompts_are_read_once_and_rows_that_ended_leave(target, tiny_tokenizer):
    fed = []
    forward = target.model.forward

    def counted(*args, **inputs):
        fed.append(tuple(inputs["input_ids"].shape))
        return forward(*args, **inputs)

    ids = tiny_tokenizer(PROMPTS[0])["input_ids"]
    counted.__signature__ = __import__("inspect").signature(forward)
    target.model.forward = counted
    # About a quarter of all tokens end a text.
    target.model.generation_config.eos_token_id = list(range(128))
    try:
        found = sample_continuations(target, [PROMPTS[0]], samples=16, max_tokens=20)
    finally:
        target.model.forward = forward
        target.model.generation_config.eos_token_id = 0
    assert fed[0] == (1, len(ids))
    rows = [size for size, _ in fed[1:]]
    assert all(length == 1 for _, length in fed[1:])
    assert rows == sorted(rows, reverse=True)
    assert min(rows) <= 4 < max(rows) == 16
    assert "" in found[0], "one ended at once"
    assert len(fed) <= 20, "nothing is read behind the last token"
    own = sum(len(tiny_tokenizer(one, add_special_tokens=False)["input_ids"]) for one in found[0])
    assert sum(rows) <= 2 * (own + 16), "fewer than half of what is read is thrown away"


def test_a_prompt_without_room_for_its_continuation_is_refused(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer, context=32)
    tokens = len(tiny_tokenizer(PROMPTS[0])["input_ids"])
    fits = sample_continuations(target, PROMPTS[:1], samples=2, max_tokens=32 - tokens)
    assert len(fits[0]) == 2
    with pytest.raises(InputError, match=f"prompt 1 has {tokens} tokens .* 32 positions"):
        sample_continuations(target, ["the", PROMPTS[0]], samples=2, max_tokens=33 - tokens)


@pytest.mark.parametrize(
    "wrong", [{"samples": 0}, {"max_tokens": 0}, {"temperature": 0.0}, {"temperature": -1.0}]
)
def test_numbers_out_of_range(target, wrong):
    with pytest.raises(InputError):
        sample_continuations(target, ["the"], **{"samples": 2, "max_tokens": 3, **wrong})


def test_a_server_is_asked_once_a_sample(tmp_path):
    def behaviour(number, body):
        return text(f" of {prompt_of(body)} {body['seed']}")

    asked = {"samples": 3, "max_tokens": 4, "seed": 2}
    with stub_server(behaviour) as stub:
        for _ in range(2):
            server = Server(base_url=stub.url, model="m")
            model = ServerTextModel(server, cache=tmp_path / "replies")
            with closing(model):
                found = sample_continuations(model, ["a", "b"], **asked)
        assert len(stub.received) == 6, "the second time all replies are there"
        assert {body["temperature"] for body in stub.received} == {1.0}
        assert [len(set(row)) for row in found] == [3, 3]
        assert all(one.startswith(" of b ") for one in found[1])
