"""A served model as a `TextModel`: samples, stops, costs, and what it can show."""

from contextlib import closing

import pytest

from detect.targets.server import ServerTextModel
from detect.targets.text_model import Completion, Sampling, TextModel
from inject.errors import InputError
from inject.server.address import Server
from tests.stub_server import Answer, prompt_of, refused, stub_server, text


def model(url, cache=None, **more):
    server = Server(**{"base_url": url, "model": "m", "timeout": 5, "retries": 1, **more})
    return closing(ServerTextModel(server, cache=cache))


def test_each_sample_of_each_prompt_is_asked_with_a_seed_of_its_own(tmp_path):
    sampling = Sampling(max_tokens=4, temperature=0.8, samples=3, top_p=0.9, seed=11)
    seen: list[tuple[int, int]] = []

    def behaviour(number, body):
        return text(f"{prompt_of(body)} {body['seed']}", usage={})

    with stub_server(behaviour) as stub:
        with model(stub.url, tmp_path / "r") as one:
            written: TextModel = one
            found = written.complete(
                ["a", "b"], sampling, progress=lambda done, total: seen.append((done, total))
            )
        seeds = {body["seed"] for body in stub.received}
        assert len(seeds) == 3
        assert 11 in seeds
        assert all(0 <= seed < 2**31 for seed in seeds)
        assert len(stub.received) == 6
        assert [[one.text.split()[0] for one in row] for row in found] == [["a"] * 3, ["b"] * 3]
        assert len({one.text for one in found[0]}) == 3
        assert found[0][0] == Completion("a 11", 0, 0)
        assert seen[0] == (0, 2)
        assert seen[-1] == (2, 2)
        # A prompt's samples are the same whatever stands beside it, and in whatever order.
        with model(stub.url, tmp_path / "r") as again:
            assert again.complete(["b"], sampling) == found[1:]
        assert len(stub.received) == 6


def test_text_from_a_stop_on_is_cut_also_where_the_server_wrote_it():
    with (
        stub_server(lambda number, body: text("one\ntwo. three")) as stub,
        model(stub.url) as one,
    ):
        [[found]] = one.complete(["a"], Sampling(max_tokens=9, stop=(".", "\n")))
    assert found == Completion("one", 3, 2)
    assert stub.received[0]["stop"] == [".", "\n"]


def test_costs_are_counted_before_and_after(tmp_path):
    sampling = Sampling(max_tokens=10)
    with stub_server() as stub, model(stub.url, tmp_path / "r") as one:
        one.complete(["12345678"], sampling)
        counting = one.counting()
        blank = counting.complete(["12345678", "1234", "1234"], sampling)
        assert blank == [[Completion("", 0, 0)]] * 3
        counting.answer(["123456789"], sampling)
        assert counting.estimate() == (3, 1, 1 + 3, 20)
        assert len(stub.received) == 1
        assert one.cost[:4] == (1, 0, 3, 2)
        assert one.notes() == ()


def test_a_parameter_that_is_refused_is_left_out_aloud_and_asked_about_once(tmp_path):
    def behaviour(number, body):
        return refused(422, "unexpected field top_k") if "top_k" in body else text("x")

    sampling = Sampling(max_tokens=3, temperature=1.0, samples=2, top_k=50)
    with stub_server(behaviour) as stub:
        for _ in range(2):
            with model(stub.url, tmp_path / "r") as one:
                assert one.counting().complete(["a"], sampling)
                one.complete(["a"], sampling)
                assert "does not take top_k = 50" in one.notes()[0]
                assert "all samples were alike for each of 1 prompts" in one.notes()[1]
        assert [body.get("top_k") for body in stub.received] == [50, None, None]
    with stub_server() as stub, model(stub.url) as one:
        one.complete(["a"], sampling)
        assert [body.get("top_k") for body in stub.received] == [50, 50, 50]
        assert one.notes() == ()


def listed(api: str) -> Answer:
    import json

    tops = {" A": -0.1, " B": -2.5}
    given = {
        "completions": {"text": " A", "logprobs": {"top_logprobs": [tops]}},
        "chat": {
            "message": {"content": "A"},
            "logprobs": {
                "content": [{"top_logprobs": [{"token": k, "logprob": v} for k, v in tops.items()]}]
            },
        },
    }
    return Answer(content=json.dumps({"choices": [given[api]]}).encode())


def test_first_tokens_are_listed_and_counted_beforehand(tmp_path):
    with stub_server(lambda number, body: listed("chat")) as stub:
        for _ in range(2):
            with model(stub.url, tmp_path / "r", api="chat") as one:
                counting = one.counting()
                assert counting.gives_log_probabilities()
                assert counting.first_tokens(["a", "b"]) == [{}, {}]
                assert counting.estimate().requests == 2
                before = counting.estimate().kept
                assert one.first_tokens(["a", "b"]) == [{" A": -0.1, " B": -2.5}] * 2
                assert "the server lists its likeliest first tokens" in " ".join(one.notes())
        assert before == 2
    assert len(stub.received) == 3
    assert stub.received[1]["top_logprobs"] == 20


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_whether_probabilities_are_shown_is_found_out_by_one_request(api):
    with stub_server(lambda number, body: listed(api)) as stub, model(stub.url, api=api) as one:
        assert one.gives_log_probabilities()
        assert one.gives_log_probabilities()
        assert len(stub.received) == 1
        assert stub.received[0]["logprobs"] == (5 if api == "completions" else True)
    for nothing in (text("x"), refused(400, "logprobs?"), refused(422)):
        with stub_server(lambda number, body, one=nothing: one) as stub, model(stub.url) as one:
            assert not one.gives_log_probabilities()
    with (
        stub_server(lambda number, body: refused(401)) as stub,
        model(stub.url) as one,
        pytest.raises(InputError, match="401"),
    ):
        one.gives_log_probabilities()
