"""Guesses: a model's answers for masked parts of a text, and the file that stores them.

The prompts `passage`, `test` and those of knowledge filters are taken verbatim from Ravichander et
al. 2025, appendix B; the prompt for a masked option is from Deng et al. 2024. They are for models
that follow instructions. `plain` is ours, for models that only continue texts: the text up to the
mask is continued, and as many words are read as were masked. One prompt per mask. Answers are
stored in a folder, one hundred at a time, so that a restarted run requests only the remainder. Cost
of a text of N tokens with K masks: K · (N + 123) tokens in and a few out.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

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
from detect.targets.text_model import Completion, Sampling, TextModel, kept_completions, token_sums
from inject.tables import record_table

Prompt = Literal["passage", "test", "plain", "filter", "filter_100"]

_PASSAGE = """You have seen the following passage in your training data. What is the word that \
fills in the [MASK] token in it? This word is a noun, verb, adjective, or adverb (not a pronoun, \
preposition or conjunction). You must make a guess, even if you are uncertain.

Example:

Input: Stay gold, [MASK], stay gold.

Output: <word>Ponyboy</word>

Input: The door opened, and [MASK], dressed and hatted, entered with a cup of tea.

Output: <word>Gerty</word>

Input: {shown}"""
_TEST = """Complete the sentence in one word:

Input: {shown}

Reply the answer only."""
_OPTION = """Please fill in the [MASK] in option {option} based on your benchmark knowledge.

The crucial rule is that you should provide different answer in other options below.

{shown}

Reply the answer only."""
_FILTER = """What is the word that fills in the [MASK] token in the following passage?

Passage: {shown}"""
_FILTER_100 = """What are 100 words that can fill in the [MASK] token in the following passage?

Passage: {shown}"""
_TEMPLATES = {
    "passage": _PASSAGE,
    "test": _TEST,
    "filter": _FILTER,
    "filter_100": _FILTER_100,
}

_TAGGED = re.compile(r"<word>\s*(.*?)\s*(?:</word>|$)", re.IGNORECASE | re.DOTALL)
_LABEL = re.compile(r"^\s*(?:output|answer)\s*:\s*", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“”]([^\"“”]+)[\"“”]")
_SENTENCE = re.compile(r"\b(?:is|be|word)\s*:?\s+(\S+)\s*$", re.IGNORECASE)
_EDGES = " \t\n.,;:!?\"'“”‘’()[]{}*_`"


def prompt_text(part: MaskedPart, prompt: Prompt) -> str:
    """Return the prompt for a model; `plain` is continued, everything else is a question."""
    if prompt == "plain":
        return part.before.rstrip()
    template = _OPTION if part.option else _TEMPLATES[prompt]
    # By parts, not by `format`: a text may contain braces.
    return template.replace("{option}", part.option).replace("{shown}", part.shown)


def read_answer(written: str, part_words: int, prompt: Prompt) -> str:
    """Return the guess in an answer, without the text around it.

    Args:
        written: the answer.
        part_words: number of words of the masked part.
        prompt: name of the prompt.
    """
    if prompt == "plain":
        return _strip(" ".join(written.split()[:part_words]))
    if tagged := _TAGGED.search(written):
        return _strip(tagged[1])
    lines = [line for line in _LABEL.sub("", written.strip()).splitlines() if line.strip()]
    if not lines:
        return ""
    line = _LABEL.sub("", lines[0])
    if len(line.split()) > part_words:
        if quoted := _QUOTED.findall(line):
            return _strip(quoted[-1])
        if wrapped := _SENTENCE.search(line):
            return _strip(wrapped[1])
    return _strip(line)


def is_correct_guess(guess: str, part: str) -> bool:
    """Return whether a guess is the masked part; case does not matter."""
    return bool(guess) and guess.casefold() == _strip(part).casefold()


def listed(written: str, part: str) -> bool:
    """Return whether a list by a model contains a word."""
    return _strip(part).casefold() in {_strip(word).casefold() for word in written.split()}


def _strip(text: str) -> str:
    return text.strip(_EDGES)


GUESSES_FILE = "guesses.parquet"
TOGETHER = 256
"""Prompts per request and stored batch."""
WORD_TOKENS = 12
"""Maximum tokens of one word of a continuation."""
LIST_TOKENS = 512
"""Maximum tokens of a list of a hundred words."""


@dataclass(frozen=True)
class GuessRequest:
    """The masked parts, and the prompt."""

    method: Method = "prob"
    prompt: Prompt = "passage"
    filtered: bool = False
    """Skip the parts that the knowledge filter guesses."""
    limit: int = 10
    """Maximum parts per text."""
    threshold: float = -12.0
    """For `prob`: the upper limit of a word's log-probability; for `rank`: the lower limit of its
    rank; None for the others."""
    max_tokens: int = 32
    """Maximum tokens of an answer."""
    candidates: Candidates = "words"
    """For `prob` and `rank`: `nouns` by their first piece, or `words` by all of their pieces."""

    @property
    def asks_reference(self) -> bool:
        """Whether a reference model selects the words."""
        return self.method in ("prob", "rank")


PAPER = GuessRequest(candidates="nouns")
"""Nouns of low probability, with the prompt of Ravichander et al. 2025."""


@dataclass(frozen=True)
class GuessedText:
    """A model's answers for the masked parts of one text."""

    wanted: tuple[str, ...]
    written: tuple[str, ...] = ()
    """Unprocessed answers."""
    filtered: int = 0
    """Number of parts that were skipped because the knowledge filter guessed them."""
    tokens_in: int = 0
    tokens_out: int = 0
    reason: str | None = None
    """Reason why nothing was requested."""

    def guesses(self, prompt: Prompt) -> list[str]:
        """Return the answers without the text around them."""
        return [
            read_answer(written, len(part.split()), prompt)
            for part, written in zip(self.wanted, self.written, strict=True)
        ]

    def exact(self, prompt: Prompt) -> list[bool]:
        """Return, for each part, whether it was guessed."""
        return [
            is_correct_guess(guess, part)
            for guess, part in zip(self.guesses(prompt), self.wanted, strict=True)
        ]


@dataclass(frozen=True)
class MaskedText:
    """The masked parts of one text, or the reason why there are none."""

    parts: tuple[MaskedPart, ...]
    reason: str | None = None


def mask_text(
    text: str,
    request: GuessRequest,
    *,
    fields: Mapping[str, Any] | None = None,
    words: Sequence[WordStatistics] = (),
) -> MaskedText:
    """Return the parts of a text that a request masks.

    Args:
        text: the text.
        request: the parts to mask.
        fields: the text's `question`, `options` and `answer`, if it has any.
        words: words under the reference model, if it selects them.
    """
    if not text.strip():
        return MaskedText((), EMPTY_TEXT)
    fields = fields or {}
    if request.method == "option":
        option = wrong_option(text, fields)
        return MaskedText((option,)) if option else MaskedText((), NO_OPTIONS)
    if request.method == "question":
        question = fields.get("question")
        word = informative_word(text, question if isinstance(question, str) else text)
        return MaskedText((word,)) if word else MaskedText((), NO_WORD)
    if request.method == "person":
        parts = names(text, limit=request.limit)
        return MaskedText(tuple(parts), None if parts else NO_NAME)
    parts = surprising_words(
        text,
        words,
        request.method,
        limit=request.limit,
        threshold=request.threshold,
        candidates=request.candidates,
    )
    return MaskedText(tuple(parts), None if parts else NO_SURPRISE)


def guess(
    model: TextModel,
    masked: Sequence[MaskedText],
    request: GuessRequest,
    *,
    is_known: Sequence[Sequence[bool]] | None = None,
    answers: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[GuessedText]:
    """Query a model for every masked part; results in the order given.

    Args:
        model: continues texts under `plain`, else answers.
        masked: results of `mask_text`.
        request: the prompt.
        is_known: for each text, the parts that the knowledge filter guessed; these are skipped.
        answers: a folder for the answers so far; None stores nothing.
        progress: called with (prompts done, prompts in all).
    """
    left = [
        [part for number, part in enumerate(text.parts) if not (is_known and is_known[row][number])]
        for row, text in enumerate(masked)
    ]
    prompts = [prompt_text(part, request.prompt) for parts in left for part in parts]
    written: list[Completion] = []
    for start in range(0, len(prompts), TOGETHER):
        written += _complete(model, prompts[start : start + TOGETHER], request, answers)
        progress(len(written), len(prompts))
    guesses, position = [], 0
    for text, parts in zip(masked, left, strict=True):
        own = written[position : position + len(parts)]
        position += len(parts)
        guesses.append(
            GuessedText(
                wanted=tuple(part.wanted for part in parts),
                written=tuple(completion.text for completion in own),
                filtered=len(text.parts) - len(parts),
                **token_sums(own),
                reason=text.reason,
            )
        )
    return guesses


def known_parts(single: Sequence[GuessedText], lists: Sequence[GuessedText]) -> list[list[bool]]:
    """Return, for each text, the parts that a knowledge filter guessed by either of its prompts."""
    return [
        [
            is_correct_guess(single_guess, part) or listed(many, part)
            for single_guess, many, part in zip(
                first.guesses("filter"), second.written, first.wanted, strict=True
            )
        ]
        for first, second in zip(single, lists, strict=True)
    ]


def request_record(request: GuessRequest) -> dict[str, Any]:
    """Return a request as plain JSON values."""
    return {**asdict(request), "threshold": float(request.threshold)}


def _complete(
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

    key = ["guesses", request_record(request), list(prompts)]
    return [row[0] for row in kept_completions(answers, key, ask)]


write_guesses, read_guesses = record_table(GUESSES_FILE, GuessedText)
