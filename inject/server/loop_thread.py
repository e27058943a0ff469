"""A thread that runs coroutines, for callers that are in no loop, or in one of their own.

A notebook's cell runs inside a loop, where `asyncio.run` is refused. The thread is a daemon: it
ends with the process.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """One thread with one loop."""

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
