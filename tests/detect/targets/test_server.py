"""A served model as a `TextModel`: samples, stops, costs, and log-probabilities."""

import json
import re
from contextlib import closing

import pytest

from detect.targets.server import ServerTextModel
from detect.targets.text_model import Completion, Sampling, TextModel
from detect.token_statistics import EMPTY_TEXT, ONE_TOKEN
from inject.errors import InputError
from inject.server.request import Server, token_offsets
from tests.echo_server import echoed, words
from tests.stub_server import Answer, prompt_of, refused, stub_server, text


def model(url, cache=None, **more):
    server = Server(**{"base_url": url, "model": "m", "timeout": 5, "retries": 1, **more})
    return closing(ServerTextModel(server, cache=cache))


def test_samples_have_separate_seeds(tmp_path):
    sampling = Sampling(max_tokens=4, temperature=0.8, samples=3, top_p=0.9, seed=11)
    seen: list[tuple[int, int]] = []

    def behaviour(number, body):
        return text(f"{prompt_of(body)} {body['seed']}", usage={})

    with stub_server(behaviour) as stub:
        with model(stub.url, tmp_path / "r") as target:
            written: TextModel = target
            rows = written.complete(
                ["a", "b"], sampling, progress=lambda done, total: seen.append((done, total))
            )
        seeds = {body["seed"] for body in stub.received}
        assert len(seeds) == 3
        assert 11 in seeds
        assert all(0 <= seed < 2**31 for seed in seeds)
        assert len(stub.received) == 6
        assert [[sample.text.split()[0] for sample in row] for row in rows] == [
            ["a"] * 3,
            ["b"] * 3,
        ]
        assert len({sample.text for sample in rows[0]}) == 3
        assert rows[0][0] == Completion("a 11", 0, 0)
        assert seen[0] == (0, 2)
        assert seen[-1] == (2, 2)
        # A prompt's samples do not depend on the other prompts or their order.
        with model(stub.url, tmp_path / "r") as again:
            assert again.complete(["b"], sampling) == rows[1:]
        assert len(stub.received) == 6


def test_text_after_a_stop_is_cut_even_if_the_server_returns_it():
    with (
        stub_server(lambda number, body: text("one\ntwo. three")) as stub,
        model(stub.url) as target,
    ):
        [[completion]] = target.complete(["a"], Sampling(max_tokens=9, stop=(".", "\n")))
    assert completion == Completion("one", 3, 2)
    assert stub.received[0]["stop"] == [".", "\n"]


def test_costs_are_counted_before_and_after(tmp_path):
    sampling = Sampling(max_tokens=10)
    with stub_server() as stub, model(stub.url, tmp_path / "r") as target:
        target.complete(["12345678"], sampling)
        counting = target.counting()
        blank = counting.complete(["12345678", "1234", "1234"], sampling)
        assert blank == [[Completion("", 0, 0)]] * 3
        counting.answer(["123456789"], sampling)
        assert counting.estimate() == (3, 1, 1 + 3, 20)
        assert len(stub.received) == 1
        assert target.cost[:4] == (1, 0, 3, 2)
        assert target.notes() == ()


def test_rejected_parameter_is_dropped_with_a_note_and_tried_once(tmp_path):
    def behaviour(number, body):
        return refused(422, "unexpected field top_k") if "top_k" in body else text("x")

    sampling = Sampling(max_tokens=3, temperature=1.0, samples=2, top_k=50)
    with stub_server(behaviour) as stub:
        for _ in range(2):
            with model(stub.url, tmp_path / "r") as target:
                assert target.counting().complete(["a"], sampling)
                target.complete(["a"], sampling)
                assert "does not take top_k = 50" in target.notes()[0]
                assert "all samples were alike for each of 1 prompts" in target.notes()[1]
        assert [body.get("top_k") for body in stub.received] == [50, None, None]
    with stub_server() as stub, model(stub.url) as target:
        target.complete(["a"], sampling)
        assert [body.get("top_k") for body in stub.received] == [50, 50, 50]
        assert target.notes() == ()


def listed(api: str) -> Answer:
    tops = {" A": -0.1, " B": -2.5}
    choices = {
        "completions": {"text": " A", "logprobs": {"top_logprobs": [tops]}},
        "chat": {
            "message": {"content": "A"},
            "logprobs": {
                "content": [{"top_logprobs": [{"token": k, "logprob": v} for k, v in tops.items()]}]
            },
        },
    }
    return Answer(content=json.dumps({"choices": [choices[api]]}).encode())


def test_first_tokens_are_listed_and_estimated_in_advance(tmp_path):
    with stub_server(lambda number, body: listed("chat")) as stub:
        for _ in range(2):
            with model(stub.url, tmp_path / "r", api="chat") as target:
                counting = target.counting()
                assert counting.gives_log_probabilities()
                assert counting.first_tokens(["a", "b"]) == [{}, {}]
                assert counting.estimate().requests == 2
                before = counting.estimate().kept
                assert target.first_tokens(["a", "b"]) == [{" A": -0.1, " B": -2.5}] * 2
                assert "the server lists its likeliest first tokens" in " ".join(target.notes())
        assert before == 2
    assert len(stub.received) == 3
    assert stub.received[1]["top_logprobs"] == 20


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_one_request_detects_log_probability_support(api):
    with stub_server(lambda number, body: listed(api)) as stub, model(stub.url, api=api) as target:
        assert target.gives_log_probabilities()
        assert target.gives_log_probabilities()
        assert len(stub.received) == 1
        assert stub.received[0]["logprobs"] == (5 if api == "completions" else True)
    for nothing in (text("x"), refused(400, "logprobs?"), refused(422)):
        with (
            stub_server(lambda number, body, answer=nothing: answer) as stub,
            model(stub.url) as target,
        ):
            assert not target.gives_log_probabilities()
    with (
        stub_server(lambda number, body: refused(401)) as stub,
        model(stub.url) as target,
        pytest.raises(InputError, match="401"),
    ):
        target.gives_log_probabilities()


def test_text_tokens_have_the_servers_offsets(tmp_path):
    """After a prefix they equal those of the plain text: the first one is not scored."""
    with stub_server(words) as stub, model(stub.url, tmp_path / "r") as target:
        plain, empty, single = target.token_statistics(["One two, three", "", "One"])
        [behind] = target.token_statistics(["One two, three"], before=["A shot.\n\n"])
        assert target.cost.asked == 8  # 3 prompts, the first question, twice before and after
    assert plain.log_probability.tolist() == [-4.0, -1.0, -6.0]
    for statistics in (plain, behind):
        assert statistics.offsets.tolist() == [[3, 7], [7, 8], [8, 14]]
        assert statistics.rank.tolist() == [1] * 3
        assert not hasattr(statistics, "entropy")
    assert (empty.reason, single.reason) == (EMPTY_TEXT, ONE_TOKEN)


def test_tokens_put_before_a_text_are_not_scored():
    """Two tokens: the first has no log-probability, and the second is not part of the text."""

    def behaviour(number, body):
        tokens = ["<s>", "<lang>", *re.findall(r" ?\w+|\W", body["prompt"])]
        values = [-1.0] * (len(tokens) - 1)
        return echoed(tokens, values, [7] * len(values), [1] * len(values))

    with stub_server(behaviour) as stub, model(stub.url) as target:
        [plain] = target.token_statistics(["One two"])
        [behind] = target.token_statistics(["One two"], before=["A shot.\n\n"])
    for statistics in (plain, behind):
        assert statistics.offsets.tolist() == [[0, 3], [3, 7]]


def test_partial_characters_and_start_tokens_have_text_offsets():
    assert token_offsets(["<s>", "", "é", " a", "", "b"], "é a\ufffdb") == [
        (-1, -1), (0, 1), (0, 1), (1, 3), (3, 4), (4, 5),
    ]  # fmt: skip
    assert token_offsets([" é", "b", ""], "éb\ufffd") == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (echoed(["One", " 2"], [-1.0]), "echoes other tokens than the text's, from character 3 on"),
        (echoed(["One"], []), "echoes 3 of the text's 7 characters"),
        (echoed(["One", " two"], []), "log-probabilities of 0 of 1 tokens"),
        (echoed(["One", " two"], [None]), "log-probabilities of 0 of 1 tokens"),
        (echoed(["One", " two"], [-9999.0]), "log-probabilities of 0 of 1 tokens"),
        (echoed(["One", " two"], [-1.0]), "contains no ids with ranks"),
        (echoed(["One", " two"], [-1.0], [3], [1], model="n"), "are from several models: m, n"),
        (echoed([7, 8], [-1.0]), "contains no tokens of the text"),
        (text("One two"), "contains no tokens of the text"),
    ],
)  # fmt: skip
def test_replies_for_another_text_or_model_are_rejected(reply, problem):
    def behaviour(number, body):
        return reply if body["prompt"] == "One two" else words(number, body)

    with (
        stub_server(behaviour) as stub,
        model(stub.url) as target,
        pytest.raises(InputError, match=problem),
    ):
        target.token_statistics(["One two"])


def test_replaced_model_is_rejected_before_and_after_reading(tmp_path):
    def behaviour(number, body):
        answer = json.loads(words(number, body).content)
        if number >= exchanged:
            listed = answer["choices"][0]["logprobs"]
            listed["token_logprobs"] = [value and value - 0.1 for value in listed["token_logprobs"]]
        answer["system_fingerprint"] = f"f{min(number, 3)}"
        return Answer(content=json.dumps(answer).encode())

    exchanged = 99
    with stub_server(behaviour) as stub:
        with model(stub.url, tmp_path / "r") as target:
            target.token_statistics(["One two"])
            assert "answered as several systems (f0, f2, f3)" in target.notes()[0]
        exchanged = 5
        for sent in (7, 8):
            with (
                model(stub.url, tmp_path / "r") as target,
                pytest.raises(InputError, match="its model has changed"),
            ):
                target.token_statistics(["One three"])
            assert len(stub.received) == sent
