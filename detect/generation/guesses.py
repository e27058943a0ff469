"""Guesses: what a model answers when parts of a text are masked, and the file that holds them.

One prompt a mask. Answers are kept by the hundred in a folder, so that a killed run asks for the
remainder alone. Cost of a text of N tokens with K masks: K · (N + 123) tokens in and a few out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from detect.generation.guess_prompts import Prompt, listed, prompt_text, read_answer, same
from detect.generation.masked_parts import (
    EMPTY_TEXT,
    NO_NAME,
    NO_OPTIONS,
    NO_SURPRISE,
    NO_WORD,
    Candidates,
    MaskedPart,
    Method,
    WordStatistics,
    informative_word,
    names,
    surprising_words,
    wrong_option,
)
from detect.targets.text_model import Completion, Sampling, TextModel, kept_completions
from inject.tables import read_records, write_records

GUESSES_FILE = "guesses.parquet"
TOGETHER = 256
"""Prompts that are asked, and kept, at once."""
WORD_TOKENS = 12
"""Most tokens of one word that a model continues a text with."""
LIST_TOKENS = 512
"""Most tokens of a list of a hundred words."""
SCHEMA = pa.schema(
    [
        ("example_id", pa.string()),
        ("wanted", pa.list_(pa.string())),
        ("written", pa.list_(pa.string())),
        ("filtered", pa.int64()),
        ("tokens_in", pa.int64()),
        ("tokens_out", pa.int64()),
        ("reason", pa.string()),
    ]
)


@dataclass(frozen=True)
class GuessRequest:
    """Which parts are masked, and how a model is asked for them."""

    method: Method = "prob"
    prompt: Prompt = "passage"
    filtered: bool = False
    """Leave out what the knowledge filter guesses."""
    limit: int = 10
    """Most parts of a text."""
    threshold: float = -12.0
    """Of `prob`: the log-probability that a word's lies below; of `rank`: the rank that it lies
    above; nothing for the others."""
    max_tokens: int = 32
    """Of an answer."""
    candidates: Candidates = "words"
    """Of `prob` and `rank`: `nouns` by their first piece, or `words` by all of their pieces."""

    @property
    def asks_reference(self) -> bool:
        """Whether a reference model chooses the words."""
        return self.method in ("prob", "rank")


PAPER = GuessRequest(candidates="nouns")
"""Nouns of low probability, asked for as in Ravichander et al. 2025."""


@dataclass(frozen=True)
class GuessedText:
    """What a model answered for the masked parts of one text."""

    wanted: tuple[str, ...]
    written: tuple[str, ...] = ()
    """Answers as they came."""
    filtered: int = 0
    """Parts that the knowledge filter guessed, and that were not asked for."""
    tokens_in: int = 0
    tokens_out: int = 0
    reason: str | None = None
    """Why nothing was asked."""

    def guesses(self, prompt: Prompt) -> list[str]:
        """Return the answers without what models put around them."""
        return [
            read_answer(written, len(wanted.split()), prompt)
            for wanted, written in zip(self.wanted, self.written, strict=True)
        ]

    def exact(self, prompt: Prompt) -> list[bool]:
        """Return which parts were guessed."""
        return [
            same(guess, wanted)
            for guess, wanted in zip(self.guesses(prompt), self.wanted, strict=True)
        ]


@dataclass(frozen=True)
class MaskedText:
    """The parts of one text that are masked, or why there are none."""

    parts: tuple[MaskedPart, ...]
    reason: str | None = None


@dataclass(frozen=True)
class TextToMask:
    """A text, and what is known of it."""

    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Its `question`, `options` and `answer`, where it has any."""
    words: Sequence[WordStatistics] = ()
    """Under the reference model, where one chooses the words."""


def mask_text(one: TextToMask, request: GuessRequest) -> MaskedText:
    """Return the parts of a text that a request masks."""
    if not one.text.strip():
        return MaskedText((), EMPTY_TEXT)
    if request.method == "option":
        option = wrong_option(one.text, one.fields)
        return MaskedText((option,)) if option else MaskedText((), NO_OPTIONS)
    if request.method == "question":
        question = one.fields.get("question")
        word = informative_word(one.text, question if isinstance(question, str) else one.text)
        return MaskedText((word,)) if word else MaskedText((), NO_WORD)
    if request.method == "person":
        found = names(one.text, limit=request.limit)
        return MaskedText(tuple(found), None if found else NO_NAME)
    found = surprising_words(
        one.text,
        one.words,
        request.method,
        limit=request.limit,
        threshold=request.threshold,
        candidates=request.candidates,
    )
    return MaskedText(tuple(found), None if found else NO_SURPRISE)


def guess(
    model: TextModel,
    masked: Sequence[MaskedText],
    request: GuessRequest,
    *,
    known: Sequence[Sequence[bool]] | None = None,
    answers: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[GuessedText]:
    """Ask a model for every masked part; results in the order given.

    Args:
        model: continues texts under `plain`, else answers.
        masked: of `mask_text`.
        request: how it is asked.
        known: of each text, which parts the knowledge filter guessed; these are not asked for.
        answers: a folder for what was answered so far; None keeps nothing.
        progress: called with (prompts done, prompts in all).
    """
    left = [
        [part for number, part in enumerate(one.parts) if not (known and known[row][number])]
        for row, one in enumerate(masked)
    ]
    prompts = [prompt_text(part, request.prompt) for parts in left for part in parts]
    written: list[Completion] = []
    for start in range(0, len(prompts), TOGETHER):
        written += _asked(model, prompts[start : start + TOGETHER], request, answers)
        if progress is not None:
            progress(len(written), len(prompts))
    found, position = [], 0
    for one, parts in zip(masked, left, strict=True):
        own = written[position : position + len(parts)]
        position += len(parts)
        found.append(
            GuessedText(
                wanted=tuple(part.wanted for part in parts),
                written=tuple(completion.text for completion in own),
                filtered=len(one.parts) - len(parts),
                tokens_in=sum(completion.tokens_in for completion in own),
                tokens_out=sum(completion.tokens_out for completion in own),
                reason=one.reason,
            )
        )
    return found


def known_parts(single: Sequence[GuessedText], lists: Sequence[GuessedText]) -> list[list[bool]]:
    """Return which parts of each text a knowledge filter guessed, in either of its two ways."""
    return [
        [
            same(one, wanted) or listed(many, wanted)
            for one, many, wanted in zip(
                first.guesses("filter"), second.written, first.wanted, strict=True
            )
        ]
        for first, second in zip(single, lists, strict=True)
    ]


def request_record(request: GuessRequest) -> dict[str, Any]:
    """Return a request as plain JSON values."""
    return {**asdict(request), "threshold": float(request.threshold)}


def _asked(
    model: TextModel,
    prompts: Sequence[str],
    request: GuessRequest,
    answers: Path | None,
) -> list[Completion]:
    length = request.max_tokens
    if request.prompt == "filter_100":
        length = LIST_TOKENS
    elif request.prompt == "plain" and request.method != "option":
        length = min(length, WORD_TOKENS)

    def ask() -> list[list[Completion]]:
        write = model.complete if request.prompt == "plain" else model.answer
        return write(prompts, Sampling(max_tokens=length))

    asked = ["guesses", request_record(request), list(prompts)]
    return [row[0] for row in kept_completions(answers, asked, ask)]


def write_guesses(folder: Path, example_ids: Sequence[str], rows: Sequence[GuessedText]) -> None:
    """Write `guesses.parquet`: one row an example, in order."""
    write_records(folder / GUESSES_FILE, SCHEMA, example_ids, rows)


def read_guesses(folder: Path) -> dict[str, GuessedText]:
    """Read what `write_guesses` wrote, by example id."""
    return read_records(folder / GUESSES_FILE, SCHEMA, GuessedText)
