"""The page of an audit by chunks: one self-contained HTML file, in the look of a run's report.

    write_chunk_page(path, ChunkPage(title=…, sentences=…, facts=…, rows=…, detector=…))

Each chunk is a row of numbers; what is remembered comes first, then what is most suspicious. Below
stand the texts of those that models continued: what they were given, how the text goes on, and each
model's closest continuation side by side, words in common marked. The report's script sorts and
filters the table, and without it the page is whole. Styles and script are inside, and a content
security policy forbids loading anything and running any other script. Every text is escaped by the
template engine. A text that may not be shown is not in the file at all, and neither are its
continuations, which may repeat it. Cost: about 5 ms and 9 kB a continued chunk of 512 words.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from math import isnan, nan
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from analysis.page.template import page_script, page_template
from detect.generation.text_overlap import plain_words, words_in_runs
from inject.files import write_text

SHORTEST_RUN = 3
"""Words in a row that are marked at least: a single common word says nothing."""
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, kw_only=True)
class ChunkContinuation:
    """One model's continuation of a chunk: of its samples, the one closest to the truth."""

    model: str
    text: str
    similarities: Mapping[str, float] = field(default_factory=dict)
    """By the name of the measure, such as `ROUGE-L`."""


@dataclass(frozen=True, kw_only=True)
class ChunkRow:
    """One chunk."""

    chunk: str
    """What it is called, shown even where its text is not."""
    suspicion: float
    """Larger is more suspicious; NaN where it could not be judged."""
    suspicious: bool
    """Whether the rule flags it."""
    remembered: bool | None = None
    """Whether the unlearned model still writes it; None where that was not judged."""
    ratio: float = nan
    """Of the unlearned model's score to the original's; NaN where there is none."""
    similarity: float = nan
    """Of the unlearned model's closest continuation to the truth; NaN where there is none."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Of the detector, by model."""
    context: str = ""
    """What the models were given: the beginning of the chunk."""
    truth: str = ""
    """How it goes on."""
    continuations: tuple[ChunkContinuation, ...] = ()
    """One a model at most, in the order of the page; none where nothing was continued."""
    show_text: bool = True
    """Whether its licence lets its texts be shown; a model's continuation counts as its text."""


@dataclass(frozen=True, kw_only=True)
class ChunkPage:
    """A page."""

    title: str
    sentences: tuple[str, ...]
    """What the audit found, above everything else."""
    facts: Sequence[tuple[str, str, str]]
    """Name, value as it is shown, and what to know of it, in small letters."""
    rows: tuple[ChunkRow, ...]
    detector: str
    """Whose scores are shown, such as `Min-K% Prob, k = 20 %`."""
    similarity: str = "ROUGE-L"
    """The measure by which continuations are closest."""
    notes: tuple[str, ...] = ()
    """What to know before reading on."""
    show_texts: bool = True
    """False shows ids and numbers alone, whatever a row says."""

    def shows(self, row: ChunkRow) -> bool:
        """Return whether a row has texts that may be shown."""
        return bool(row.continuations) and self.show_texts and row.show_text


class Part(NamedTuple):
    """A stretch of a text."""

    text: str
    shared: bool
    """Whether the other text has these words, too."""


def write_chunk_page(path: Path, page: ChunkPage) -> Path:
    """Write the page to a file, whole or not at all; return its path."""
    write_text(path, render(page))
    return path


def render(page: ChunkPage) -> str:
    """Return the page as text."""
    rows = sorted(page.rows, key=lambda row: (not row.remembered, -_finite(row), row.chunk))
    template = page_template(
        __package__, "page.html.j2", filters={"plain": _plain, "shared": mark_shared}
    )
    return template.render(
        page=page,
        models=list(dict.fromkeys(name for row in rows for name in row.scores)),
        rows=list(enumerate(rows)),
        hidden=sum(bool(row.continuations) and not page.shows(row) for row in rows),
        shortest=SHORTEST_RUN,
        absent=nan,
        own_style=_own_style(),
        script=page_script(),
    )


def mark_shared(text: str, other: str) -> list[Part]:
    """Return a text in parts, which joined give it again, those marked that the other one has.

    A word is what stands between white space, compared without capitals and punctuation.
    """
    places = list(_WORD.finditer(text))
    words = [_plain_word(one.group()) for one in places]
    reference = [_plain_word(word) for word in other.split()]
    size = min(SHORTEST_RUN, len(words), len(reference))
    shared = words_in_runs(words, reference, size) if size else []
    found: list[Part] = []
    end = 0
    for flag, run in groupby(zip(shared, places, strict=False), key=itemgetter(0)):
        if flag:
            run_places = [place for _, place in run]
            # White space between two shared words is marked with them.
            start, stop = run_places[0].start(), run_places[-1].end()
            found += [Part(text[end:start], False), Part(text[start:stop], True)]
            end = stop
    return [part for part in (*found, Part(text[end:], False)) if part.text]


@lru_cache(maxsize=1 << 16)
def _plain_word(word: str) -> str:
    """Return a word without capitals and punctuation; one of punctuation alone as it is."""
    return "".join(plain_words(word)) or word


def _plain(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def _finite(row: ChunkRow) -> float:
    return float("-inf") if isnan(row.suspicion) else row.suspicion


def _own_style() -> str:
    from markupsafe import Markup

    return Markup((Path(__file__).parent / "page.css").read_text(encoding="utf-8"))
