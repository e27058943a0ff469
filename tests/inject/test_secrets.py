"""Passwords and keys are found where they are written, and masked where they are shown."""

import pytest

from inject.secrets import masked, secret_in, secrets_in, without_secrets

KEY = "sk-proj-AbCd1234EfGh5678IjKl"


@pytest.mark.parametrize(
    "text",
    [
        "http://user:PASSWORD@host:8000/v1",
        "https://token@huggingface.co/x/y",
        "HTTPS://a:b%40c@host",
        "see postgres://me:pw@db/x for more",
        "http://host/v1?api_key=abc",
        "https://host/v1?a=1&token=abc",
        KEY,
        "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    ],
)
def test_secrets_are_found(text):
    assert secret_in(text)
    assert secret_in(text) not in text


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:8000/v1",
        "s3://bucket/a@b/c",
        "risk-assessment-of-the-whole-company-2020.jsonl",
        "sk-learn",
        "data/sklearn-documentation-of-some-length/*.jsonl",
        "me@example.org",
        "Question: {question}\nAnswer: {answer}",
        "hf_models/pythia",
        "ghostwritingdetectioncorpus2024",
        "data/hfinternaltestingcorpus2024/*.jsonl",
    ],
)
def test_ordinary_texts_are_no_secrets(text):
    assert secret_in(text) is None
    assert masked(text) == text


def test_every_place_of_nested_values_is_searched():
    values = {"a": [{"b": "http://u:p@h"}, "fine"], "c": {"d": KEY}, "e": 3}
    assert secret_in("a/b?key=value") is None
    assert [path for path, _ in secrets_in(values)] == [("a", 0, "b"), ("c", "d")]
    assert without_secrets(values) == {
        "a": [{"b": "http://***@h"}, "fine"],
        "c": {"d": "***"},
        "e": 3,
    }


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Incorrect API key provided: my-own-key.", "my-own-key"),
        ("got 'Bearer abc.def.ghi'", "abc.def.ghi"),
        ("bearer   abcdefgh, or so", "abcdefgh"),
        (f"Incorrect API key: {KEY}", KEY),
        ("Incorrect API key: sk-abc****wxyz", "wxyz"),
        ("cannot reach http://user:PASS@proxy:3128", "PASS"),
        ("GET http://host/v1?api_key=abcdef&x=1", "abcdef"),
    ],
)
def test_what_others_say_is_masked(text, secret):
    shown = masked(text, "my-own-key")
    assert secret not in shown
    assert "***" in shown


def test_keys_of_the_environment_are_masked_and_short_values_are_not(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "from-the-environment")
    monkeypatch.setenv("HF_TOKEN", "another-one")
    monkeypatch.setenv("SORT_KEY", "a")
    assert masked("from-the-environment, another-one, a") == "***, ***, a"
