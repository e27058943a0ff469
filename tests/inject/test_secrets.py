"""Passwords and keys are found in input and masked in output."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.secrets import masked, secret_in, secrets_in, without_secrets

KEY = "sk-proj-AbCd1234EfGh5678IjKl"


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:8000/v1",
        "s3://bucket/a@b/c",
        "sk-learn",
        "me@example.org",
        "Question: {question}\nAnswer: {answer}",
        "ghostwritingdetectioncorpus2024",
        "data/glrt-detector-scores-of-2020.jsonl",
        "nvapi-integration-tests-of-the-whole-corpus-2024.jsonl",
        "https://host.org/search?q=author&sort=token#results",
        "https://host.org/x?page_key=3",
    ],
)
def test_ordinary_texts_are_not_secrets(text):
    assert secret_in(text) is None
    assert masked(text) == text


def test_nested_values_are_searched_completely():
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
def test_foreign_messages_are_masked(text, secret):
    message = masked(text, "my-own-key")
    assert secret not in message
    assert "***" in message


def test_environment_keys_are_masked_unless_short(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "from-the-environment")
    monkeypatch.setenv("HF_TOKEN", "another-one")
    monkeypatch.setenv("SORT_KEY", "a")
    assert masked("from-the-environment, another-one, a") == "***, ***, a"


ALPHANUMERIC = "[A-Za-z0-9]"
FORMS = {
    # Refused before there was a list.
    "openai": rf"sk-(proj-|svcacct-|ant-api03-)?{ALPHANUMERIC}{{20,60}}",
    "hugging face": rf"hf_{ALPHANUMERIC}{{34}}",
    "github": rf"gh[po]_{ALPHANUMERIC}{{36}}",
    "groq": rf"gsk_{ALPHANUMERIC}{{52}}",
    "xai": rf"xai-{ALPHANUMERIC}{{80}}",
    "replicate": rf"r8_{ALPHANUMERIC}{{37}}",
    "aws": "AKIA[A-Z0-9]{16}",
    "google": "AIza[A-Za-z0-9_-]{35}",
    "query": f"https://host/v1[?](api_key|key|access_token|token|password|sig|signature)={ALPHANUMERIC}{{6}}",
    "user": f"https://{ALPHANUMERIC}{{4,9}}(:{ALPHANUMERIC}{{4,9}})?@host/v1",
    # What strangers got past it.
    "github, fine-grained": f"github_pat_{ALPHANUMERIC}{{22}}_{ALPHANUMERIC}{{59}}",
    "gitlab": "gl(pat|dt|rt|soat)-([A-Za-z0-9_-]{8}[A-Z][A-Za-z0-9_-]{11}|[0-9a-f]{20})",
    "slack": f"xox[bpars]-[0-9]{{10,13}}-[0-9]{{10,13}}-{ALPHANUMERIC}{{24}}",
    "slack app": "xapp-1-A[A-Z0-9]{10}-[0-9]{13}-[a-f0-9]{64}",
    "npm": f"npm_{ALPHANUMERIC}{{36}}",
    "nvidia": "nvapi-[A-Za-z0-9_-]{20}[A-Z][A-Za-z0-9_-]{43}",
    "jwt": "eyJhbGciOiJIUzI1NiJ9[.]eyJ[A-Za-z0-9_-]{20,80}[.][A-Za-z0-9_-]{43}",
    "pem": "-----BEGIN (RSA |EC |OPENSSH |ENCRYPTED )?PRIVATE KEY-----\n[A-Za-z0-9+/\n]{40,99}",
    "auth": f"https://host/v1[?](a=1&)?auth={ALPHANUMERIC}{{6,20}}",
    "fragment": f"https://host/x#access_token={ALPHANUMERIC}{{6,20}}",
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_secrets_of_all_forms_are_found_anywhere_and_masked(form, data):
    secret = data.draw(st.from_regex(FORMS[form], fullmatch=True))
    before = data.draw(st.sampled_from(["", "see ", "key=", "a: ", '"', "data/"]))
    if form in ("user", "query", "auth", "fragment"):
        before = data.draw(st.sampled_from(["", "see ", '"']))
    text = f"{before}{secret}"
    assert secret_in(text)
    message = masked(text)
    assert secret not in message
    assert "***" in message
    assert secret[-6:] not in message or form == "user"
    assert list(secrets_in({"a": [text]})) == [(("a", 0), secret_in(text))]


NAMES = """
data bench wiki en pile npm xai hf slack github gitlab token auth secret key nvapi llama v2
pythia 1b train-00000 of glpat glrt xapp xoxb private begin pem jwt redpajama sample detector-scores
"""
WORDS = st.sampled_from(NAMES.split())
ORDINARY = st.one_of(
    st.from_regex("[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{12}", fullmatch=True),
    st.uuids().map(str),
    st.builds("/".join, st.lists(WORDS, min_size=1, max_size=6)),
    st.builds("-".join, st.lists(WORDS, min_size=1, max_size=6)),
    st.builds("_".join, st.lists(WORDS, min_size=1, max_size=6)),
    st.builds("{}/{}@{}".format, WORDS, WORDS, st.from_regex("[0-9a-f]{40}", fullmatch=True)),
    st.builds("corpus/{}-{}".format, WORDS, st.from_regex("[0-9a-f]{12}", fullmatch=True)),
    st.builds("https://{}.org/{}?page={}&lang=en#{}".format, WORDS, WORDS, st.integers(), WORDS),
    st.builds("hf://datasets/{}/{}/**/*.parquet".format, WORDS, WORDS),
)


@settings(max_examples=200)
@given(ORDINARY)
def test_paths_digests_hub_ids_and_commits_are_not_secrets(text):
    assert secret_in(text) is None
    assert masked(text) == text
