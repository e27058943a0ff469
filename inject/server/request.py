"""One question to a server and the reply to it, as the protocol has them.

The digest that names a reply covers all that is sent and to whom: base URL, form of asking, model,
prompt, sampling, and the sample's number. It covers no key and no header.
"""

import json
from dataclasses import dataclass
from typing import Any

from inject.digest import digest
from inject.keyed import item_key
from inject.server.address import Api, Server
from inject.server.reply_cache import Reply


@dataclass(frozen=True, kw_only=True)
class TextRequest:
    """What is asked for: one continuation of one prompt."""

    prompt: str
    max_tokens: int
    system: str = ""
    """A system's message before it by `chat`; by `completions` it stands before the prompt."""
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int | None = None
    """Not of the OpenAI protocol; sent where it is given, and a server may refuse it."""
    stop: tuple[str, ...] = ()
    seed: int = 0
    """Sent as it is."""
    sample: int = 0
    """Which of several continuations."""
    top_log_probabilities: int | None = None
    """So many likeliest first tokens with their log-probabilities, where the server gives them."""

    def body(self, server: Server) -> dict[str, Any]:
        """Return what is sent, as the protocol has it."""
        # A lone surrogate has no UTF-8 form.
        prompt = self.prompt.encode("utf-8", "replace").decode()
        chat = server.api == "chat"
        messages = [{"role": "user", "content": prompt}]
        if self.system:
            messages.insert(0, {"role": "system", "content": self.system})
            prompt = f"{self.system}\n\n{prompt}"
        body: dict[str, Any] = {
            "model": server.model,
            **({"messages": messages} if chat else {"prompt": prompt}),
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
        }
        if self.top_p != 1.0:
            body["top_p"] = self.top_p
        if self.top_k is not None:
            body["top_k"] = self.top_k
        if self.stop:
            body["stop"] = list(self.stop)
        if self.top_log_probabilities is not None:
            wanted = self.top_log_probabilities
            body |= {"logprobs": True, "top_logprobs": wanted} if chat else {"logprobs": wanted}
        return body

    def name(self, server: Server) -> str:
        """Return the digest under which the reply is kept."""
        return digest(
            {
                "base_url": server.base_url.rstrip("/"),
                "api": server.api,
                "body": self.body(server),
                "sample": self.sample,
            }
        )


def sample_seed(seed: int, sample: int) -> int:
    """Return the seed of one of several samples: the first has the seed itself, where it fits."""
    return item_key(f"sample/{seed}/{sample}") % 2**31 if sample else seed % 2**31


class DamagedReply(Exception):
    """A reply of status 200 that holds no answer; its text says what is wrong."""


def read_reply(content: bytes, api: Api) -> Reply:
    """Read the body of a reply.

    Raises:
        DamagedReply: not JSON, cut short, or without an answer.
    """
    try:
        body = json.loads(content)
    except ValueError:
        raise DamagedReply("its reply is not whole JSON") from None
    try:
        choice = body["choices"][0]
        text = choice["message"]["content"] if api == "chat" else choice["text"]
    except (LookupError, TypeError):
        error = body.get("error") if isinstance(body, dict) else None
        raise DamagedReply(f"its reply holds no choices{f': {error}' if error else ''}") from None
    if not isinstance(text, str):
        reason = choice.get("finish_reason") or "not given"
        raise DamagedReply(f"its reply holds no text (finish reason: {reason})")
    usage = body.get("usage") or {}
    return Reply(
        text=text.encode("utf-8", "replace").decode(),
        model=body.get("model"),
        tokens_in=usage.get("prompt_tokens"),
        tokens_out=usage.get("completion_tokens"),
        log_probabilities=_log_probabilities(choice.get("logprobs"), api),
    )


def _log_probabilities(listed: Any, api: Api) -> dict[str, float] | None:
    """Return the log-probabilities of the likeliest first tokens; None where there are none."""
    try:
        if api == "chat":
            first = listed["content"][0]["top_logprobs"]
            return {one["token"]: float(one["logprob"]) for one in first} or None
        return {token: float(value) for token, value in listed["top_logprobs"][0].items()} or None
    except (LookupError, TypeError, AttributeError):
        return None
