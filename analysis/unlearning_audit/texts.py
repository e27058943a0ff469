"""The texts of an audit of given models, as examples: chunks, control chunks and questions.

A `.txt` file is one text. Rows may bring an `id`, a `group` of texts that belong together, and
`protected` or a canary: such a text is shown nowhere.

Texts are cut into chunks of equal word counts; each is an example with its place in the text. Words
are separated by white space, as in Shi et al. 2024, section 7.2.1: a chunk has 512 words, of which
the first 200 are the prompt. A chunk's text is the exact slice of its source from its first word to
its last; nothing is normalised.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from analysis.unlearning_audit.evidence import AUDITED, HOLDOUT, QUESTION, RETAINED
from detect.user_rows.labelled_rows import is_protected
from inject.errors import InputError, did_you_mean
from inject.examples.example import Example, example_id
from inject.reading.row_parsers import PlacedRow
from inject.reading.rows import read_rows

WORDS = 512
PROMPT_WORDS = 200
PLACE = "place"
"""The field of a text that is not cut yet: file and row, for messages."""
_WORD = re.compile(r"\S+")
_TEXT_COLUMNS = ("text", "input")
_IDS = ("example_id", "id", "text_id")
_PARTS = {"texts": AUDITED, "holdout": HOLDOUT, "retain": RETAINED}
"""What texts of each file become."""


class GivenTexts(NamedTuple):
    """Everything that an audit reads before it queries any model."""

    texts: list[Example]
    chunks: list[Example]
    """Of the texts, then those held out, then those to be retained, then questions."""
    notes: list[str]
    """The skipped rows, with the reasons."""

    @property
    def protected(self) -> bool:
        """Whether a text must not be shared."""
        return any(chunk.protected for chunk in self.chunks)


def read_given(
    files: Mapping[str, str],
    *,
    column: str | None,
    words: int | None,
    prompt_words: int,
    limit: int | None = None,
    delimiter: str | None = None,
) -> GivenTexts:
    """Read texts, held-out and retained texts and questions, and cut the texts.

    Args:
        files: pattern of the files by `texts`, `holdout`, `retain` and `questions`.
        column: of the text; None: `text` or `input`.
        words: of a chunk; None leaves each text whole.
        prompt_words: of each chunk's prompt.
        limit: rows of each file that are read; None: all.
        delimiter: as of `inject.reading.rows.read_rows`.

    Raises:
        InputError: nothing there, nothing in it, a row without the column, no text that is not
            empty, other texts under one id, a text in two of the files.
    """
    notes: list[str] = []

    def rows(part: str) -> Iterator[PlacedRow]:
        file_rows = read_rows(files[part], purpose=part, delimiter=delimiter)
        yield from islice(file_rows, limit)
        if next(file_rows, None) is not None:
            notes.append(f"{part}: only the first {limit:,} rows were read (limit)")

    texts: list[Example] = []
    chunks: list[Example] = []
    uses: dict[str, str] = {}
    for part in _PARTS:
        if part not in files:
            continue
        own, left_out = read_texts(files[part], rows(part), column=column, part=part)
        notes += left_out
        if (twice := next((text for text in own if text.text in uses), None)) is not None:
            raise InputError(
                f"{part}: this text is also {uses[twice.text]}", where=twice.fields[PLACE]
            )
        uses |= dict.fromkeys((text.text for text in own), "held out" if texts else "audited")
        chunks += cut_chunks(own, words=words, prompt_words=prompt_words, first=len(chunks))
        texts = texts or own
    if "questions" in files:
        chunks += _questions(rows("questions"), first=len(chunks))
    return GivenTexts(texts, chunks, notes)


def read_texts(
    pattern: str,
    rows: Iterable[PlacedRow],
    *,
    column: str | None = None,
    part: str = "texts",
) -> tuple[list[Example], list[str]]:
    """Read texts from the rows of a file, a folder or a glob.

    Args:
        pattern: names the files, for messages.
        rows: of the files.
        column: of the text; None: `text` or `input`.
        part: for messages.

    Returns:
        The texts, and how many rows were left out: empty or null ones, and repeated ones.

    Raises:
        InputError: as `read_given`.
    """
    texts: dict[str, Example] = {}
    left_out: dict[str, list[str]] = {"empty or null": [], "there a second time": []}
    unlike: list[str] = []
    for row in rows:
        text = _value(row, [column] if column else _TEXT_COLUMNS, part)
        if not text.strip():
            left_out["empty or null"].append(row.place)
            continue
        name = _text_id(row, text)
        if (earlier := texts.get(name)) is not None:
            (left_out["there a second time"] if earlier.text == text else unlike).append(row.place)
            continue
        texts[name] = Example(
            example_id="",
            dataset=_PARTS[part],
            source_id=name,
            group=_group(row, name),
            fields={PLACE: row.place},
            text=text,
            protected=is_protected(row.values),
        )
    if unlike:
        raise InputError(
            f"{part}: {len(unlike):,} rows have the id of another text",
            where=unlike[0],
            hint="Give each text an id of its own, or none.",
        )
    if not texts:
        empty = len(left_out["empty or null"])
        raise InputError(f"{part}: every text is empty ({empty:,})", where=pattern)
    return list(texts.values()), [
        f"{part}: left out where the text is {why}: {len(places):,} "
        f"{'row' if len(places) == 1 else 'rows'}, the first at {places[0]}"
        for why, places in left_out.items()
        if places
    ]


def _text_id(row: PlacedRow, text: str) -> str:
    own = next((row.values[key] for key in _IDS if row.values.get(key) not in (None, "")), None)
    if own is not None:
        return str(own)
    if row.place.endswith((".txt:1", ".txt.gz:1", ".txt.zst:1")):
        return Path(row.place).name.partition(".txt")[0]
    return example_id(text)


def _group(row: PlacedRow, own: str) -> str:
    group = row.values.get("group")
    return own if group in (None, "") else f"group {group}"


def _questions(rows: Iterable[PlacedRow], *, first: int) -> Iterator[Example]:
    """Read rows of `question` and `answer`; what is scored is both, put together."""
    for number, row in enumerate(rows, start=first):
        question, answer = (
            _value(row, (name,), "questions").strip() for name in ("question", "answer")
        )
        if not question or not answer:
            raise InputError("questions: the question or its answer is empty", where=row.place)
        text = f"{question} {answer}"
        yield Example(
            example_id=str(number),
            dataset=QUESTION,
            source_id=row.place,
            group=_group(row, row.place),
            fields={"start": 0, "stop": len(text), "prompt_stop": len(question)},
            text=text,
        )


def _value(row: PlacedRow, columns: Sequence[str], part: str) -> str:
    name = next((name for name in columns if name in row.values), None)
    if name is None:
        raise InputError(
            f"{part}: the row has no {' or '.join(map(repr, columns))}."
            f"{did_you_mean(columns[0], row.values)}",
            where=row.place,
            allowed=f"one of its columns: {', '.join(row.values)}",
            hint="Name the column of the text with text_column=NAME." if part == "texts" else None,
        )
    value = "" if row.values[name] is None else row.values[name]
    if not isinstance(value, str):
        raise InputError(
            f"{part}: {name!r} contains {type(value).__name__}, not a text", where=row.place
        )
    return value


def cut_chunks(
    texts: Sequence[Example],
    *,
    words: int | None = WORDS,
    prompt_words: int = PROMPT_WORDS,
    first: int = 0,
) -> list[Example]:
    """Cut texts into chunks, in order; a chunk's id is its number.

    The remainder of a text is a separate chunk if it is longer than the prompt.

    Args:
        texts: what is cut.
        words: of a chunk; None leaves each text whole.
        prompt_words: of each chunk's prompt.
        first: number of the first chunk.

    Raises:
        InputError: a text that is no longer than the prompt, with its place.
    """
    chunks: list[Example] = []
    for source in texts:
        places = [word.span() for word in _WORD.finditer(source.text)]
        if len(places) <= prompt_words:
            raise InputError(
                f"the text has {len(places)} words, and the prompt alone takes {prompt_words}",
                where=source.fields[PLACE],
                hint="Give fewer prompt_words, or leave the text out.",
            )
        size = words or len(places)
        for begin in range(0, len(places), size):
            inside = places[begin : begin + size]
            if len(inside) > prompt_words:
                span = inside[0][0], inside[-1][1], inside[prompt_words - 1][1]
                chunks.append(_slice(source, *span, number=first + len(chunks)))
    return chunks


def _slice(source: Example, start: int, stop: int, prompt_stop: int, *, number: int) -> Example:
    return replace(
        source,
        example_id=str(number),
        text=source.text[start:stop],
        fields={"start": start, "stop": stop, "prompt_stop": prompt_stop - start},
    )
