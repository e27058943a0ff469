"""The rows that `spikein detect` scores: texts, and, if known, their sides and groups.

Names of columns are case-insensitive. JSON Lines are also recognised by their content: with any
suffix they are read as rows, never as one long text.

Held-out texts, in a separate file, are compared with the rows by their words, ignoring case,
punctuation and spaces: a shot that is also scored would reveal its own row.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from detect.user_rows.id_columns import HighestId, IdRows
from detect.user_rows.row_settings import Labels, RowSettings, column_names
from inject.bounded_files import read_lines
from inject.errors import InputError, did_you_mean, first_names
from inject.examples.example import Example, example_id
from inject.reading.row_parsers import PlacedRow, format_of, json_lines
from inject.reading.rows import read_rows
from inject.words import words_of

_TEXT_FIELDS = ("text", "input")
_CHOICES = ("example_a", "example_b", "example_c", "example_d")
"""The options of a multiple choice; the verbatim one is the first, or the one that `answer`
names."""
_PARAPHRASES = "paraphrases"
_OF_TEXT = (*_TEXT_FIELDS, "id", "label", "group", "title", "dataset", "protected")
_NAMED = 5
"""Maximum held-out texts that an error lists, if they are also scored."""
_KNOWN = (*_OF_TEXT, "answer", _PARAPHRASES, *_CHOICES)
_TEXTUAL = (None, *(f"{one}{packing}" for one in (".txt", ".csv", ".tsv")
                    for packing in ("", ".gz", ".zst")))  # fmt: skip


class LabelledRows(NamedTuple):
    """The rows of a file of examples; lists of equal length."""

    texts: list[str]
    ids: list[str]
    """The row's own `id`, else the hash of its text; equal ids are separate rows."""
    labels: list[bool] | None
    """True for members; None if the file has no labels."""
    groups: list[str] | None
    paraphrases: list[tuple[str, ...]] | None = None
    """Paraphrases of each text; None if no row has any."""
    titles: list[str] | None = None
    """Title of each text's document; empty if it has none."""
    protected: tuple[str, ...] = ()
    """Names of the rows' protected datasets."""
    limited: bool = False
    """Whether there are further rows that were not read."""
    highest_id: HighestId | None = None
    """Of rows that are token ids; None if the rows are texts."""
    parts: list[str] | None = None
    """The part of a benchmark that each row belongs to; empty for rows that belong to all."""


def read_labelled(
    pattern: str, settings: RowSettings | None = None, *, additional: bool = False
) -> LabelledRows:
    """Read rows of `text` (or `input`), optional `id`, `label`, `group`, `paraphrases`, `title`.

    A row may have its text as one of four options instead, `Example_A` to `Example_D`, with its
    paraphrases as the others. Its `id` is then the title of its document, and the group.

    Texts are protected if the row's `protected` is true, or if it has a canary, which authors add
    to data that must not be revealed; `dataset`, or the name of the file, names their dataset.

    Args:
        pattern: a file, a folder or a glob.
        settings: number of rows to read, and columns.
        additional: the file is additional to the scored rows: all of it is read, and it may lack
            the named columns.

    Raises:
        InputError: naming file and line: a row without text or without a named column, a
            label that is neither member nor non-member, or labels on some rows only.
    """
    settings = settings or RowSettings()
    known_labels, id_rows = Labels(settings.labels), IdRows()
    texts: list[str] = []
    ids, labels, groups = [], [], []
    paraphrases: list[tuple[str, ...]] = []
    titles: list[str] = []
    unlabelled = None
    protected: set[str] = set()
    limited = False
    for place, row in placed_rows(pattern, settings):
        if not additional and len(texts) == settings.limit:
            limited = True
            break
        values = _lower_known_names(row) | settings.of_columns(row, None if additional else place)
        if (options := _options(values, place)) is not None:
            values = _of_options(values, options, place)
        paraphrases.append(_paraphrases(values.get(_PARAPHRASES), place))
        titles.append(_title(values.get("title"), place))
        if settings.ids_column is None:
            text = _text(values, place)
        else:
            text = id_rows.text(values.get("ids"), values.get("ids_start"), place)
        texts.append(text)
        if is_protected(values):
            protected.add(str(values.get("dataset") or Path(pattern).name.partition(".")[0]))
        own = values.get("id")
        ids.append(example_id(text) if own in (None, "") else str(own))
        label = known_labels.read(values.get("label"), place)
        if label is None:
            unlabelled = unlabelled or place
        else:
            labels.append(label)
        group = values.get("group")
        groups.append(text if group in (None, "") else f"group {group}")
    known_labels.check()
    if labels and unlabelled:
        raise InputError(
            f"this row has no label, and {len(labels):,} of {len(texts):,} have one",
            where=unlabelled,
            allowed="a label on every row, or on none",
        )
    grouped = any(group != text for group, text in zip(groups, texts, strict=True))
    return LabelledRows(
        texts,
        ids,
        labels or None,
        groups if grouped else None,
        paraphrases if any(paraphrases) else None,
        titles if any(titles) else None,
        protected=tuple(sorted(protected)),
        limited=limited,
        highest_id=id_rows.highest if settings.ids_column is not None else None,
    )


def rows_notes(rows: LabelledRows) -> list[str]:
    """Return notes on the rows: repeated texts and ids, empty texts."""
    texts = Counter(text for text in rows.texts if text.strip())
    sides = zip(rows.texts, rows.labels or [], strict=False)
    both = Counter(text for text, _ in set(sides) if text.strip())
    counted = {
        "texts are empty or null": sum(not text.strip() for text in rows.texts),
        "rows have the text of an earlier row, and count as one group with it": (
            texts.total() - len(texts)
        ),
        "texts are on both sides: no score can separate them": sum(
            count > 1 for count in both.values()
        ),
        "rows have the id of an earlier row with another text; each counts": (
            len(set(zip(rows.ids, rows.texts, strict=True))) - len(set(rows.ids))
        ),
    }
    first = (
        f"Only the first rows of each side and part were read (limit), {len(rows.texts):,} in all."
        if rows.parts
        else f"Only the first {len(rows.texts):,} rows were read (limit): numbers refer to these."
    )
    return [
        *([first] if rows.limited else []),
        *(f"{count} {problem}." for problem, count in counted.items() if count),
    ]


def placed_rows(pattern: str, settings: RowSettings) -> Iterator[PlacedRow]:
    """Yield the rows that a pattern names, unchanged.

    Raises:
        InputError: as `inject.reading.rows.read_rows`.
    """
    path = Path(pattern).expanduser()
    if path.is_file() and format_of(path) in _TEXTUAL and _is_json_lines(path):
        return json_lines(path, "examples")
    return read_rows(pattern, purpose="examples", delimiter=settings.delimiter)


def _is_json_lines(path: Path) -> bool:
    first = next((line for line in read_lines(path, "examples") if line.strip()), b"")
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(first), dict)
    return False


def _lower_known_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with its known columns in lower case; an exact name wins."""
    named = dict(values)
    for name, value in values.items():
        plain = str(name).strip().lower()
        if plain in _KNOWN and plain not in values:
            named[plain] = value
    return named


def is_protected(values: Mapping[str, Any]) -> bool:
    """Return whether a row's text must not be revealed: `protected` is true, or it has a canary.

    Args:
        values: the row by column; names are case-insensitive.
    """
    named = ((str(column).strip().lower(), value) for column, value in values.items())
    return any(
        ("canary" in name and value) or (name == "protected" and _is_true(value))
        for name, value in named
    )


def _is_true(value: Any) -> bool:
    plain = str(value).strip().lower()
    return value not in (None, False, 0) and plain not in ("", "0", "false", "none")


def _options(values: Mapping[str, Any], place: str) -> list[str] | None:
    """Return the four options of a row; None if it has a text, or no options."""
    if any(name in values for name in _TEXT_FIELDS) or _CHOICES[0] not in values:
        return None
    options = [values.get(name) or "" for name in _CHOICES]
    for name, option in zip(_CHOICES, options, strict=True):
        if not isinstance(option, str):
            raise InputError(
                f"{name!r} contains {type(option).__name__}, not a string", where=place
            )
    return options


def _of_options(values: Mapping[str, Any], options: list[str], place: str) -> dict[str, Any]:
    """Return a row of options as one with a text, paraphrases, and a document."""
    letters = "ABCD"
    answer = str(values.get("answer") or "A").strip().upper()
    if answer not in tuple(letters):
        raise InputError(
            f"the answer {values.get('answer')!r} names no option",
            where=place,
            allowed=", ".join(letters),
        )
    verbatim = options.pop(letters.index(answer))
    document = values.get("id")
    return {
        "title": document,
        "group": document,
        **values,
        "text": verbatim,
        _PARAPHRASES: options,
    }


def _paraphrases(value: Any, place: str) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise InputError("'paraphrases' is not a list of texts", where=place)
    return tuple(value)


def _title(value: Any, place: str) -> str:
    if value is not None and not isinstance(value, str | int | float):
        raise InputError(f"'title' contains {type(value).__name__}, not a string", where=place)
    return "" if value is None else str(value)


def _text(values: Mapping[str, Any], place: str) -> str:
    name = next((name for name in _TEXT_FIELDS if name in values), None)
    if name is None:
        raise InputError(
            f"the row has no text, only {column_names(values)}."
            f"{did_you_mean('text', map(str, values))}",
            where=place,
            allowed=" or ".join(f"a field {name!r}" for name in _TEXT_FIELDS),
            hint="text_column=NAME names another; the first line of CSV and TSV names the columns.",
        )
    value = values[name]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(
            f"{name!r} contains {type(value).__name__}, not a string",
            where=place,
            hint="text_column=NAME names another column.",
        )
    return value


class KnownTexts(NamedTuple):
    """The texts of a held-out file, equal ones once; ids count the rows of each side."""

    nonmembers: list[Example]
    """Texts without a label, or with label 0."""
    members: list[Example]
    """Texts with label 1."""
    protected: tuple[str, ...] = ()
    """Names of the rows' protected datasets."""


def read_held_out_file(
    pattern: str, scored: LabelledRows, settings: RowSettings | None = None
) -> KnownTexts:
    """Read the held-out texts.

    Args:
        pattern: a file, folder or glob of rows, as for the scored ones.
        scored: the scored rows.
        settings: columns, if the file has the named ones.

    Raises:
        InputError: a text that is also scored, a text listed both as a member and as a non-member,
            or a file without texts; as `read_labelled`.
    """
    rows = read_labelled(pattern, settings, additional=True)
    places: dict[str, int] = {}
    for place, text in enumerate(scored.texts, start=1):
        places.setdefault(_normalise(text), place)
    shared = [
        (number, places[_normalise(text)])
        for number, text in enumerate(rows.texts, start=1)
        if text.strip() and _normalise(text) in places
    ]
    if shared:
        named = first_names([f"row {own} (scored row {row})" for own, row in shared], _NAMED)
        raise InputError(
            f"{len(shared):,} held-out texts are also scored: {named}",
            where=pattern,
            hint="Remove them from one of the two files: a held-out text is never scored.",
        )
    labels = rows.labels or [False] * len(rows.texts)
    places_of: dict[str, int] = {}
    for at, text in enumerate(rows.texts):
        if text.strip() and labels[places_of.setdefault(_normalise(text), at)] != labels[at]:
            raise InputError(
                f"row {at + 1} is listed both as a member and as a non-member", where=pattern
            )
    if not places_of:
        raise InputError("the file has no texts", where=pattern)

    def of_side(member: bool) -> list[Example]:
        chosen = [at for at in places_of.values() if labels[at] is member]
        titles = rows.titles or [""] * len(labels)
        return [
            row_example(rows, at, example_id=str(number), fields={"title": titles[at]})
            for number, at in enumerate(chosen)
        ]

    return KnownTexts(of_side(False), of_side(True), rows.protected)


def row_example(rows: LabelledRows, at: int, **own: Any) -> Example:
    """Return a row as an example; `own` has its id, and other values than the row's."""
    values: dict[str, Any] = {
        "dataset": "",
        "source_id": own["example_id"],
        "group": rows.groups[at] if rows.groups else rows.texts[at],
        "text": rows.texts[at],
        "paraphrases": rows.paraphrases[at] if rows.paraphrases else (),
        "side": "member" if rows.labels and rows.labels[at] else "nonmember",
        **own,
    }
    return Example(**values)


def _normalise(text: str) -> str:
    return " ".join(words_of(text)) or text.strip()
