"""`tag_tab`: the mean log-probability of the rarest words of each sentence.

Tag&Tab (arXiv 2501.08454): of each sentence of 7 to 40 words, the K words of the lowest −p·log2 p
are its keywords, p being a word's share of a reference corpus; the score is the mean ℓ over the
tokens of all keywords of the text. With a tagger (`entities`), named entities of these sentences
are also keywords, in addition to the K words: those of one word, as in the authors' first code, or
every word of each, as in their later one. The definition is that of the authors' code (the paper's
equation was not read), except:

- p is counted in a separate corpus (`detect.frequency`), never in the scored texts;
- a word that the corpus lacks is the rarest of all: the code never selects it;
- the K words are selected in order, equal ones in sentence order: the code cuts an unordered set;
- named entities are added to the K words, as the paper does according to the later code; both codes
then order all by rarity and cut to K, which removes most entities again;
- a keyword's tokens are found by its position in its sentence: the code uses the first position of
its letters in the whole text, and is off by one without a start token.

Sentences end at `.`, `!`, `?` and their like, and at line breaks. Words that occur twice in a
sentence count at their first occurrence; an entity belongs to the sentence in which it begins.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from detect.detector import EMPTY_SELECTION, Detector, Score, each_example
from detect.evidence import Evidence, ExampleEvidence
from detect.evidence.entities import Entities, NamedEntity
from detect.evidence.frequency import Frequency
from detect.evidence.needs import Need
from detect.evidence.views import View
from detect.token_frequency import WordFrequency, word_spans
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.settings import Settings

_SENTENCE_END = re.compile(
    r"(?<=[.!?\u2026])[\"'\u201d\u2019)\]]*\s+|(?<=[\u3002\uff01\uff1f])|\n+"
)
_FEWEST_WORDS, _MOST_WORDS = 7, 40


class TagTabParameters(Settings):
    """The words that count, and their tokens that count."""

    k: Annotated[int, Field(ge=1, le=40)] = 5
    """Maximum keywords per sentence."""
    tokens: Literal["all", "first"] = "all"
    """All tokens of a keyword, or only its first."""
    entities: Literal["none", "one_word", "every_word"] = "none"
    """Named entities that are also keywords: `none`, those of `one_word`, or `every_word` of all;
    requires a tagger (`detect.tagger`, or `tagger=NAME` of `spikein detect`)."""


GRID = tuple(TagTabParameters(k=k) for k in range(1, 11))


class Word(NamedTuple):
    """A word of a text."""

    start: int
    stop: int
    information: float
    """−p·log2 p."""


class Sentence(NamedTuple):
    """Candidate keywords of a sentence."""

    words: list[Word]
    """Its different words, the rarest first."""
    one_word: list[Word]
    """Those that are a named entity."""
    every_word: list[Word]
    """Those that are a part of one."""

    def keywords(self, setting: TagTabParameters) -> list[Word]:
        """Return the keywords under a setting, each once."""
        entities = {"none": [], "one_word": self.one_word, "every_word": self.every_word}
        return list(dict.fromkeys((*self.words[: setting.k], *entities[setting.entities])))


def sentences_of(
    text: str, frequency: WordFrequency, entities: Sequence[NamedEntity] = ()
) -> list[Sentence]:
    """Return the sentences of 7 to 40 words."""
    sentences = []
    for start, stop in sentence_spans(text):
        spans = [(start + begin, start + end) for begin, end in word_spans(text[start:stop])]
        if not _FEWEST_WORDS <= len(spans) <= _MOST_WORDS:
            continue
        words: dict[str, Word] = {}
        for begin, end in spans:
            word = text[begin:end].casefold()
            if word not in words:
                p = frequency.probability(word)
                words[word] = Word(begin, end, -p * math.log2(p))
        # The sort is stable: of words alike, the first in the sentence comes first.
        ranked = sorted(words.values(), key=lambda word: word.information)
        own = [entity for entity in entities if start <= entity.start < stop]
        one_word = [entity for entity in own if len(text[entity.start : entity.stop].split()) == 1]
        sentences.append(
            Sentence(
                ranked,
                *(
                    [
                        words[text[begin:end].casefold()]
                        for begin, end in spans
                        if _overlaps(begin, end, of)
                    ]
                    for of in (one_word, own)
                ),
            )
        )
    return sentences


def _overlaps(start: int, stop: int, entities: Sequence[NamedEntity]) -> bool:
    """Return whether a word is a part of an entity."""
    return any(entity.start < stop and entity.stop > start for entity in entities)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of a text's sentences."""
    spans, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        if match.start() > start:
            spans.append((start, match.start()))
        start = match.end()
    return [*spans, (start, len(text))] if start < len(text) else spans


def word_tokens(words: Sequence[Word], offsets: npt.NDArray[np.int32]) -> list[list[int]]:
    """Return, for each word, the tokens that contain a part of it, in text order."""
    order = np.argsort(offsets[:, 0], kind="stable")
    order = order[offsets[order, 0] >= 0]
    starts, stops = offsets[order, 0], offsets[order, 1]
    # Tokens may end in another order than they begin; after `last` all begin too late, and before
    # `first` all end too early; all tokens between are checked.
    first = np.searchsorted(np.maximum.accumulate(stops), [word.start for word in words], "right")
    last = np.searchsorted(starts, [word.stop for word in words], "left")
    places, ends = order.tolist(), stops.tolist()
    return [
        sorted(places[at] for at in range(begin, end) if ends[at] > word.start)
        for word, begin, end in zip(words, first.tolist(), last.tolist(), strict=True)
    ]


def _score(example: ExampleEvidence, settings: Sequence[TagTabParameters]) -> list[Score]:
    statistics, frequency = example.statistics[TEXT], example.frequency
    if frequency is None or frequency.words is None:
        return [Score(math.nan, "no word frequencies")] * len(settings)
    if (statistics.offsets < 0).all():
        reason = "the tokenizer does not report the positions of its tokens in the text"
        return [Score(math.nan, reason)] * len(settings)
    sentences = sentences_of(example.text, frequency.words, example.further.get(Entities(), ()))
    if not sentences:
        reason = f"no sentence of {_FEWEST_WORDS} to {_MOST_WORDS} words"
        return [Score(math.nan, reason)] * len(settings)
    chosen = list(
        dict.fromkeys(
            word
            for setting in settings
            for sentence in sentences
            for word in sentence.keywords(setting)
        )
    )
    tokens = dict(zip(chosen, word_tokens(chosen, statistics.offsets), strict=True))
    return [_score_text(statistics, sentences, tokens, setting) for setting in settings]


def _score_text(
    statistics: TokenStatistics,
    sentences: Sequence[Sentence],
    tokens: Mapping[Word, list[int]],
    setting: TagTabParameters,
) -> Score:
    keyword_tokens: set[int] = set()
    for sentence in sentences:
        for word in sentence.keywords(setting):
            of_word = tokens[word]
            if setting.tokens == "all":
                keyword_tokens.update(of_word)
            # The text's very first token may not be scored: then the word's first token is absent.
            elif of_word and statistics.offsets[of_word[0], 0] <= word.start:
                keyword_tokens.add(of_word[0])
    if not keyword_tokens:
        return Score(math.nan, f"{EMPTY_SELECTION}: no token of a keyword is scored")
    values = statistics.log_probability[sorted(keyword_tokens)]
    return Score(float(np.mean(values, dtype=np.float64)))


def _needs(parameters: TagTabParameters) -> tuple[Need, ...]:
    return () if parameters.entities == "none" else (Entities(),)


def _note(evidence: Evidence, setting: TagTabParameters) -> str | None:
    """Return the number of texts with named entities, if these count."""
    if setting.entities == "none":
        return None
    n_tagged = sum(map(bool, evidence.further.get(Entities(), ())))
    if not n_tagged:
        return "the tagger finds NO named entity in any text, so only rare words are keywords"
    return f"the tagger finds named entities in {n_tagged:,} of {len(evidence.texts):,} texts"


DETECTOR = Detector(
    name="tag_tab",
    title="Tag&Tab",
    summary="mean log-probability of the rarest words of each sentence",
    source="arXiv 2501.08454 (Tag&Tab), by its code",
    needs=(View(TEXT), Frequency()),
    further_needs=_needs,
    assumption=(
        "a member's rare words are likelier than a non-member's, and the reference corpus has "
        "the training data's word frequencies"
    ),
    aliases=("tagtab", "tag_and_tab"),
    order=82,
    libraries=("unicode",),
    parameters=TagTabParameters,
    grid=GRID,
    score=each_example(_score, _note),
)
