"""`tag_tab`: the mean log-probability of the rarest words of each sentence.

Tag&Tab (arXiv 2501.08454): of each sentence of 7 to 40 words, the K words of the lowest −p·log2 p
are its keywords, p being a word's share of a reference corpus; the score is the mean ℓ over the
tokens of all keywords of the text. The tagger that adds named entities is left out. The definition
is that of the authors' code (the paper's equation was not read), but for these:

- p is counted in a corpus of its own (`detect.frequency`), never in the texts that are scored;
- a word that the corpus lacks is the rarest of all: in the code it is never chosen;
- the K words are chosen in order, equal ones as they stand in the sentence: the code cuts an
  unordered set;
- a keyword's tokens are found by where it stands in its sentence: the code takes the first place in
  the whole text that holds its letters, and is off by one without a start token.

Sentences end at `.`, `!`, `?` and their like, and at line breaks. Words that occur twice in a
sentence count where they occur first.
"""

import math
import re
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from detect.detector import EMPTY_SELECTION, Detector, Score, each_example
from detect.evidence import ExampleEvidence
from detect.needs import Frequency, View
from detect.token_frequency import WordFrequency, word_spans
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.settings import Settings

_SENTENCE_END = re.compile(
    r"(?<=[.!?\u2026])[\"'\u201d\u2019)\]]*\s+|(?<=[\u3002\uff01\uff1f])|\n+"
)
_FEWEST_WORDS, _MOST_WORDS = 7, 40


class TagTabParameters(Settings):
    """Which words count, and which of their tokens."""

    k: Annotated[int, Field(ge=1, le=40)] = 5
    """Keywords of a sentence, at most."""
    tokens: Literal["all", "first"] = "all"
    """All tokens of a keyword, or its first alone."""


GRID = tuple(TagTabParameters(k=k) for k in range(1, 11))


class Word(NamedTuple):
    """A word of a text."""

    start: int
    stop: int
    information: float
    """−p·log2 p."""


def keywords(text: str, frequency: WordFrequency) -> list[list[Word]]:
    """Return, for each sentence of 7 to 40 words, its different words, the rarest first."""
    found = []
    for start, stop in sentence_spans(text):
        spans = [(start + one, start + end) for one, end in word_spans(text[start:stop])]
        if not _FEWEST_WORDS <= len(spans) <= _MOST_WORDS:
            continue
        words: dict[str, Word] = {}
        for one, end in spans:
            word = text[one:end].casefold()
            if word not in words:
                p = frequency.probability(word)
                words[word] = Word(one, end, -p * math.log2(p))
        # The sort is stable: of words alike, the first in the sentence comes first.
        found.append(sorted(words.values(), key=lambda word: word.information))
    return found


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return where the sentences of a text stand."""
    spans, start = [], 0
    for found in _SENTENCE_END.finditer(text):
        if found.start() > start:
            spans.append((start, found.start()))
        start = found.end()
    return [*spans, (start, len(text))] if start < len(text) else spans


def word_tokens(word: Word, offsets: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the tokens that hold a part of a word, in order."""
    starts, stops = offsets[:, 0], offsets[:, 1]
    return np.flatnonzero((starts >= 0) & (starts < word.stop) & (stops > word.start))


def _score(example: ExampleEvidence, settings: Sequence[TagTabParameters]) -> list[Score]:
    statistics, frequency = example.statistics[TEXT], example.frequency
    if frequency is None or frequency.words is None:
        return [Score(math.nan, "no word frequencies")] * len(settings)
    offsets = statistics.offsets
    if (offsets < 0).all():
        reason = "the tokenizer does not say where its tokens stand in the text"
        return [Score(math.nan, reason)] * len(settings)
    sentences = keywords(example.text, frequency.words)
    if not sentences:
        reason = f"no sentence of {_FEWEST_WORDS} to {_MOST_WORDS} words"
        return [Score(math.nan, reason)] * len(settings)
    most = max(setting.k for setting in settings)
    found = [[(word, word_tokens(word, offsets)) for word in one[:most]] for one in sentences]
    return [_one(statistics, found, setting) for setting in settings]


def _one(
    statistics: TokenStatistics,
    sentences: Sequence[Sequence[tuple[Word, npt.NDArray[np.int64]]]],
    setting: TagTabParameters,
) -> Score:
    chosen = np.zeros(len(statistics), np.bool_)
    for words in sentences:
        for word, tokens in words[: setting.k]:
            if setting.tokens == "all":
                chosen[tokens] = True
            # The text's very first token may not be scored: then the word's first is not there.
            elif len(tokens) and statistics.offsets[tokens[0], 0] <= word.start:
                chosen[tokens[0]] = True
    if not chosen.any():
        return Score(math.nan, f"{EMPTY_SELECTION}: no token of a keyword is scored")
    return Score(float(np.mean(statistics.log_probability[chosen], dtype=np.float64)))


DETECTOR = Detector(
    name="tag_tab",
    summary="mean log-probability of the rarest words of each sentence",
    source="arXiv 2501.08454 (Tag&Tab), by its code, without named entities",
    needs=(View(TEXT), Frequency()),
    assumption=(
        "a member's rare words are likelier than a non-member's, and the reference corpus has "
        "the word frequencies of the training data"
    ),
    aliases=("tagtab", "tag_and_tab"),
    order=82,
    parameters=TagTabParameters,
    grid=GRID,
    score=each_example(_score),
)
