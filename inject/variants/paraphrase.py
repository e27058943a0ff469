"""Paraphrases that a model writes: requested together, checked, and requested again if necessary.

An answer that is empty, or the text itself, is requested again with another seed, a few times; then
it is an error that names the row. A row's answer depends only on its own answers. Writers keep
their answers (`inject.server.reply_cache`), so that a killed run requests none twice. The key of a
server comes from the environment variable that the experiment names, and is never written
(`inject.server`).
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from inject.errors import InputError
from inject.examples.example import Example
from inject.server.client import ServerClient
from inject.server.request import Server, TextRequest
from inject.variants.settings import ParaphraseVariant

TRIES = 4
REPLIES_FILE = "replies.sqlite"


class SeededPrompt(NamedTuple):
    """A prompt for a model, and its seed."""

    prompt: str
    seed: int


class TextGenerator(Protocol):
    """A model that answers prompts."""

    def write(
        self,
        questions: Sequence[SeededPrompt],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[str]:
        """Return the model's answers; `progress` hears of answers so far, and in all."""
        ...

    def notes(self) -> tuple[str, ...]:
        """Return notes on the answers so far."""
        ...

    def close(self) -> None:
        """Let go of connections and files."""
        ...


class ServerTextGenerator:
    """Asks a chat completion for each prompt, several at a time.

    Raises:
        InputError: the environment variable of the key is not set.
    """

    def __init__(self, variant: ParaphraseVariant, cache: Path | None = None) -> None:
        """Open the server; no request is sent yet.

        Args:
            variant: which server, which model, and how it samples.
            cache: a folder for replies; None keeps none.
        """
        self._variant = variant
        server = Server(
            base_url=variant.base_url or "",
            model=variant.model or "",
            api="chat",
            api_key_variable=variant.api_key_variable,
        )
        self._client = ServerClient(server, cache=cache and cache / REPLIES_FILE)

    def write(
        self,
        questions: Sequence[SeededPrompt],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[str]:
        """Return the server's answers.

        Raises:
            InputError: a server that cannot be reached or refuses.
        """
        requests = [
            TextRequest(
                prompt=question.prompt,
                max_tokens=self._variant.max_tokens,
                temperature=self._variant.temperature,
                seed=question.seed,
            )
            for question in questions
        ]
        return [reply.text for reply in self._client.ask(requests, progress=progress)]

    def notes(self) -> tuple[str, ...]:
        """Return notes on the answers."""
        return self._client.notes()

    def close(self) -> None:
        """Close connections and the file of replies."""
        self._client.close()


def dataset_paraphrases(example: Example, versions: int) -> list[str]:
    """Return the first paraphrases that the dataset brings.

    Raises:
        InputError: an example with fewer than `versions`.
    """
    if len(example.paraphrases) < versions:
        raise InputError(
            f"the variant `paraphrase` needs {versions} paraphrases of each row, and row "
            f"{example.source_id} has {len(example.paraphrases)}",
            where=f"contaminants.{example.dataset}",
            hint="Lower `versions`, or let a model write them: {kind: paraphrase, by: model, …}.",
        )
    return list(example.paraphrases[:versions])


def model_paraphrases(
    examples: Sequence[Example],
    variant: ParaphraseVariant,
    *,
    writer: TextGenerator,
    progress: Callable[[int, int], None] | None,
) -> list[list[str]]:
    """Return `versions` paraphrases of each example.

    Args:
        examples: in order.
        variant: model, prompt, temperature, seed.
        writer: the model.
        progress: called with the number of answers so far, and in all.

    Raises:
        InputError: a model that returns nothing, or the text itself, `TRIES` times.
    """
    missing = [
        (row, version) for row in range(len(examples)) for version in range(variant.versions)
    ]
    total = len(missing)
    written: dict[tuple[int, int], str] = {}

    def report(done: int, _n_requested: int) -> None:
        if progress is not None:
            progress(total - len(missing) + done, total)

    for attempt in range(TRIES):
        questions = [
            SeededPrompt(
                variant.prompt.replace("{text}", examples[row].text),
                (variant.seed + version * TRIES + attempt) % 2**31,
            )
            for row, version in missing
        ]
        answers = writer.write(questions, progress=report)
        for place, answer in zip(missing, map(str.strip, answers), strict=True):
            if answer and _normalise(answer) != _normalise(examples[place[0]].text):
                written[place] = answer
            elif attempt == TRIES - 1:
                raise _unusable_error(examples[place[0]], variant, answer)
        missing = [place for place in missing if place not in written]
        if not missing:
            break
    return [
        [written[row, version] for version in range(variant.versions)]
        for row in range(len(examples))
    ]


def _unusable_error(example: Example, variant: ParaphraseVariant, answer: str) -> InputError:
    return InputError(
        f"the paraphrase model {variant.model} returned "
        f"{'the text unchanged' if answer else 'nothing'} for row {example.source_id}, "
        f"{TRIES} times with different seeds",
        where=f"contaminants.{example.dataset}",
        hint="Raise the temperature, change the prompt, or use another model.",
    )


def _normalise(text: str) -> str:
    return " ".join(text.lower().split())
