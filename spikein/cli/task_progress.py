"""The progress bar of a command that does one thing, counted in tokens or another unit."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class OnTokens(Protocol):
    """Called with the units done, all units (None: unknown), and what is being done."""

    def __call__(self, done: float, total: float | None, note: str = "") -> None:
        """Show how far it is."""
        ...


@contextmanager
def task_progress(name: str, *, unit: str = "tokens") -> Iterator[OnTokens]:
    """Show a bar from the first call on; a task that never calls shows nothing."""
    from spikein.progress import show_progress

    started = False
    with show_progress() as progress:

        def on_tokens(done: float, total: float | None, note: str = "") -> None:
            nonlocal started
            if not started:
                progress.step_started(name, number=1, total=1)
                started = True
            progress.step_advanced(name, done, total, unit, note)

        yield on_tokens
