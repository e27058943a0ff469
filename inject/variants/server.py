"""The model behind a server that writes paraphrases, and the model of any kind that is asked.

The key comes from the environment variable that the experiment names, and is written nowhere
(`inject.server`).
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from inject.server.address import Server
from inject.server.client import ServerClient
from inject.server.request import TextRequest
from inject.variants.paraphrase import Question
from inject.variants.settings import ParaphraseVariant

REPLIES_FILE = "replies.sqlite"


class ServerTextGenerator:
    """Asks a chat completion for each prompt, several at a time.

    Raises:
        InputError: the environment variable of the key is not set.
    """

    def __init__(self, variant: ParaphraseVariant, cache: Path | None = None) -> None:
        """Open the server; nothing is asked yet.

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
        self, questions: Sequence[Question], *, progress: Callable[[int, int], None] | None = None
    ) -> list[str]:
        """Return the server's answers.

        Raises:
            InputError: the server cannot be reached, or refuses.
        """
        requests = [
            TextRequest(
                prompt=one.prompt,
                max_tokens=self._variant.max_tokens,
                temperature=self._variant.temperature,
                seed=one.seed,
            )
            for one in questions
        ]
        return [reply.text for reply in self._client.ask(requests, progress=progress)]

    def notes(self) -> tuple[str, ...]:
        """Return what to know about the answers."""
        return self._client.notes()

    def close(self) -> None:
        """Close connections and the file of replies."""
        self._client.close()
