"""The client: many requests at a time, each reply kept as it comes.

A cached reply is not requested. The key is removed from all texts of the server, so that neither a
message nor the cache ever contains it. Cost: some 2 ms of one core per request.

The `openai` library retries, and waits as `Retry-After` requires. A server that cannot be connected
to is detected at once, before the first request. A server's messages are masked, shortened, and
stripped of unprintable characters.
"""

import json
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from inject.digest import digest
from inject.errors import InputError
from inject.secrets import MASK, masked
from inject.server.reply_cache import Reply, ReplyCache
from inject.server.request import NO_KEY, OTHER_REPLY, DamagedReply, Server, TextRequest, read_reply

_APART_SECONDS = 0.005
_ALL_BEGUN_SECONDS = 0.2
"""Requests begin one after the other: those that begin together are answered together, and the
processor is idle until then and too slow after it, in every turn."""
_NOT_UNDERSTOOD = (400, 422, OTHER_REPLY)
"""Messages of servers about a parameter that they do not accept."""

_CONNECT_SECONDS = 10.0
_LONGEST = 300
_UNKNOWN_PART = "It refuses a part of the request; its message names it."
_HINTS = {
    OTHER_REPLY: "Check that it reads texts whole, and reports each token.",
    400: _UNKNOWN_PART,
    401: "Check the key; api_key_variable names its variable.",
    403: "The key may not use this model.",
    404: "Check that the address ends as the server's does (often /v1) and that it has the model.",
    422: _UNKNOWN_PART,
    429: "Lower the concurrency, or try again later.",
}
_TEMPLATE = "A model without a chat template needs `completions`, not `chat`."

Progress = Callable[[int, int], None]
"""Called with (replies there, requests in all)."""


class RequestEstimate(NamedTuple):
    """The cost of a set of requests."""

    requests: int
    kept: int
    """Of them, those whose reply is there already."""
    tokens_in: int
    """Of the prompts to be sent, roughly: a quarter of their bytes."""
    tokens_out: int
    """At most."""


class RequestCost(NamedTuple):
    """The requests of a client since it was made."""

    asked: int = 0
    """Replies that the server gave."""
    kept: int = 0
    """Replies that were there already."""
    tokens_in: int = 0
    tokens_out: int = 0
    uncounted: int = 0
    """Replies of the server that did not report their number of tokens."""


class ServerRefusal(InputError):
    """A server gave no answer."""

    status: int | None = None
    """Of its reply; None without one."""
    reason: str = ""


class ServerClient:
    """Asks one server.

    Raises:
        InputError: the environment variable of the key is not set; the cache cannot be used.
    """

    def __init__(self, server: Server, *, cache: Path | None) -> None:
        self.server = server
        self.cost = RequestCost()
        self._key = server.key()
        self._cache = None if cache is None else ReplyCache(cache)
        self._models: set[str] = set()
        self._accepted: dict[str, Reply] = {}
        self._connecting = threading.Lock()
        self._library: Any = None
        """Of OpenAI; made with the first request."""

    def estimate(self, requests: Sequence[TextRequest]) -> RequestEstimate:
        """Return the cost of the requests without sending any."""
        by_name = {request.name(self.server): request for request in requests}
        cached = self._cache.get(list(by_name)) if self._cache else {}
        missing = [request for name, request in by_name.items() if name not in cached]
        return RequestEstimate(
            requests=len(by_name),
            kept=len(cached),
            tokens_in=sum(-(-len(part.prompt.encode("utf-8", "replace")) // 4) for part in missing),
            tokens_out=sum(request.max_tokens for request in missing),
        )

    def ask(
        self, requests: Sequence[TextRequest], *, progress: Progress | None = None
    ) -> list[Reply]:
        """Return the reply to each request, in their order; equal requests are sent once.

        Raises:
            InputError: the server gives no answer (`ServerRefusal`); replies until then are kept.
        """
        names = [request.name(self.server) for request in requests]
        by_name = dict(zip(names, requests, strict=True))
        replies = self._cache.get(list(by_name)) if self._cache else {}
        self.cost = self.cost._replace(kept=self.cost.kept + len(replies))
        waiting = [(name, request) for name, request in by_name.items() if name not in replies]
        times = Counter(names)
        done = sum(times[name] for name in replies)
        if progress is not None and names:
            progress(done, len(names))
        for name, reply in self._receive(waiting):
            replies |= self._cache.keep({name: reply}) if self._cache else {name: reply}
            done += times[name]
            if progress is not None:
                progress(done, len(names))
        self._models |= {reply.model for reply in replies.values() if reply.model}
        return [replies[name] for name in names]

    def probe(
        self, request: TextRequest, *, lacks: Callable[[Reply], str] = lambda reply: ""
    ) -> Reply:
        """Return a reply whose text names what the server lacks for such requests, if anything.

        Asked once; the answer is kept like a reply.

        Raises:
            InputError: as `ask`, but for a request that the server does not understand.
        """
        name = digest({"probe": request.name(self.server)})
        accepted = self._accepted.get(name)
        if accepted is None and self._cache is not None:
            accepted = self._cache.get([name]).get(name)
        if accepted is None:
            try:
                reply = self.ask_anew(request)
                accepted = reply._replace(text=lacks(reply))
            except ServerRefusal as refusal:
                if refusal.status not in _NOT_UNDERSTOOD:
                    raise
                accepted = Reply(refusal.reason)
            if self._cache is not None:
                accepted = self._cache.keep({name: accepted})[name]
        self._accepted[name] = accepted
        return accepted

    def ask_anew(self, request: TextRequest) -> Reply:
        """Return the server's reply to a request, without reading or writing the cache.

        Raises:
            InputError: as `ask`.
        """
        [(_, reply)] = self._receive([("", request)])
        return reply

    def forget(self, requests: Sequence[TextRequest]) -> None:
        """Drop the replies to some requests, which will be sent again."""
        if self._cache is not None:
            self._cache.drop([request.name(self.server) for request in requests])

    def notes(self) -> tuple[str, ...]:
        """Return notes on the replies: tokens uncounted, another model's name, damage."""
        model = self.server.model
        others = sorted(
            name for name in self._models if name != model and not name.startswith(f"{model}@")
        )
        notes = [] if self._cache is None else [*self._cache.notes()]
        if others:
            notes.append(
                f"the requests named the model {model!r}, but the server answered as "
                f"{', '.join(map(repr, others))}; check that this is the intended model"
            )
        if self.cost.uncounted:
            notes.append(
                f"{self.cost.uncounted} of {self.cost.asked} replies did not report their number "
                "of tokens; the count of tokens omits theirs"
            )
        return tuple(notes)

    def close(self) -> None:
        """Close the connections and the cache."""
        if self._library is not None:
            self._library.close()
            self._library = None
        if self._cache is not None:
            self._cache.close()

    def _receive(self, waiting: Sequence[tuple[str, TextRequest]]) -> Iterator[tuple[str, Reply]]:
        """Ask, and yield replies as they come, each with its request's digest."""
        if not waiting:
            return
        todo = deque(waiting)
        arrived: queue.SimpleQueue[tuple[str, Reply | Exception]] = queue.SimpleQueue()

        def work() -> None:
            with suppress(IndexError):
                while True:
                    name, request = todo.popleft()
                    try:
                        arrived.put((name, self._reply_to(request)))
                    except Exception as error:
                        todo.clear()
                        arrived.put((name, error))

        try:
            at_once = min(self.server.concurrency, len(waiting))
            for _ in range(at_once):
                # As daemons they do not delay an interrupted process.
                threading.Thread(target=work, name="server requests", daemon=True).start()
                time.sleep(min(_APART_SECONDS, _ALL_BEGUN_SECONDS / at_once))
            for _ in waiting:
                name, reply = arrived.get()
                if isinstance(reply, Exception):
                    raise reply
                self._count(reply)
                yield name, self._without_key(reply)
        finally:
            todo.clear()

    def _without_key(self, reply: Reply) -> Reply:
        if self._key == NO_KEY:
            return reply
        log_probabilities, tokens = reply.log_probabilities, reply.tokens
        if tokens is not None and tokens.fingerprint:
            tokens = tokens._replace(fingerprint=tokens.fingerprint.replace(self._key, MASK))
        return reply._replace(
            tokens=tokens,
            text=reply.text.replace(self._key, MASK),
            model=reply.model and reply.model.replace(self._key, MASK),
            log_probabilities=log_probabilities
            and {
                token.replace(self._key, MASK): value for token, value in log_probabilities.items()
            },
        )

    def _count(self, reply: Reply) -> None:
        cost = self.cost
        counted = reply.tokens_in is not None and reply.tokens_out is not None
        self.cost = cost._replace(
            asked=cost.asked + 1,
            tokens_in=cost.tokens_in + (reply.tokens_in or 0),
            tokens_out=cost.tokens_out + (reply.tokens_out or 0),
            uncounted=cost.uncounted + (not counted),
        )

    def _reply_to(self, request: TextRequest) -> Reply:
        """Return the server's reply; called from several threads.

        Raises:
            ServerRefusal: it cannot be connected to, gives no reply in time, refuses, or sends an
                invalid reply.
        """
        import openai

        try:
            content = self._send(request.body(self.server))
            return read_reply(content, request, self.server.api)
        except openai.APITimeoutError:
            problem, status = f"no reply within {self.server.timeout:g} seconds", None
        except openai.APIConnectionError as error:
            problem, status = f"no connection ({_innermost_message(error)})", None
        except openai.APIStatusError as error:
            status = error.status_code
            problem = f"status {status}: {_reason(error.response.text) or 'no reason given'}"
        except DamagedReply as error:
            problem, status = str(error), error.status
        # `from None`: the library's message may repeat the key.
        raise self._refusal(problem, status) from None

    def _connect(self) -> Any:
        """Return the library after one request, without retries, for the list of models.

        Any answer will do.
        """
        import openai

        with self._connecting:
            if self._library is None:
                server = self.server
                library = openai.OpenAI(
                    base_url=server.base_url,
                    api_key=self._key,
                    max_retries=server.retries,
                    timeout=openai.Timeout(server.timeout, connect=_CONNECT_SECONDS),
                )
                try:
                    library.with_options(max_retries=0).models.list()
                except openai.OpenAIError as error:
                    if "ConnectError" in type(error.__cause__).__name__:
                        raise
                self._library = library
            return self._library

    def _send(self, body: dict[str, Any]) -> bytes:
        # The library looks long at parameters that it knows; other parameters are sent separately.
        library, model = self._connect(), body.pop("model")
        if self.server.api == "chat":
            chat = library.chat.completions.with_raw_response
            raw = chat.create(model=model, messages=body.pop("messages"), extra_body=body)
        else:
            plain = library.completions.with_raw_response
            raw = plain.create(model=model, prompt=body.pop("prompt"), extra_body=body)
        return bytes(raw.http_response.content)

    def _refusal(self, problem: str, status: int | None) -> ServerRefusal:
        hint = _HINTS.get(status or 0, "")
        if status in (400, 422) and "top_k" in problem:
            hint = "It does not accept top_k, which OpenAI's API lacks: remove that setting."
        if status is None:
            hint = "Check that it runs and can be reached at this address."
        elif status >= 500:
            hint = "See its own log."
        wants_template = "chat template" in problem.lower() or "chat_template" in problem.lower()
        if wants_template or (self.server.api == "chat" and (status or 0) >= 500):
            hint = f"{_TEMPLATE} {hint}".strip()
        reason = _mask_and_clip(problem, self._key)
        refusal = ServerRefusal(
            f"the server gave no answer for the model {self.server.model!r}: {reason}",
            where=masked(self.server.base_url, self._key),
            hint=f"{hint} Received replies are kept.".strip(),
        )
        refusal.status, refusal.reason = status, reason
        return refusal


def _mask_and_clip(text: str, key: str) -> str:
    """Return a text of the server's in one line, masked and shortened."""
    plain = "".join(sign if sign.isprintable() else " " for sign in text)
    line = " ".join(masked(plain, key).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


def _reason(content: str) -> str:
    """Return the reason in a refusal's body, wherever the server puts it; else all of it."""
    try:
        value = json.loads(content)
    except ValueError:
        return content
    for name in ("error", "message", "detail"):
        if isinstance(value, dict) and value.get(name):
            value = value[name]
    return value if isinstance(value, str) else content


def _innermost_message(error: BaseException) -> str:
    """Return the message of the innermost cause, which is more specific than the library's."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
