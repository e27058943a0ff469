"""Several sampled continuations of each prompt, of a local model and of a server."""

from contextlib import closing

import pytest

from detect.targets.local import sample_continuations
from detect.targets.server import ServerTextModel
from inject.errors import InputError
from inject.server.request import Server
from tests.conftest import make_texts
from tests.detect.models import random_target
from tests.stub_server import prompt_of, stub_server, text

PROMPTS = make_texts(1, words=12)


def test_prompt_without_room_for_its_continuation_is_rejected(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer, context=32)
    tokens = len(tiny_tokenizer(PROMPTS[0])["input_ids"])
    fits = sample_continuations(target, PROMPTS[:1], samples=2, max_tokens=32 - tokens)
    assert len(fits[0]) == 2
    with pytest.raises(InputError, match=f"prompt 1 has {tokens} tokens .* 32 positions"):
        sample_continuations(target, ["the", PROMPTS[0]], samples=2, max_tokens=33 - tokens)


def test_server_receives_one_request_per_sample(tmp_path):
    def behaviour(number, body):
        return text(f" of {prompt_of(body)} {body['seed']}")

    settings = {"samples": 3, "max_tokens": 4, "seed": 2}
    with stub_server(behaviour) as stub:
        for _ in range(2):
            server = Server(base_url=stub.url, model="m")
            model = ServerTextModel(server, cache=tmp_path / "replies")
            with closing(model):
                samples = sample_continuations(model, ["a", "b"], **settings)
        assert len(stub.received) == 6, "the second time all replies are there"
        assert {body["temperature"] for body in stub.received} == {1.0}
        assert [len(set(row)) for row in samples] == [3, 3]
        assert all(sample.startswith(" of b ") for sample in samples[1])
