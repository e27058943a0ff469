"""Requests over the network: so many at a time, each tried again where that can help.

Tried again: no connection once there was one, no reply in time, status 408, 409, 425 and 5xx, and
damaged replies; `Patience.tries` in all. A rate limit (429) is no failure: all requests wait until
the server's own time, and it is an error only where nothing at all is answered for
`Patience.limited` seconds. What cannot change by asking again is an error at once: other statuses,
an exhausted quota, a missing chat template, a first connection that is refused twice.
"""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from inject.errors import InputError
from inject.server.address import Server
from inject.server.refusals import refusal, wants_template
from inject.server.reply import DamagedReply, Reply, read_reply
from inject.server.request import TextRequest
from inject.server.waiting import back_off, prescribed_wait, used_up

_TEMPORARY = (408, 409, 425)
_FIRST_CONNECTIONS = 2
_APART_SECONDS = 0.005
_ALL_BEGUN_SECONDS = 0.2
"""Requests begin one after the other: those that begin together are answered together, and the
processor is idle until then and too slow after it, in every turn."""


class _Failure(NamedTuple):
    """Why one try brought no reply."""

    problem: str
    status: int | None = None
    wait: float | None = None
    """Seconds that the server asks to wait."""
    final: bool = False
    """Whether asking again is of no use."""
    connected: bool = True


class Sender:
    """Sends requests to one server; used in one loop alone."""

    def __init__(self, server: Server, key: str, jitter: np.random.Generator) -> None:
        from openai import AsyncOpenAI, Timeout

        self._server = server
        self._key = key
        self._jitter = jitter
        self._library = AsyncOpenAI(
            base_url=server.base_url,
            api_key=key,
            max_retries=0,
            timeout=Timeout(server.patience.reply, connect=server.patience.connect),
        )
        self._not_before = 0.0
        self._last_reply: float | None = None
        self._first_asked: float | None = None

    async def ask_all(
        self,
        requests: Sequence[tuple[str, TextRequest]],
        arrived: Callable[[tuple[str, Reply]], None],
    ) -> None:
        """Ask for all, and hand over each reply as it comes, with its request's name.

        Raises:
            InputError: the first request that is given up; the others end with it.
        """
        waiting = iter(requests)
        at_once = min(self._server.concurrency, len(requests))
        apart = min(_APART_SECONDS, _ALL_BEGUN_SECONDS / max(at_once, 1))

        async def worker(number: int) -> None:
            await asyncio.sleep(number * apart)
            for name, request in waiting:
                arrived((name, await self._ask(request)))

        workers = [asyncio.create_task(worker(number)) for number in range(at_once)]
        try:
            await asyncio.gather(*workers)
        finally:
            for one in workers:
                one.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def close(self) -> None:
        """Close all connections."""
        await self._library.close()

    async def _ask(self, request: TextRequest) -> Reply:
        failures = 0
        limited_since: float | None = None
        while True:
            await self._wait_for_leave()
            found = await self._try(request)
            if isinstance(found, Reply):
                return found
            now = time.monotonic()
            if found.status == 429 and not found.final:
                limited_since = limited_since or now
                self._hold_back(found, limited_since, now)
                continue
            failures += 1
            self._give_up(found, failures)
            own = back_off(self._server.patience, failures, self._jitter)
            await asyncio.sleep(self._within_patience(found, found.wait or own))

    async def _wait_for_leave(self) -> None:
        while (wait := self._not_before - time.monotonic()) > 0:
            await asyncio.sleep(wait)

    def _hold_back(self, found: _Failure, since: float, now: float) -> None:
        """Let all requests wait, after a refusal because of the rate."""
        patience = self._server.patience
        waited = now - max(since, self._last_reply or 0.0)
        if waited > patience.limited:
            raise self._refusal(
                found, f"it refused everything for {waited:.0f} seconds ({found.problem})"
            )
        steps = 1 + int(np.log2(1 + waited / patience.first_wait))
        wait = back_off(patience, steps, self._jitter) if found.wait is None else found.wait
        wait = self._within_patience(found, wait)
        self._not_before = max(self._not_before, now + wait)

    def _within_patience(self, found: _Failure, wait: float) -> float:
        if wait > self._server.patience.limited:
            raise self._refusal(found, f"it asks to wait for {wait:.0f} seconds ({found.problem})")
        return wait

    def _give_up(self, found: _Failure, failures: int) -> None:
        """Raise where asking again is of no use, or was tried often enough."""
        tries = self._server.patience.tries
        if not found.connected and self._last_reply is None:
            tries = min(tries, _FIRST_CONNECTIONS)
        if found.final:
            raise self._refusal(found, found.problem)
        if failures >= tries:
            raise self._refusal(found, f"{found.problem}, {failures} times")

    def _refusal(self, found: _Failure, problem: str) -> InputError:
        return refusal(self._server, problem, key=self._key, status=found.status)

    async def _try(self, request: TextRequest) -> Reply | _Failure:
        """Send a request once."""
        import openai

        seconds = self._server.patience.reply
        try:
            async with asyncio.timeout(seconds):
                raw = await self._send(request.body(self._server))
            content, headers = raw.http_response.content, raw.headers
        except (openai.APITimeoutError, TimeoutError) as error:
            return self._late(error, seconds)
        except openai.APIStatusError as error:
            return _refused(error)
        except openai.APIConnectionError as error:
            return _Failure(f"no connection ({_cause(error)})", connected=False)
        except openai.OpenAIError as error:
            return _Failure(str(error) or type(error).__name__, status=0)
        self._last_reply = time.monotonic()
        if (wait := used_up(headers)) is not None:
            capped = min(wait, self._server.patience.limited)
            self._not_before = max(self._not_before, self._last_reply + capped)
        try:
            return read_reply(content, self._server.api)
        except DamagedReply as error:
            return _Failure(str(error), status=200)

    async def _send(self, body: dict[str, Any]) -> Any:
        # The library looks long at parameters that it knows; what it need not know goes beside.
        model = body.pop("model")
        if self._server.api == "chat":
            chat = self._library.chat.completions.with_raw_response
            return await chat.create(model=model, messages=body.pop("messages"), extra_body=body)
        plain = self._library.completions.with_raw_response
        return await plain.create(model=model, prompt=body.pop("prompt"), extra_body=body)

    def _late(self, error: Exception, seconds: float) -> _Failure:
        import openai

        cause = error.__cause__
        if isinstance(error, openai.APITimeoutError) and "Connect" in type(cause).__name__:
            limit = self._server.patience.connect
            return _Failure(f"no connection within {limit:g} seconds", connected=False)
        return _Failure(f"no reply within {seconds:g} seconds")


def _refused(error: Any) -> _Failure:
    status = int(error.status_code)
    problem = f"status {status}: {_words(error.response.text) or 'no reason given'}"
    exhausted = status == 429 and getattr(error, "code", None) == "insufficient_quota"
    again = status in _TEMPORARY or status == 429 or (status >= 500 and status != 501)
    return _Failure(
        problem,
        status=status,
        wait=prescribed_wait(error.response.headers, lambda: datetime.now(UTC)),
        final=not again or exhausted or wants_template(problem),
    )


def _words(content: str) -> str:
    """Return the reason in a refusal's body, wherever the server puts it; else all of it."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return content
    for name in ("error", "message", "detail"):
        if isinstance(found, dict) and found.get(name):
            found = found[name]
    return found if isinstance(found, str) else content


def _cause(error: Exception) -> str:
    """Return the words of the innermost reason, which say more than the library's."""
    inner: BaseException = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    return str(inner) or type(inner).__name__
