"""Continuations of texts by a model, and the file that stores them.

Every text is divided, the model continues its beginning, and the continuation is stored with the
rest. Words are separated by white space; beginning and rest together are the text, or its first
tokens if the beginning is counted in tokens. A continuation is at most about as long as the rest,
so the cost follows from the texts: 1,000 texts of 100 words with 10 samples are some 700,000
written tokens. Answers are stored in a folder, one hundred at a time, so that a restarted run
requests only the remainder.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NamedTuple

from detect.targets.text_model import Completion, Sampling, TextModel, kept_completions, token_sums
from inject.errors import InputError
from inject.tables import record_table

Unit = Literal["share", "words", "tokens"]
_WORD = re.compile(r"\S+")
CONTINUATIONS_FILE = "continuations.parquet"
TOGETHER = 128
"""Prompts per request and stored batch."""
_STEP = 16
"""Lengths are rounded up to a multiple of this, so that few lengths differ."""
_MARGIN = 8
"""Tokens beyond the rest: a model may split words differently."""


class PromptLength(NamedTuple):
    """Length of the beginning that a model receives."""

    unit: Unit = "share"
    """`share`: floor(words · amount); `words` and `tokens`: `amount` of them."""
    amount: Decimal = Decimal("0.5")

    def __str__(self) -> str:
        return f"{self.unit} {self.amount.normalize():f}"


FIRST_HALF = PromptLength()


class PromptSplit(NamedTuple):
    """A text in two."""

    beginning: str
    rest: str
    """The rest, with the white space between the two parts."""
    rest_tokens: int | None
    """Tokens of the rest, if counted."""


def divide(text: str, at: PromptLength, ends: Sequence[int] | None) -> PromptSplit | str:
    """Return a text in two parts, or the reason why it cannot be divided.

    Args:
        text: any text.
        at: length of the beginning.
        ends: where each of its tokens ends, in characters; None if the tokenizer is not known.
    """
    if not text.strip():
        return "empty text"
    if at.unit == "tokens":
        return _at_token(text, int(at.amount), ends)
    stops = [word.end() for word in _WORD.finditer(text)]
    share = Fraction(at.amount) if at.unit == "share" else None
    count = int(at.amount) if share is None else math.floor(len(stops) * share)
    if not 1 <= count < len(stops):
        return f"{len(stops)} words are too few to divide at {at}"
    stop = stops[count - 1]
    counted = None if ends is None else sum(end > stop for end in ends)
    return PromptSplit(text[:stop], text[stop:], counted)


def _at_token(text: str, count: int, ends: Sequence[int] | None) -> PromptSplit | str:
    """Divide at a token; the rest is as many tokens (Duarte et al. 2024, section 5.1.1)."""
    if ends is None:
        raise TypeError("a beginning in tokens without the tokens")
    if len(ends) < 2 * count:
        return f"{len(ends)} tokens are fewer than twice {count}"
    stop, last = ends[count - 1], ends[2 * count - 1]
    if not text[:stop].strip() or not text[stop:last].strip():
        return f"{count} tokens hold nothing but white space"
    return PromptSplit(text[:stop], text[stop:last], count)


@dataclass(frozen=True)
class ContinuationRequest:
    """The beginnings to continue, and the sampling."""

    beginning: PromptLength = FIRST_HALF
    samples: int = 1
    """Continuations of each text."""
    temperature: float = 0.0
    """0 selects the likeliest token each time."""
    top_k: int | None = None
    """Number of likeliest tokens to sample from; None for all."""
    max_tokens: int = 512
    """Maximum tokens of a continuation, regardless of the rest's length."""
    instruction: str = ""
    """Text before the beginning, which makes it a question to a model that answers."""
    seed: int = 0
    """Seed of the sampling."""

    def __str__(self) -> str:
        sampling = "greedy" if self.temperature == 0 else f"temperature {self.temperature:g}"
        return f"{self.samples} of {self.beginning}, {sampling}"

    def sampling(self, max_tokens: int) -> Sampling:
        """Return the sampling of continuations of a length."""
        return Sampling(
            max_tokens=max_tokens,
            temperature=self.temperature,
            samples=self.samples,
            top_k=self.top_k,
            seed=self.seed,
        )


@dataclass(frozen=True)
class Continued:
    """Texts that a model wrote after the beginning of one text."""

    beginning: str
    rest: str
    texts: tuple[str, ...]
    """One text per sample; empty if the text could not be divided."""
    tokens_in: int = 0
    tokens_out: int = 0
    reason: str | None = None
    """Reason why nothing was written."""


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
        model: gives continuations, or answers if there is an instruction.
        texts: any texts; one that cannot be divided gets a reason.
        request: the beginnings and the sampling.
        answers: a folder for the texts written so far; None stores nothing.
        progress: called with (texts done, texts in all).

    Raises:
        InputError: a beginning in tokens, and a model that does not report its tokens.
    """
    divided = _divide(model, texts, request.beginning)
    by_length: dict[int, list[str]] = {}
    for split in divided:
        if isinstance(split, PromptSplit):
            by_length.setdefault(_token_limit(split, request), []).append(split.beginning)
    total = sum(map(len, by_length.values()))
    done = 0
    written: dict[tuple[int, str], list[Completion]] = {}
    for length, beginnings in sorted(by_length.items(), reverse=True):
        unique = list(dict.fromkeys(beginnings))
        for start in range(0, len(unique), TOGETHER):
            part = unique[start : start + TOGETHER]
            results = _complete(model, part, request, length, answers)
            written |= {(length, text): row for text, row in zip(part, results, strict=True)}
            done += sum(beginnings.count(text) for text in part)
            progress(done, total)
    return [
        _join_continued(split, written[_token_limit(split, request), split.beginning])
        if isinstance(split, PromptSplit)
        else Continued("", "", (), reason=split)
        for split in divided
    ]


GREEDY = ContinuationRequest()
"""The likeliest continuation of the first half."""


write_continuations, read_continuations = record_table(CONTINUATIONS_FILE, Continued)


def _divide(
    model: TextModel, texts: Sequence[str], beginning: PromptLength
) -> list[PromptSplit | str]:
    ends: Sequence[list[int] | None] = [None] * len(texts)
    if (counts := getattr(model, "token_ends", None)) is not None:
        ends = counts(texts)
    elif beginning.unit == "tokens":
        raise InputError(
            f"a beginning of {beginning} requires the model's tokenizer, which is unknown",
            where=model.name,
            allowed="a beginning in words, or a share of them",
        )
    return [divide(text, beginning, own) for text, own in zip(texts, ends, strict=True)]


def _token_limit(split: PromptSplit, request: ContinuationRequest) -> int:
    """Return the maximum tokens of a continuation: those of the rest, and a few more."""
    if request.beginning.unit == "tokens":
        return min(request.max_tokens, split.rest_tokens or 1)
    # Half its bytes if tokens cannot be counted: for English text, twice its tokens.
    counted = len(split.rest.encode()) // 2 if split.rest_tokens is None else split.rest_tokens
    return min(request.max_tokens, -(-(counted + _MARGIN) // _STEP) * _STEP)


def _complete(
    model: TextModel,
    beginnings: Sequence[str],
    request: ContinuationRequest,
    length: int,
    answers: Path | None,
) -> list[list[Completion]]:
    """Return the continuations of a few beginnings, from the folder if it has them."""

    def ask() -> list[list[Completion]]:
        if request.instruction:
            questions = [f"{request.instruction} {beginning}" for beginning in beginnings]
            return model.answer(questions, request.sampling(length))
        return model.complete(beginnings, request.sampling(length))

    key = ["continuations", request_record(request), length, list(beginnings)]
    return kept_completions(answers, key, ask)


def _join_continued(split: PromptSplit, written: Sequence[Completion]) -> Continued:
    return Continued(
        beginning=split.beginning,
        rest=split.rest,
        texts=tuple(completion.text for completion in written),
        **token_sums(written),
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
    return ContinuationRequest(**{**record, "beginning": PromptLength(unit, Decimal(amount))})
