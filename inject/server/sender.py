"""Sends a request and reads its reply; what goes wrong becomes an error that one can act on.

The `openai` library asks again, and waits as `Retry-After` says. That a server cannot be connected
to is found out before the first request, at once. No message holds the key: what a server says is
masked, shortened, and freed of what is not printable.
"""

import json
import threading
from typing import Any

from inject.errors import InputError
from inject.secrets import masked
from inject.server.address import Server
from inject.server.reply_cache import Reply
from inject.server.request import DamagedReply, TextRequest, read_reply

_CONNECT_SECONDS = 10.0
_LONGEST = 300
_UNKNOWN_PART = "It refuses a part of the request; its own words say which."
_HINTS = {
    400: _UNKNOWN_PART,
    401: "See that the key is right; --api-key-variable or api_key_variable names the variable.",
    403: "The key may not use this model.",
    404: "See that the address ends as the server's does (often /v1) and that it knows the model.",
    422: _UNKNOWN_PART,
    429: "Ask with a lower concurrency, or later.",
}
_TEMPLATE = "A model without a chat template is asked by completions, not by chat."


class ServerRefusal(InputError):
    """A server gave no answer; `status` is that of its reply, None where there was none."""

    status: int | None = None


class Sender:
    """Sends requests to one server, from several threads."""

    def __init__(self, server: Server, key: str) -> None:
        from openai import OpenAI, Timeout

        self._server = server
        self._key = key
        self._connecting = threading.Lock()
        self._connected = False
        self._library = OpenAI(
            base_url=server.base_url,
            api_key=key,
            max_retries=server.retries,
            timeout=Timeout(server.timeout, connect=_CONNECT_SECONDS),
        )

    def ask(self, request: TextRequest) -> Reply:
        """Return the server's reply.

        Raises:
            ServerRefusal: it cannot be connected to, gives no reply in time, refuses, or sends what
                is no reply.
        """
        import openai

        try:
            self._connect()
            return read_reply(self._send(request.body(self._server)), self._server.api)
        except openai.APITimeoutError:
            problem, status = f"no reply within {self._server.timeout:g} seconds", None
        except openai.APIConnectionError as error:
            problem, status = f"no connection ({_innermost(error)})", None
        except openai.APIStatusError as error:
            status = error.status_code
            problem = f"status {status}: {_reason(error.response.text) or 'no reason given'}"
        except DamagedReply as error:
            problem, status = str(error), 200
        # `from None`: what the library says may repeat the key.
        raise self._refusal(problem, status) from None

    def close(self) -> None:
        """Close all connections."""
        self._library.close()

    def _connect(self) -> None:
        """Ask once, without trying again, for what every server lists; any answer will do."""
        import openai

        with self._connecting:
            if not self._connected:
                try:
                    self._library.with_options(max_retries=0).models.list()
                except openai.OpenAIError as error:
                    if "ConnectError" in type(error.__cause__).__name__:
                        raise
                self._connected = True

    def _send(self, body: dict[str, Any]) -> bytes:
        # The library looks long at parameters that it knows; what it need not know goes beside.
        model = body.pop("model")
        raw: Any
        if self._server.api == "chat":
            chat = self._library.chat.completions.with_raw_response
            raw = chat.create(model=model, messages=body.pop("messages"), extra_body=body)
        else:
            plain = self._library.completions.with_raw_response
            raw = plain.create(model=model, prompt=body.pop("prompt"), extra_body=body)
        return bytes(raw.http_response.content)

    def _refusal(self, problem: str, status: int | None) -> ServerRefusal:
        hint = _HINTS.get(status or 0, "")
        if status in (400, 422) and "top_k" in problem:
            hint = "It does not know top_k, which is none of OpenAI's; leave out what asks for it."
        if status is None:
            hint = "See that it runs and is reached at this address."
        elif status >= 500:
            hint = "See its own log."
        wants_template = "chat template" in problem.lower() or "chat_template" in problem.lower()
        if wants_template or (self._server.api == "chat" and (status or 0) >= 500):
            hint = f"{_TEMPLATE} {hint}".strip()
        refusal = ServerRefusal(
            f"the server gave no answer for the model {self._server.model!r}: "
            f"{_shown(problem, self._key)}",
            where=masked(self._server.base_url, self._key),
            hint=f"{hint} Replies that came are kept.".strip(),
        )
        refusal.status = status
        return refusal


def _shown(text: str, key: str) -> str:
    """Return a text of the server's in one line, masked and shortened."""
    plain = "".join(sign if sign.isprintable() else " " for sign in text)
    line = " ".join(masked(plain, key).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


def _reason(content: str) -> str:
    """Return the reason in a refusal's body, wherever the server puts it; else all of it."""
    try:
        said = json.loads(content)
    except ValueError:
        return content
    for name in ("error", "message", "detail"):
        if isinstance(said, dict) and said.get(name):
            said = said[name]
    return said if isinstance(said, str) else content


def _innermost(error: BaseException) -> str:
    """Return the words of the innermost cause, which say more than the library's."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
