"""Continuations of texts by a model, and the file that holds them.

Every text is divided, its beginning is continued, and what was written stands beside the rest. A
word is what stands between white space; beginning and rest, put together, are the text, or its
first tokens where the beginning is counted in tokens. A continuation may be about as long as the
rest, and no longer, so that the cost follows from the texts: 1,000 texts of 100 words with 10
samples are some 700,000 tokens written. Answers are kept by the hundred in a folder, so that a
killed run asks for the remainder alone.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NamedTuple

from detect.targets.text_model import Completion, Sampling, TextModel, kept_completions
from inject.errors import InputError
from inject.tables import record_table

Unit = Literal["share", "words", "tokens"]
_WORD = re.compile(r"\S+")
CONTINUATIONS_FILE = "continuations.parquet"
TOGETHER = 128
"""Prompts that are asked, and kept, at once."""
_STEP = 16
"""Lengths are rounded up to a multiple of it, so that few of them differ."""
_MARGIN = 8
"""Tokens beyond the rest: a model may cut words otherwise."""


class Beginning(NamedTuple):
    """How much of a text a model is given."""

    unit: Unit = "share"
    """`share`: floor(words · amount); `words` and `tokens`: so many."""
    amount: Decimal = Decimal("0.5")

    def __str__(self) -> str:
        return f"{self.unit} {self.amount.normalize():f}"


FIRST_HALF = Beginning()


class Division(NamedTuple):
    """A text in two."""

    beginning: str
    rest: str
    """Begins with the white space that stands between the two."""
    rest_tokens: int | None
    """Tokens of the rest, where they were counted."""


def divide(text: str, at: Beginning, ends: Sequence[int] | None) -> Division | str:
    """Return a text in two, or why it cannot be divided.

    Args:
        text: any text.
        at: how much of it is the beginning.
        ends: where each of its tokens ends, in characters; None where the tokenizer is not known.
    """
    if not text.strip():
        return "empty text"
    if at.unit == "tokens":
        return _at_token(text, int(at.amount), ends)
    stops = [word.end() for word in _WORD.finditer(text)]
    count = int(at.amount)
    if at.unit == "share":
        count = math.floor(len(stops) * Fraction(at.amount))
    if not 1 <= count < len(stops):
        return f"{len(stops)} words are too few to divide at {at}"
    stop = stops[count - 1]
    counted = None if ends is None else sum(end > stop for end in ends)
    return Division(text[:stop], text[stop:], counted)


def _at_token(text: str, count: int, ends: Sequence[int] | None) -> Division | str:
    """Divide at a token; the rest is as many tokens (Duarte et al. 2024, section 5.1.1)."""
    if ends is None:
        raise TypeError("a beginning in tokens without the tokens")
    if len(ends) < 2 * count:
        return f"{len(ends)} tokens are fewer than twice {count}"
    stop, last = ends[count - 1], ends[2 * count - 1]
    if not text[:stop].strip() or not text[stop:last].strip():
        return f"{count} tokens hold nothing but white space"
    return Division(text[:stop], text[stop:last], count)


@dataclass(frozen=True)
class ContinuationRequest:
    """Which beginnings are continued, and how."""

    beginning: Beginning = FIRST_HALF
    samples: int = 1
    """Continuations of each text."""
    temperature: float = 0.0
    """0 takes the likeliest token each time."""
    top_k: int | None = None
    """Tokens that are sampled from; None for all."""
    max_tokens: int = 512
    """Most tokens of a continuation, however long the rest is."""
    instruction: str = ""
    """Stands before the beginning, and makes of it a question to a model that answers."""
    seed: int = 0
    """Of the sampling."""

    def __str__(self) -> str:
        how = "greedy" if self.temperature == 0 else f"temperature {self.temperature:g}"
        return f"{self.samples} of {self.beginning}, {how}"

    def sampling(self, max_tokens: int) -> Sampling:
        """Return how continuations of a length are written."""
        return Sampling(
            max_tokens=max_tokens,
            temperature=self.temperature,
            samples=self.samples,
            top_k=self.top_k,
            seed=self.seed,
        )


@dataclass(frozen=True)
class Continued:
    """What a model wrote after the beginning of one text."""

    beginning: str
    rest: str
    texts: tuple[str, ...]
    """One a sample; empty if the text could not be divided."""
    tokens_in: int = 0
    tokens_out: int = 0
    reason: str | None = None
    """Why nothing was written."""


def continue_texts(
    model: TextModel,
    texts: Sequence[str],
    request: ContinuationRequest,
    *,
    answers: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Continued]:
    """Let a model continue the beginning of each text; results in the order given.

    Args:
        model: asked for continuations, or for answers where there is an instruction.
        texts: any texts; one that cannot be divided gets a reason.
        request: what is asked.
        answers: a folder for what was written so far; None keeps nothing.
        progress: called with (texts done, texts in all).

    Raises:
        InputError: a beginning in tokens, and a model that does not say what a token is.
    """
    divided = _divided(model, texts, request.beginning)
    asked: dict[int, list[str]] = {}
    for one in divided:
        if isinstance(one, Division):
            asked.setdefault(_longest(one, request), []).append(one.beginning)
    total = sum(map(len, asked.values()))
    done = 0
    written: dict[tuple[int, str], list[Completion]] = {}
    for length, beginnings in sorted(asked.items(), reverse=True):
        every = list(dict.fromkeys(beginnings))
        for start in range(0, len(every), TOGETHER):
            part = every[start : start + TOGETHER]
            found = _asked(model, part, request, length, answers)
            written |= {(length, text): one for text, one in zip(part, found, strict=True)}
            done += sum(beginnings.count(text) for text in part)
            progress(done, total)
    return [
        _continued(one, written[_longest(one, request), one.beginning])
        if isinstance(one, Division)
        else Continued("", "", (), reason=one)
        for one in divided
    ]


GREEDY = ContinuationRequest()
"""The likeliest continuation of the first half."""


write_continuations, read_continuations = record_table(CONTINUATIONS_FILE, Continued)


def _divided(model: TextModel, texts: Sequence[str], beginning: Beginning) -> list[Division | str]:
    ends: Sequence[list[int] | None] = [None] * len(texts)
    if (counts := getattr(model, "token_ends", None)) is not None:
        ends = counts(texts)
    elif beginning.unit == "tokens":
        raise InputError(
            f"a beginning of {beginning} needs the model's tokenizer, which is not known",
            where=model.name,
            allowed="a beginning in words, or a share of them",
        )
    return [divide(text, beginning, own) for text, own in zip(texts, ends, strict=True)]


def _longest(one: Division, request: ContinuationRequest) -> int:
    """Return the most tokens of a continuation: what the rest has, and a little more."""
    if request.beginning.unit == "tokens":
        return min(request.max_tokens, one.rest_tokens or 1)
    # Half its bytes, where nobody can count: of English text, twice its tokens.
    counted = len(one.rest.encode()) // 2 if one.rest_tokens is None else one.rest_tokens
    return min(request.max_tokens, -(-(counted + _MARGIN) // _STEP) * _STEP)


def _asked(
    model: TextModel,
    beginnings: Sequence[str],
    request: ContinuationRequest,
    length: int,
    answers: Path | None,
) -> list[list[Completion]]:
    """Return the continuations of a few beginnings, from the folder where they are there."""

    def ask() -> list[list[Completion]]:
        if request.instruction:
            questions = [f"{request.instruction} {beginning}" for beginning in beginnings]
            return model.answer(questions, request.sampling(length))
        return model.complete(beginnings, request.sampling(length))

    asked = ["continuations", request_record(request), length, list(beginnings)]
    return kept_completions(answers, asked, ask)


def _continued(one: Division, written: Sequence[Completion]) -> Continued:
    return Continued(
        beginning=one.beginning,
        rest=one.rest,
        texts=tuple(completion.text for completion in written),
        tokens_in=sum(completion.tokens_in for completion in written),
        tokens_out=sum(completion.tokens_out for completion in written),
    )


def request_record(request: ContinuationRequest) -> dict[str, object]:
    """Return a request as plain JSON values."""
    record = asdict(request)
    return {
        **record,
        "beginning": str(request.beginning),
        "temperature": float(request.temperature),
    }


def read_request(record: Mapping[str, Any]) -> ContinuationRequest:
    """Return the request of a record that `request_record` made."""
    unit, amount = record["beginning"].split()
    return ContinuationRequest(**{**record, "beginning": Beginning(unit, Decimal(amount))})
