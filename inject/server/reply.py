"""A server's reply: read from its body, whole or not at all."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from inject.server.address import Api


class Reply(NamedTuple):
    """What one request was answered."""

    text: str
    model: str | None = None
    """The name that the server itself gives its model."""
    tokens_in: int | None = None
    """Of the prompt, as the server counts; None where it does not say."""
    tokens_out: int | None = None
    """Written, as the server counts; None where it does not say."""
    log_probabilities: Mapping[str, float] | None = None
    """Of the likeliest first tokens, where they were asked for and the server gave them."""


class DamagedReply(Exception):
    """A reply of status 200 that holds no answer; its text says what is wrong."""


def read_reply(content: bytes, api: Api) -> Reply:
    """Read the body of a reply.

    Raises:
        DamagedReply: no JSON, cut short, or without an answer.
    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise DamagedReply("its reply is no whole JSON") from None
    if not isinstance(found, dict):
        raise DamagedReply("its reply is no JSON object")
    choices = found.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        raise DamagedReply(f"its reply holds no choices{_stated(found)}")
    usage = found.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    name = found.get("model")
    return Reply(
        text=_text(choice, api),
        model=name if isinstance(name, str) else None,
        tokens_in=_count(counts.get("prompt_tokens")),
        tokens_out=_count(counts.get("completion_tokens")),
        log_probabilities=_log_probabilities(choice.get("logprobs"), api),
    )


def _text(choice: Mapping[str, Any], api: Api) -> str:
    message = choice.get("message") if api == "chat" else None
    holder = message if isinstance(message, dict) else choice
    text = holder.get("content" if api == "chat" else "text")
    if not isinstance(text, str):
        reason = choice.get("finish_reason")
        raise DamagedReply(f"its reply holds no text (finish reason: {reason or 'not given'})")
    return text.encode("utf-8", "replace").decode()


def _stated(found: Mapping[str, Any]) -> str:
    error = found.get("error")
    stated = error.get("message") if isinstance(error, dict) else error
    return f": {stated}" if isinstance(stated, str) else ""


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _log_probabilities(found: Any, api: Api) -> dict[str, float] | None:
    """Return the log-probabilities of the likeliest first tokens; None where there are none."""
    if not isinstance(found, dict):
        return None
    if api == "chat":
        content = found.get("content")
        first = content[0] if isinstance(content, list) and content else None
        listed = first.get("top_logprobs") if isinstance(first, dict) else None
        pairs = (
            [(one.get("token"), one.get("logprob")) for one in listed if isinstance(one, dict)]
            if isinstance(listed, list)
            else []
        )
    else:
        tops = found.get("top_logprobs")
        top = tops[0] if isinstance(tops, list) and tops else None
        pairs = list(top.items()) if isinstance(top, dict) else []
    values = {
        token: float(value)
        for token, value in pairs
        if isinstance(token, str) and isinstance(value, int | float)
    }
    return values or None
