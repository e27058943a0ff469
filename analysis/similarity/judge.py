"""A judge: a served model that rates how alike two texts are, from 1 to 5.

The question is the template of Shi et al. 2024, Table 9, word for word (`judge_system.txt` and
`judge_user.txt`; there a) is the ground truth and b) what a model wrote). The score is read
strictly, as the template asks for it; a reply without one has no score, and is counted, never
guessed. The judge takes its likeliest reply (temperature 0). Replies are kept under what was asked,
so that nothing is paid twice; the key comes from an environment variable alone (`inject.server`).
Cost: one request a pair, some 300 tokens and the two texts.
"""

import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from inject.server.address import Server
from inject.server.client import Cost, Estimate, ServerClient
from inject.server.request import TextRequest

_MAX_TOKENS = 200
_SCORE = re.compile(r"\s*Score:\s*([1-5])(?![\d/]|[.,]\d)")
_ANY_SCORE = re.compile(r"Score:\s*(\S+)")
_REASON = re.compile(r"Reason:\s*(.*)", re.DOTALL)


class Pair(NamedTuple):
    """Two texts to be compared."""

    truth: str
    """Output (a)."""
    written: str
    """Output (b)."""


class Judgement(NamedTuple):
    """What the judge replied about a pair."""

    score: int | None
    """1 (highly dissimilar) to 5 (highly similar); None where the reply holds no such score."""
    reason: str
    """Its sentence; empty where it gave none."""
    reply: str
    """The whole reply."""


class Judge:
    """Rates pairs of texts.

    Raises:
        InputError: the environment variable of the key is not set; the cache cannot be used.
    """

    def __init__(self, server: Server, *, cache: Path | None) -> None:
        """Open the server; nothing is asked yet.

        Args:
            server: which one, which model, and how; `chat` gives the system's message its role.
            cache: the file of replies; None keeps nothing.
        """
        self._client = ServerClient(server, cache=cache)

    @property
    def cost(self) -> Cost:
        """What was asked for so far."""
        return self._client.cost

    def estimate(self, pairs: Sequence[Pair]) -> Estimate:
        """Return what rating these pairs will take; asks nothing."""
        return self._client.estimate([judge_request(pair) for pair in pairs])

    def rate(
        self, pairs: Sequence[Pair], *, progress: Callable[[int, int], None] | None = None
    ) -> list[Judgement]:
        """Return a judgement of each pair, in order; equal pairs are asked once.

        Raises:
            InputError: as `ServerClient.ask`.
        """
        replies = self._client.ask([judge_request(pair) for pair in pairs], progress=progress)
        return [read_judgement(reply.text) for reply in replies]

    def notes(self) -> tuple[str, ...]:
        """Return what to know about the replies."""
        return self._client.notes()

    def close(self) -> None:
        """Close connections and cache."""
        self._client.close()


def judge_request(pair: Pair) -> TextRequest:
    """Return the question about a pair."""
    texts = files("analysis.similarity")
    user = Template((texts / "judge_user.txt").read_text(encoding="utf-8"))
    return TextRequest(
        system=(texts / "judge_system.txt").read_text(encoding="utf-8").strip(),
        prompt=user.substitute(a=pair.truth, b=pair.written).strip(),
        max_tokens=_MAX_TOKENS,
    )


def read_judgement(reply: str) -> Judgement:
    """Read a reply: it begins with `Score: ` and one digit of 1 to 5, and gives one score alone."""
    reason = _REASON.search(reply)
    sentence = "" if reason is None else reason[1].strip()
    found = _SCORE.match(reply)
    given = {one.rstrip(".,;") for one in _ANY_SCORE.findall(reply)}
    score = int(found[1]) if found is not None and given == {found[1]} else None
    return Judgement(score, sentence, reply)
