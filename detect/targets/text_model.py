"""Interface to a target for text-based detectors: continuations of prompts, and answers.

A local model (`detect.targets.local`) and a server (`detect.targets.server`) have the same
interface, so that a detector depends on neither. A sample depends only on the prompt's text, the
sample's number and the seed, never on the order or the batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from inject.digest import digest
from inject.errors import InputError
from inject.verified_files import cached_value

Progress = Callable[[int, int], None]
"""Called with (prompts done, prompts in all)."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sampling of continuations.

    Raises:
        InputError: a number that is out of range, or several samples of the likeliest text.
    """

    max_tokens: int
    """Maximum tokens of a continuation."""
    temperature: float = 0.0
    """0 selects the likeliest token each time."""
    samples: int = 1
    """Continuations of each prompt."""
    top_p: float = 1.0
    """Share of the probability to sample from."""
    top_k: int | None = None
    """Number of likeliest tokens to sample from; None for all."""
    stop: tuple[str, ...] = ()
    """Texts before which a continuation ends."""
    seed: int = 0
    """Seed of the sampling."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or self.samples < 1:
            raise InputError(
                f"{self.samples} samples of {self.max_tokens} tokens",
                where="sampling",
                allowed="1 or more of each",
            )
        if not 0 <= self.temperature <= 2:
            raise InputError(
                f"a temperature of {self.temperature}", where="sampling", allowed="0 to 2"
            )
        if self.temperature == 0 and self.samples > 1:
            raise InputError(
                f"{self.samples} samples at temperature 0 are identical",
                where="sampling",
                allowed="one sample, or a temperature above 0",
            )


class Completion(NamedTuple):
    """One continuation, and its cost."""

    text: str
    tokens_in: int
    """Tokens of the prompt; 0 for all samples of a prompt but the first, which share it."""
    tokens_out: int
    """Written tokens."""


def token_sums(written: Sequence[Any]) -> dict[str, Any]:
    """Return the `tokens_in` and the `tokens_out` of completions, or of what consists of them."""
    names = ("tokens_in", "tokens_out")
    return {name: sum(getattr(part, name) for part in written) for name in names}


class TextModel(Protocol):
    """A model that writes texts."""

    @property
    def name(self) -> str:
        """Path, hub id, or its name on a server."""

    def complete(
        self, prompts: Sequence[str], sampling: Sampling, *, progress: Progress | None = None
    ) -> list[list[Completion]]:
        """Return `sampling.samples` continuations of each prompt, which goes to the model as is."""

    def answer(
        self, questions: Sequence[str], sampling: Sampling, *, progress: Progress | None = None
    ) -> list[list[Completion]]:
        """Return answers to each question, through the chat template if there is one."""


def kept_completions(
    folder: Path | None, key: Any, ask: Callable[[], list[list[Completion]]]
) -> list[list[Completion]]:
    """Return earlier results from a folder, or query the model and store them there.

    Args:
        folder: folder that survives a killed run; None stores nothing.
        key: plain JSON values of the request and the model.
        ask: sends the request.
    """
    if folder is None:
        return ask()
    path = folder / f"{digest(key)[:32]}.json"
    rows = cached_value(path, lambda: [[list(completion) for completion in row] for row in ask()])
    return [[Completion(*values) for values in row] for row in rows]
