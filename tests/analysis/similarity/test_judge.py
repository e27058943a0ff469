"""The judge: what is asked, how replies are read, and what is never sent or guessed."""

from contextlib import closing

import pytest

from analysis.similarity.judge import Judge, Judgement, Pair, judge_request, read_judgement
from inject.errors import InputError
from inject.server.address import Server
from tests.stub_server import stub_server, text

PAIRS = [Pair("He had gills.", "He had wings."), Pair("A $b {b} troll", "Output (b): x")]


def judge(url, cache=None, **more):
    server = Server(base_url=url, model="m", **{"api": "chat", "retries": 1, **more})
    return closing(Judge(server, cache=cache))


@pytest.mark.parametrize(
    ("reply", "score", "reason"),
    [
        ("Score: 4\nReason: Both hold a troll.", 4, "Both hold a troll."),
        ("  Score: 1. Reason: Unlike.\nQuite.", 1, "Unlike.\nQuite."),
        ("Score:5", 5, ""),
        ("Score: 0", None, ""),
        ("Score: 6 Reason: more than all", None, "more than all"),
        ("Score: 10", None, ""),
        ("Score: 4.5", None, ""),
        ("Score: 4/5", None, ""),
        ("Score: four", None, ""),
        ("Score: -1", None, ""),
        ("The score is 4.", None, ""),
        ("I would say Score: 4", None, ""),
        ("Score: 4\nReason: a. On reflection, Score: 2", None, "a. On reflection, Score: 2"),
        ("", None, ""),
    ],
)
def test_a_score_is_read_as_the_template_asks_for_it(reply, score, reason):
    assert read_judgement(reply) == Judgement(score, reason, reply)


def test_the_question_is_the_papers():
    request = judge_request(PAIRS[0])
    assert request.system.startswith("You are a helpful assistant in evaluating the similarity")
    assert request.prompt.startswith("Rate the similarity between Output (a) and Output (b) on a")
    assert "avoid giving a rating of 3 (neutral) whenever possible." in request.prompt
    assert "You should answer ‘Score: ’, followed by an integer rating" in request.prompt
    assert request.prompt.endswith("Output (a): He had gills.\n\nOutput (b): He had wings.")
    assert request.temperature == 0


def test_pairs_are_rated_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "secret-key-0123456789")

    def behaviour(number, body):
        assert [one["role"] for one in body["messages"]] == ["system", "user"]
        return text("Score: 2\nReason: key secret-key-0123456789")

    with stub_server(behaviour) as stub:
        options = {"cache": tmp_path / "replies", "api_key_variable": "JUDGE_KEY"}
        with judge(stub.url, **options) as one:
            assert one.estimate([*PAIRS, PAIRS[0]]).requests == 2
            assert stub.received == []
            found = one.rate([*PAIRS, PAIRS[0]])
            assert one.cost.asked == 2
        with judge(stub.url, **options) as again:
            assert again.rate(PAIRS) == found[:2]
            assert again.estimate(PAIRS).kept == 2
        assert len(stub.received) == 2
        assert stub.received[0]["key"] == "Bearer secret-key-0123456789"
    assert [one.score for one in found] == [2, 2, 2]
    assert all("secret" not in one.reply for one in found)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"secret-key" not in kept


def test_by_completions_the_systems_message_stands_before():
    def behaviour(number, body):
        assert body["prompt"].startswith("You are a helpful assistant")
        assert "\n\nRate the similarity" in body["prompt"]
        return text("Score: 3")

    with stub_server(behaviour) as stub, judge(stub.url, api="completions") as one:
        assert one.rate(PAIRS[:1])[0].score == 3


def test_without_the_key_nothing_is_asked(monkeypatch):
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    with pytest.raises(InputError, match="JUDGE_KEY is not set"):
        judge("http://127.0.0.1:9/v1", api_key_variable="JUDGE_KEY")
