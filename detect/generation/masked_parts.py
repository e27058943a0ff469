"""Selection of the parts of a text to mask, for a model to guess.

Words that surprise a reference model (`prob`: a log-probability below −12; `rank`: more than 2,000
likelier pieces; at most ten of a text: Ravichander et al. 2025, section 3 and appendix A), names
(`person`), an informative word of a question, or a wrong option of one (Deng et al. 2024).

Rules find nouns, names and informative words, without a tagger. A noun is a word of letters and
digits that is not a common English word and has no ending of adverbs, verbs or adjectives, unless
it is capitalised inside a sentence; a word with a digit counts as a number. A name is a capitalised
word, not at the beginning of a sentence, that is not a common English word, day, month or title,
and does not occur in lower case in the same text; so places and firms also count as names. The
informative word is the longest one that is not among the commonest English words; the authors use
ChatGPT.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from inject.keyed import item_key

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
"""Letters, with apostrophes and hyphens inside."""
TOKEN = re.compile(r"(?<![\w’'-])(?<!\d[.,])[^\W_]+(?![\w-]|[.,]\d)")
"""Letters and digits without parts joined by an apostrophe or a hyphen: `1984`, `river` of
`river's`."""
MASK = "[MASK]"
Method = Literal["prob", "rank", "person", "question", "option"]
Candidates = Literal["nouns", "words"]
EMPTY_TEXT = "empty text"
NO_SURPRISE = "no word surprises the reference model enough"
NO_NAME = "it contains no name"
NO_WORD = "it contains no informative word"
NO_OPTIONS = "it has no question with three options or more and a known answer"

_NAME = re.compile(r"[A-Z][a-z]+(?:['’-][A-Z]?[a-z]+)*")
_OTHER_ENDING = re.compile(r".{3,}(?:ly|ed|ing|ous|ful|less|able|ible|ive|ish)")
_TOKEN_OR_MARK = re.compile(r"[^\W_]+|[^\w\s]")
_NEAR = 50
"""Words and marks on either side, among which a masked noun occurs only once."""
_SENTENCE_END = re.compile(r"(?:^|[.!?:…\n][\"'”’)\]]*\s*|[\"“‘(\[]\s*)$")
_TITLE = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof)\.\s+$")
_NO_NAMES = {
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january",
    "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december", "mr", "mrs", "ms", "miss", "dr", "sir", "madam", "lord", "lady",
    "captain", "professor", "king", "queen", "english", "french", "german", "spanish",
    "latin", "god",
}  # fmt: skip


@dataclass(frozen=True)
class WordStatistics:
    """One word of a text under the reference model."""

    start: int
    stop: int
    """Characters of the text."""
    log_probability: float
    """Log-probability of all its pieces together."""
    rank: int
    """The largest rank of its pieces: the number of likelier pieces."""
    first_log_probability: float
    first_rank: int
    """Log-probability of its first piece."""


@dataclass(frozen=True)
class MaskedPart:
    """One part of a text for a model to guess."""

    wanted: str
    before: str
    """The text before it."""
    shown: str
    """The text, or the question, with `[MASK]` in its place."""
    option: str = ""
    """The letter of the masked option."""


def surprising_words(
    text: str,
    words: Sequence[WordStatistics],
    method: Method,
    *,
    limit: int,
    threshold: float,
    candidates: Candidates = "words",
) -> list[MaskedPart]:
    """Return the most surprising words: those beyond the threshold, at most `limit`.

    Args:
        text: the text.
        words: its words under the reference model.
        method: `prob` or `rank`.
        limit: maximum number; the lowest log-probabilities, or the highest ranks, come first.
        threshold: upper limit of their log-probability, or lower limit of their rank.
        candidates: `nouns` by their first piece, or `words` by all of their pieces.
    """
    if candidates == "nouns":
        allowed = nouns(text)
        value = {"prob": "first_log_probability", "rank": "first_rank"}[method]
    else:
        allowed = [word.span() for word in WORD.finditer(text)]
        value = {"prob": "log_probability", "rank": "rank"}[method]
    sign = 1 if method == "prob" else -1
    among = set(allowed)
    ordered = sorted(
        (sign * getattr(word, value), word.start, word.stop)
        for word in words
        if (word.start, word.stop) in among
    )
    chosen = [span for surprise, *span in ordered if surprise < sign * threshold]
    return [_mask_span(text, *span) for span in chosen[:limit]]


def nouns(text: str) -> list[tuple[int, int]]:
    """Return the spans of the nouns and numbers that Ravichander et al.'s code masks.

    Each word once, if it occurs only once among the 50 on either side; the last is omitted, because
    the mark after it reveals it. NLTK tags theirs, the module's rule finds ours.
    """
    common = _common_words()
    tokens = {token.span() for token in TOKEN.finditer(text)}
    matches = list(_TOKEN_OR_MARK.finditer(text))
    words = [token[0] for token in matches]
    spans: dict[str, tuple[int, int]] = {}
    for at, token in enumerate(matches):
        word = token[0]
        near = words[max(0, at - _NEAR) : at + _NEAR]
        if token.span() in tokens and word not in spans and near.count(word) == 1:
            if any(letter.isdigit() for letter in word):
                spans[word] = token.span()
            elif len(word) > 1 and word.lower() not in common:
                inside = word[0].isupper() and not _SENTENCE_END.search(text[: token.start()])
                if inside or not _OTHER_ENDING.fullmatch(word.lower()):
                    spans[word] = token.span()
    return list(spans.values())[:-1]


def names(text: str, *, limit: int) -> list[MaskedPart]:
    """Return the first names in a text, found by a rule."""
    common = _common_words()
    small = {word for word in WORD.findall(text) if word == word.lower()}
    parts = []
    for word in _NAME.finditer(text):
        plain = word[0].lower().removesuffix("'s").removesuffix("’s")
        stop = word.start() + len(plain)
        if plain in common or plain in _NO_NAMES or plain in small or len(plain) < 2:
            continue
        before = text[: word.start()]
        if _SENTENCE_END.search(before) and not _TITLE.search(before):
            continue
        if _within_word(text, *word.span()):
            continue
        parts.append(_mask_span(text, word.start(), stop))
    return parts[:limit]


def informative_word(text: str, question: str) -> MaskedPart | None:
    """Return the longest word of a question that is not common; of equal ones the last.

    Args:
        text: the whole text, which contains the question.
        question: the question.
    """
    common = _common_words()
    words = [word for word in WORD.finditer(question) if word[0].lower() not in common]
    if not words:
        return None
    word = max(words, key=lambda match: (len(match[0]), match.start()))
    at = max(0, text.find(question))
    inside = _mask_span(question, *word.span())
    return MaskedPart(inside.wanted, text[:at] + inside.before, inside.shown)


def wrong_option(text: str, fields: Mapping[str, Any]) -> MaskedPart | None:
    """Return a wrong option of a question, drawn by the text; None if there are too few.

    Deng et al. 2024; not defined for two options, since the other one reveals it.
    """
    options, question = fields.get("options"), fields.get("question")
    if not isinstance(options, list | tuple) or len(options) < 3 or not isinstance(question, str):
        return None
    choices = [str(option).strip() for option in options]
    letters = [chr(ord("A") + index) for index in range(len(choices))]
    right = str(fields.get("answer_letter") or fields.get("answer") or "").strip()
    gold = letters.index(right) if right in letters else None
    if gold is None:
        if choices.count(right) != 1:
            return None
        gold = choices.index(right)
    wrong = [index for index in range(len(choices)) if index != gold and choices[index]]
    if not wrong:
        return None
    chosen = wrong[item_key(text) % len(wrong)]
    lines = [
        f"{letter}: {MASK if index == chosen else option}"
        for index, (letter, option) in enumerate(zip(letters, choices, strict=True))
    ]
    at = text.rfind(choices[chosen])
    return MaskedPart(
        wanted=choices[chosen],
        before=text[: max(0, at)],
        shown=f"Question: {question}\nOptions:\n" + "\n".join(lines),
        option=letters[chosen],
    )


def _mask_span(text: str, start: int, stop: int) -> MaskedPart:
    return MaskedPart(text[start:stop], text[:start], text[:start] + MASK + text[stop:])


def _within_word(text: str, start: int, stop: int) -> bool:
    """Return whether letters or digits adjoin a word, as in `McDonald`."""
    return text[start - 1 : start].isalnum() or text[stop : stop + 1].isalnum()


def _common_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)
