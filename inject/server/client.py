"""The client: many requests at a time, asked again where that helps, each reply kept as it comes.

A reply that the cache holds is not asked for. What is asked goes through the `openai` library on a
thread of its own, whose retries are off: tries, waits and rate limits are counted here. The key is
cut out of whatever the server writes, so that neither a message nor the cache ever holds it.
Cost: some 2 ms of one core a request.
"""

import asyncio
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from inject.digest import digest
from inject.secrets import MASK
from inject.server.address import NO_KEY, Server
from inject.server.refusals import ServerRefusal
from inject.server.reply import Reply
from inject.server.reply_cache import ReplyCache
from inject.server.request import TextRequest
from inject.server.sender import Sender

Result = TypeVar("Result")

_TOGETHER_SECONDS = 0.01
_YES, _NO = "yes", "no"
_NOT_UNDERSTOOD = (400, 422)
"""What servers say of a parameter that they do not take."""

Progress = Callable[[int, int], None]
"""Called with (replies there, requests in all)."""


class Estimate(NamedTuple):
    """What a set of requests will take."""

    requests: int
    kept: int
    """Of them, those whose reply is there already."""
    tokens_in: int
    """Of the prompts to be sent, roughly: a quarter of their bytes."""
    tokens_out: int
    """At most."""


class Cost(NamedTuple):
    """What a client has asked for since it was made."""

    asked: int = 0
    """Replies that the server gave."""
    kept: int = 0
    """Replies that were there already."""
    tokens_in: int = 0
    tokens_out: int = 0
    uncounted: int = 0
    """Replies of the server that did not say how many tokens they took."""


class ServerClient:
    """Asks one server.

    Raises:
        InputError: the environment variable of the key is not set; the cache cannot be used.
    """

    def __init__(self, server: Server, *, cache: Path | None, jitter: np.random.Generator) -> None:
        self.server = server
        self.cost = Cost()
        self._key = server.key()
        self._cache = None if cache is None else ReplyCache(cache)
        self._jitter = jitter
        self._models: set[str] = set()
        self._accepted: dict[str, Reply] = {}
        self._thread: _LoopThread | None = None
        self._sender: Sender | None = None

    def estimate(self, requests: Sequence[TextRequest]) -> Estimate:
        """Return what it takes to ask; asks nothing."""
        names = {request.name(self.server): request for request in requests}
        there = self._cache.get(list(names)) if self._cache else {}
        open_ones = [request for name, request in names.items() if name not in there]
        return Estimate(
            requests=len(names),
            kept=len(there),
            tokens_in=sum(-(-len(one.prompt.encode("utf-8", "replace")) // 4) for one in open_ones),
            tokens_out=sum(one.max_tokens for one in open_ones),
        )

    def ask(
        self, requests: Sequence[TextRequest], *, progress: Progress | None = None
    ) -> list[Reply]:
        """Return the reply to each request, in their order; equal requests are asked once.

        Raises:
            InputError: the server cannot be reached, does not reply in time, refuses, limits the
                rate for too long, or sends what is no reply; what came until then is kept.
        """
        names = [request.name(self.server) for request in requests]
        by_name = dict(zip(names, requests, strict=True))
        found = self._cache.get(list(by_name)) if self._cache else {}
        self._count(kept=len(found))
        waiting = [(name, one) for name, one in by_name.items() if name not in found]
        times = Counter(names)
        done = sum(times[name] for name in found)
        if progress is not None and names:
            progress(done, len(names))
        for some in self._arriving(waiting):
            clean = {name: self._without_key(reply) for name, reply in some}
            found |= self._cache.keep(clean) if self._cache else clean
            for name, reply in clean.items():
                self._count(reply=reply)
                done += times[name]
            if progress is not None:
                progress(done, len(names))
        self._models |= {one.model for one in found.values() if one.model}
        return [found[name] for name in names]

    def accepts(self, request: TextRequest, *, shows: Callable[[Reply], bool]) -> bool:
        """Return whether the server takes a request, and its reply shows what is looked for.

        Asked once; the answer is kept like a reply.

        Raises:
            InputError: as `ask`, but for a request that the server does not understand.
        """
        name = digest({"accepts": request.name(self.server)})
        there = self._accepted.get(name)
        if there is None and self._cache is not None:
            there = self._cache.get([name]).get(name)
        if there is None:
            there = Reply(_YES if self._is_taken(request, shows) else _NO)
            if self._cache is not None:
                there = self._cache.keep({name: there})[name]
        self._accepted[name] = there
        return there.text == _YES

    def _is_taken(self, request: TextRequest, shows: Callable[[Reply], bool]) -> bool:
        try:
            [[(_, reply)]] = list(self._arriving([("", request)]))
            self._count(reply=reply)
            return shows(reply)
        except ServerRefusal as refusal:
            if refusal.status not in _NOT_UNDERSTOOD:
                raise
            return False

    def notes(self) -> tuple[str, ...]:
        """Return what to know about the replies: tokens uncounted, another model's name, damage."""
        asked = self.server.model
        others = sorted(
            name for name in self._models if name != asked and not name.startswith(f"{asked}@")
        )
        found = [] if self._cache is None else [*self._cache.notes()]
        if others:
            found.append(
                f"the server was asked for the model {asked!r} and answered as "
                f"{', '.join(map(repr, others))}; see that this is the model you mean"
            )
        if self.cost.uncounted:
            found.append(
                f"{self.cost.uncounted} of {self.cost.asked} replies did not say how many tokens "
                "they took; the count of tokens is too low by theirs"
            )
        return tuple(found)

    def close(self) -> None:
        """End the thread, and close the cache."""
        if self._thread is not None and self._sender is not None:
            self._thread.run(self._sender.close())
            self._thread.end()
            self._thread = self._sender = None
        if self._cache is not None:
            self._cache.close()

    def _arriving(
        self, waiting: Sequence[tuple[str, TextRequest]]
    ) -> Iterator[list[tuple[str, Reply]]]:
        """Ask, and yield replies as they come, a few at a time, each with its request's digest."""
        if not waiting:
            return
        if self._thread is None or self._sender is None:
            self._thread = _LoopThread("server requests")
            self._sender = Sender(self.server, self._key, self._jitter)
        arrived: queue.SimpleQueue[tuple[str, Reply] | None] = queue.SimpleQueue()
        asked = self._thread.start(self._sender.ask_all(waiting, arrived.put))
        asked.add_done_callback(lambda _: arrived.put(None))
        try:
            ended = False
            while not ended:
                some = [arrived.get()]
                # Few wake-ups of this thread leave the other one its time.
                time.sleep(_TOGETHER_SECONDS)
                while not arrived.empty():
                    some.append(arrived.get())
                ended = some[-1] is None
                if there := [one for one in some if one is not None]:
                    yield there
            asked.result()
        finally:
            # An interrupted caller leaves nothing running.
            asked.cancel()

    def _without_key(self, reply: Reply) -> Reply:
        if self._key == NO_KEY:
            return reply
        listed = reply.log_probabilities
        return reply._replace(
            text=reply.text.replace(self._key, MASK),
            model=reply.model and reply.model.replace(self._key, MASK),
            log_probabilities=listed
            and {token.replace(self._key, MASK): value for token, value in listed.items()},
        )

    def _count(self, *, kept: int = 0, reply: Reply | None = None) -> None:
        one = self.cost
        if reply is None:
            self.cost = one._replace(kept=one.kept + kept)
            return
        counted = reply.tokens_in is not None and reply.tokens_out is not None
        self.cost = one._replace(
            asked=one.asked + 1,
            tokens_in=one.tokens_in + (reply.tokens_in or 0),
            tokens_out=one.tokens_out + (reply.tokens_out or 0),
            uncounted=one.uncounted + (not counted),
        )


class _LoopThread:
    """A thread that runs coroutines, for callers that are in no loop, or in one of their own.

    A notebook's cell runs inside a loop, where `asyncio.run` is refused. The thread is a daemon: it
    ends with the process.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Run a coroutine there; return its future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine there, and wait for it."""
        return self.start(work).result()

    def end(self) -> None:
        """End the loop and the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
