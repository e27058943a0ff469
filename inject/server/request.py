"""The server, one request to it, and the reply, in the protocol's form.

The digest that names a reply covers all that is sent and to whom: base URL, form of asking, model,
prompt, sampling, and the sample's number. It covers no key and no header.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from inject.digest import digest
from inject.errors import InputError
from inject.keyed import item_key
from inject.secrets import is_variable, masked, secret_in
from inject.server.reply_cache import Reply, TextTokens

Api = Literal["completions", "chat"]
NO_KEY = "none"
"""Sent if no key is named; the protocol requires one."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A model behind an OpenAI-compatible server.

    Raises:
        InputError: not an address, or one with a password; a concurrency below 1; a text that
            cannot be the name of an environment variable.
    """

    base_url: str
    """Such as `http://localhost:8000/v1`."""
    model: str
    """The name that the server knows it by."""
    api: Api = "completions"
    """`completions`: prompts go to the model as they are; `chat`: as a user's message."""
    api_key_variable: str | None = None
    """Environment variable of the key."""
    concurrency: int = 8
    """Requests in flight at most."""
    timeout: float = 120.0
    """Seconds for one reply."""
    retries: int = 12
    """How often the library retries if the server fails or limits the rate: for about a minute,
    unless `Retry-After` requires otherwise."""

    def __post_init__(self) -> None:
        if kind := secret_in(self.base_url):
            raise InputError(
                f"the address contains {kind}",
                where=masked(self.base_url),
                hint="Put the key into an environment variable, and name that variable.",
            )
        if not _is_address(self.base_url):
            raise InputError(
                "is not the address of a server",
                where=masked(self.base_url) or "the address",
                allowed="an address such as http://localhost:8000/v1",
            )
        if not self.model:
            raise InputError("the name of the model is missing", where=self.base_url)
        if self.concurrency < 1:
            raise InputError(
                f"{self.concurrency} requests in flight", where="concurrency", allowed="1 or more"
            )
        if self.api_key_variable is not None and not is_variable(self.api_key_variable):
            raise InputError(
                "is not the name of an environment variable",
                where="api_key_variable",
                allowed="letters, digits, underscores; the name, never the key itself",
            )

    def key(self) -> str:
        """Return the key.

        Raises:
            InputError: the environment variable is not set.
        """
        if self.api_key_variable is None:
            return NO_KEY
        value = os.environ.get(self.api_key_variable)
        if not value:
            raise InputError(
                f"the environment variable {self.api_key_variable} is not set",
                where="the key of the server",
                hint=f"export {self.api_key_variable}=… before the run.",
            )
        return value


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


_LEAST = -9999.0
"""The servers' value for the logarithm of 0, or for a probability that they did not compute."""


@dataclass(frozen=True, kw_only=True)
class TextRequest:
    """One continuation of one prompt, or the probabilities of the prompt's own tokens."""

    prompt: str
    max_tokens: int
    system: str = ""
    """Text before the prompt: a system message for `chat`, its beginning for `completions`."""
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int | None = None
    """Not part of the OpenAI protocol; sent if set, and a server may refuse it."""
    stop: tuple[str, ...] = ()
    seed: int = 0
    """Sent as it is."""
    sample: int = 0
    """Which of several continuations."""
    top_log_probabilities: int | None = None
    """So many likeliest first tokens with their log-probabilities, if the server gives them."""
    echo: bool = False
    """The log-probabilities of the prompt's own tokens; `max_tokens` is then 0."""
    ranks: bool = False
    """Their ids and ranks as well, by a parameter of vLLM's."""

    def body(self, server: Server) -> dict[str, Any]:
        """Return the body of the request in the protocol's form."""
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
            n_tokens = self.top_log_probabilities
            body |= {"logprobs": True, "top_logprobs": n_tokens} if chat else {"logprobs": n_tokens}
        if self.echo:
            body |= {"echo": True, "logprobs": 1}
        if self.ranks:
            body["prompt_logprobs"] = 0
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
    """Return the seed of one of several samples: the first has the seed itself, if it fits."""
    return item_key(f"sample/{seed}/{sample}") % 2**31 if sample else seed % 2**31


OTHER_REPLY = 0
"""Status of a reply to another request than was sent: as good as a refusal."""


class DamagedReply(Exception):
    """A reply without an answer; its text describes the problem."""

    def __init__(self, problem: str, status: int = 200) -> None:
        super().__init__(problem)
        self.status = status


def _other_reply(problem: str) -> DamagedReply:
    return DamagedReply(problem, OTHER_REPLY)


def read_reply(content: bytes, request: TextRequest, api: Api) -> Reply:
    """Read the body of a reply.

    Raises:
        DamagedReply: not JSON, cut short, or without an answer; its status is `OTHER_REPLY`
            if the tokens of the prompt are missing, without log-probabilities, or not those of the
            prompt.
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
        raise DamagedReply(
            f"its reply contains no choices{f': {error}' if error else ''}"
        ) from None
    if not isinstance(text, str):
        reason = choice.get("finish_reason") or "not given"
        raise DamagedReply(f"its reply contains no text (finish reason: {reason})")
    usage = body.get("usage") or {}
    # The echoed prompt is not kept, and adds nothing to its tokens.
    return Reply(
        text="" if request.echo else text.encode("utf-8", "replace").decode(),
        model=body.get("model"),
        tokens_in=usage.get("prompt_tokens"),
        tokens_out=usage.get("completion_tokens"),
        log_probabilities=(
            None if request.echo else _log_probabilities(choice.get("logprobs"), api)
        ),
        tokens=(
            _text_tokens(choice, request)._replace(fingerprint=body.get("system_fingerprint"))
            if request.echo
            else None
        ),
    )


def _log_probabilities(values: Any, api: Api) -> dict[str, float] | None:
    """Return the log-probabilities of the likeliest first tokens; None if there are none."""
    try:
        if api == "chat":
            first = values["content"][0]["top_logprobs"]
            return {entry["token"]: float(entry["logprob"]) for entry in first} or None
        return {token: float(value) for token, value in values["top_logprobs"][0].items()} or None
    except (LookupError, TypeError, AttributeError):
        return None


def _text_tokens(choice: Any, request: TextRequest) -> TextTokens:
    """Return the prompt's tokens as a reply gives them.

    Raises:
        DamagedReply: they are missing, without log-probabilities, or not those of the prompt:
            the reply is one to another request.
    """
    log_probabilities = choice.get("logprobs")
    tokens, values = (
        log_probabilities.get(key) if isinstance(log_probabilities, dict) else None
        for key in ("tokens", "token_logprobs")
    )
    if not (
        isinstance(tokens, list)
        and isinstance(values, list)
        and all(isinstance(token, str) for token in tokens)
    ):
        raise _other_reply("its reply to `echo` with `logprobs` contains no tokens of the text")
    offsets = token_offsets(tokens, request.prompt.encode("utf-8", "replace").decode())
    numbers = [value for value in values[1:] if isinstance(value, int | float) and value > _LEAST]
    if len(values) != len(tokens) or len(numbers) != len(tokens) - 1 or max(numbers, default=0) > 0:
        raise _other_reply(
            f"its reply has log-probabilities of {len(numbers):,} of {len(tokens) - 1:,} tokens"
        )
    ids, ranks = [-1 - item_key(token) % (2**31 - 1) for token in tokens[1:]], None
    if request.ranks:
        try:
            firsts = [
                next(iter(log_probabilities.items()))
                for log_probabilities in choice["prompt_logprobs"][1:]
            ]
            ids, ranks = [int(name) for name, _ in firsts], [int(own["rank"]) for _, own in firsts]
        except (LookupError, TypeError, AttributeError, ValueError, StopIteration):
            raise _other_reply(
                "its reply to `prompt_logprobs` contains no ids with ranks"
            ) from None
        if len(ids) != len(numbers):
            raise _other_reply(
                f"its reply contains ranks of {len(ids):,} of {len(numbers):,} tokens"
            )
    return TextTokens(offsets[1:], numbers, ids, ranks)


def token_offsets(tokens: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Return the characters [start, stop) of each token, which together are the whole text.

    A special token before the text has −1. Servers write nothing for a token that is part of a
    character, or seems one to them: it has the place of the token that ends the character, or
    what is missing before that.

    Raises:
        DamagedReply: of another request, as they are not the text.
    """
    spans: list[tuple[int, int]] = []
    at = blank = 0
    for token in tokens:
        if not token:
            blank += 1
            continue
        start = text.find(token, at, at + blank + len(token))
        if start < 0 and at == 0:
            # Some tokenizers put a blank before a text.
            token = token.removeprefix(" ")
            if not text.startswith(token):
                spans += [(-1, -1)] * (blank + 1)
                blank = 0
                continue
            start = 0
        if start < 0:
            raise _other_reply(f"it echoes other tokens than the text's, from character {at:,} on")
        stop = start + len(token)
        spans += [(at, start) if start > at else (start, stop)] * blank
        spans.append((start, stop))
        at, blank = stop, 0
    if len(text) - at > blank:
        raise _other_reply(f"it echoes {at:,} of the text's {len(text):,} characters")
    return [*spans, *[(at, len(text))] * blank]
