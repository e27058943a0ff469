r"""The definition of a word, by which all comparisons of texts work.

A text is read as units. A unit is a word, a run of letters, digits and their marks, or a single
character of a script without spaces. Compatibility forms (full width, ligatures), composed and
decomposed accents, capitals, and invisible characters (soft hyphens, zero-width spaces, variation
selectors) make no difference; everything else, including underscores, separates words.

A text with markup is read twice: without it (tags, entities, links' targets, footnote marks), and
unchanged, since apparent markup may be text. Two texts share the words that any of their readings
share.

A character of a script without spaces counts as a share of a word (`weight`), so that runs of n
words and runs of characters of the same weight are equally rare: shares that make them so in
translations, see docs/contamination-audit.md. Thus 13 words are 19 Han characters, 33 kana, 44 Thai
letters.

Cost: ASCII text 30 MB/s and more, other text about half of that.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

WORD_WEIGHT = 10
"""Weight of a word; a character's is a share of it."""

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff"
_THAI = "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46"
_LAO = "\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf"
_KHMER = "\u1780-\u17b3\u17d7\u17dc"
_MYANMAR = "\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070"
_MYANMAR += "\u1075-\u1081\u108e\ua9e0-\ua9e4\ua9e6-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa76\uaa7a"
_MYANMAR += "\uaa7e\uaa7f"
_OTHERS = "\u1950-\u1974\u1980-\u19c7\u1a20-\u1a54\u1b05-\u1b33\u1b45-\u1b4c\ua984-\ua9b2"
_OTHERS += "\uaa80-\uaaaf\uaab1\uaab5\uaab6\uaab9-\uaabd"
"""Tai Le, New Tai Lue, Tai Tham, Balinese, Javanese, Tai Viet."""

_WEIGHTS = ((_HAN, 7), (_KANA, 4), (_MYANMAR, 4), (_THAI + _LAO + _KHMER + _OTHERS, 3))
_UNSPACED = "".join(ranges for ranges, _ in _WEIGHTS)
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_WEIGHED = tuple((re.compile(f"[{ranges}]"), weight) for ranges, weight in _WEIGHTS)

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_WORD = re.compile(r"\w+")
_RARE = re.compile("[\U000101fd-\U0001e94a]")
"""The ranges of marks beyond the basic plane."""
_UNSEEN_CHARACTERS = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
)
_UNSEEN = re.compile(f"[{_UNSEEN_CHARACTERS}]")

_INLINE = "a|abbr|b|bdi|bdo|big|cite|code|del|dfn|em|font|i|ins|kbd|mark|nobr|q|s|samp|small|span"
_INLINE += "|strike|strong|sub|sup|tt|u|var|wbr"


_Markup = tuple[str, re.Pattern[str], Callable[[re.Match[str]], str]]
"""One kind of markup: a sign without which a text has none of it, its pattern, and its replacement
in the reading without markup."""


def _nothing(_: re.Match[str]) -> str:
    return ""


def _space(_: re.Match[str]) -> str:
    return " "


def _unescape(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


# Every pattern is bounded, and starts with its sign, so that searching costs little.
_MARKUP: tuple[_Markup, ...] = (
    ("<", re.compile(r"<!--.{0,5000}?-->", re.DOTALL), _space),
    ("<", re.compile(r"<ref\b[^<>/]{0,300}>[^<>]{0,2000}</ref>", re.IGNORECASE), _space),
    ("<", re.compile(rf"</?(?:{_INLINE})(?:\s[^<>]{{0,500}})?/?>", re.IGNORECASE), _nothing),
    ("<", re.compile(r"</?[A-Za-z][A-Za-z0-9:-]{0,40}(?:\s[^<>]{0,500})?/?>"), _space),
    ("](", re.compile(r"\]\((?:[^()\s]|\([^()\s]{0,200}\)){1,500}\)"), _nothing),
    ("[[", re.compile(r"\[\[[^\[\]|\n]{1,200}\|"), _nothing),
    ("[", re.compile(r"\[\d{1,3}\]"), _space),
    ("\\", re.compile(r"\\[A-Za-z]{2,30}\*?(?=\{)"), _nothing),
    # Last, so that a tag that is spelled out in entities stays text.
    (
        "&",
        re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"),
        _unescape,
    ),
)


class WordSpan(NamedTuple):
    """The span of a unit in the original text."""

    start: int
    stop: int


def words_of(text: str) -> list[str]:
    """Return the units of a text, read without its markup."""
    return _units(_without_markup(text))


def readings(text: str) -> list[list[str]]:
    """Return the units of a text without its markup and, if that differs, of all of it."""
    bare = _without_markup(text)
    first = _units(bare)
    if bare == text:
        return [first]
    second = _units(text)
    return [first] if second == first else [first, second]


def weight(unit: str) -> int:
    """Return the weight of a unit: `WORD_WEIGHT` for a word."""
    if unit.isascii() or not _HAS_UNSPACED.match(unit):
        return WORD_WEIGHT
    return next(share for ranges, share in _WEIGHED if ranges.match(unit))


def run_stops(units: Sequence[str], size: int) -> list[int]:
    """Return the end of the run of `size` words that starts at each unit, as far as runs fit.

    A run ends with the unit that reaches the weight of `size` words; it has `size` units if no
    character counts as a share of a word.
    """
    stops, stop, reached_weight, run_weight = [], 0, 0, size * WORD_WEIGHT
    weights = [weight(unit) for unit in units]
    for own in weights:
        while reached_weight < run_weight and stop < len(weights):
            reached_weight += weights[stop]
            stop += 1
        if reached_weight < run_weight:
            break
        stops.append(stop)
        reached_weight -= own
    return stops


def places(text: str, reading: int) -> list[WordSpan]:
    """Return the place of each unit of a reading in the text; slow, so only for matches.

    Args:
        text: as given to `readings`.
        reading: its index.
    """
    marked = reading == 0 and any(sign in text for sign, _, _ in _MARKUP)
    if not marked and (same := _normalised_in_place(text)) is not None:
        return [WordSpan(*span) for span in _spans(same)]
    signs, origins = list(text), [WordSpan(index, index + 1) for index in range(len(text))]
    for kind in _MARKUP if marked else ():
        signs, origins = _replace_markup(signs, origins, kind)
    out: list[str] = []
    spans: list[WordSpan] = []
    for start, stop in _clusters("".join(signs)):
        part = "".join(signs[start:stop])
        own = _normalise(part)
        out.append(own)
        if part.isascii():
            spans += origins[start:stop]
        else:
            spans += [WordSpan(origins[start].start, origins[stop - 1].stop)] * len(own)
    return [
        WordSpan(spans[start].start, spans[stop - 1].stop) for start, stop in _spans("".join(out))
    ]


def _without_markup(text: str) -> str:
    for sign, pattern, replace in _MARKUP:
        if sign in text:
            text = pattern.sub(replace, text)
    return text


def _replace_markup(
    signs: list[str], origins: list[WordSpan], kind: _Markup
) -> tuple[list[str], list[WordSpan]]:
    text = "".join(signs)
    sign, pattern, replace = kind
    if sign not in text:
        return signs, origins
    out: list[str] = []
    spans: list[WordSpan] = []
    done = 0
    for match in pattern.finditer(text):
        start, stop = match.span()
        new = replace(match)
        out += [*signs[done:start], *new]
        spans += origins[done:start]
        spans += [WordSpan(origins[start].start, origins[stop - 1].stop)] * len(new)
        done = stop
    return [*out, *signs[done:]], [*spans, *origins[done:]]


def _normalise(text: str) -> str:
    if text.isascii():
        return text.lower()
    text = _UNSEEN.sub("", text)
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    text = text.casefold()
    # Folding can take composed letters apart.
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def _normalised_in_place(text: str) -> str | None:
    """Return the normalised text if each of its characters keeps its position; else None."""
    plain = not _UNSEEN.search(text) and unicodedata.is_normalized("NFKC", text)
    # Folding takes letters apart, and never joins any.
    return normalised if plain and len(normalised := _normalise(text)) == len(text) else None


def _units(text: str) -> list[str]:
    text = _normalise(text)
    if text.isascii():
        return _ASCII_WORD.findall(text)
    text = text.replace("_", " ")
    patterns = _patterns_for(text)
    if _HAS_UNSPACED.search(text):
        text = patterns.unspaced.sub(r" \g<0> ", text)
    return (patterns.word if patterns.marks.search(text) else _WORD).findall(text)


def _spans(normalised: str) -> list[tuple[int, int]]:
    """Return the spans of the units in a normalised text."""
    if normalised.isascii():
        return [match.span() for match in _ASCII_WORD.finditer(normalised)]
    text = normalised.replace("_", " ")
    spans = []
    patterns = _patterns_for(text)
    for match in patterns.word.finditer(text):
        start, stop = match.span()
        done = start
        for single in patterns.unspaced.finditer(text, start, stop):
            if single.start() > done:
                spans.append((done, single.start()))
            spans.append(single.span())
            done = single.end()
        if done < stop:
            spans.append((done, stop))
    return spans


def _clusters(text: str) -> list[tuple[int, int]]:
    """Return spans that normalise separately as they do together."""
    if text.isascii():
        return [(0, len(text))]
    return [match.span() for match in _patterns_for(text).cluster.finditer(text)]


class _Patterns(NamedTuple):
    marks: re.Pattern[str]
    word: re.Pattern[str]
    unspaced: re.Pattern[str]
    cluster: re.Pattern[str]


def _patterns_for(text: str) -> _Patterns:
    """Return the patterns for a text; those that know rare marks are ten times slower."""
    return _patterns(bool(_RARE.search(text)))


@cache
def _patterns(rare: bool) -> _Patterns:
    """Compile the patterns that need the table of marks, a cost that ASCII texts avoid."""
    codes = range(0x300, 0x1E94B if rare else 0x10000)
    marks = "".join(chr(code) for code in codes if unicodedata.category(chr(code))[0] == "M")
    # Parts of Hangul syllables, and the voicing marks of half-width kana, join what is before.
    joined = f"{marks}{_UNSEEN_CHARACTERS}\u1160-\u11ff\ud7b0-\ud7ff\uff9e\uff9f\uffa0-\uffdc"
    return _Patterns(
        marks=re.compile(f"[{marks}]"),
        word=re.compile(f"[\\w{marks}]+"),
        unspaced=re.compile(f"[{_UNSPACED}][{marks}]*"),
        cluster=re.compile(f"[\x00-\x7f]+(?![{joined}])|.[{joined}]*", re.DOTALL),
    )
