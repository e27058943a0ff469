"""Addresses, keys and numbers that are refused before anything is sent."""

import pytest

from inject.errors import InputError
from inject.server.address import Server

GOOD = {"base_url": "http://localhost:8000/v1", "model": "m"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base_url": "localhost:8000"}, "not the address of a server"),
        ({"api_key_variable": "MY KEY"}, "not the name of an environment variable"),
    ],
)
def test_what_cannot_be_asked(change, message):
    with pytest.raises(InputError, match=message):
        Server(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("change", "secret"),
    [
        ({"base_url": "http://me:pass-word@host/v1"}, "pass-word"),
        ({"api_key_variable": "sk-proj-AbCdEf123456GhIjKl"}, "AbCdEf"),
    ],
)
def test_a_password_or_key_is_refused_and_not_shown(change, secret):
    with pytest.raises(InputError) as found:
        Server(**{**GOOD, **change})
    assert secret not in str(found.value)


def test_the_key_comes_from_the_environment_alone(monkeypatch):
    assert Server(**GOOD).key() == "none"
    named = Server(**GOOD, api_key_variable="MY_KEY")
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(InputError, match="MY_KEY is not set"):
        named.key()
    monkeypatch.setenv("MY_KEY", "secret-key")
    assert named.key() == "secret-key"
    assert "secret-key" not in repr(named)
