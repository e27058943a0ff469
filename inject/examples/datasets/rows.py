"""Rows of one's own: any JSON Lines, CSV or Parquet with a field map.

`fields` gives the path of each field: `{id: qid, question: q.stem, answer: gold}`. A dotted
path walks into objects, by number into lists, and by `*` into every item of a list; a column
whose own name contains the dots comes first. `id`, `group` and `label` are the row's id, its group
and its stratum; every other name is for the template. Without `fields` the usual names are looked
for in each row (`text`; `question`, `passage`, `options` or `choices`, `answer` or `answerKey`;
`id`, `group`, `label`).

`options` are those of a multiple choice, in any of the forms of `choices`, or a list of paths, one
per option; `letters` is the path of their labels, if that is separate. The row's `answer` then
identifies the correct one, and becomes the letter that the template shows (an answer that is the
option's text stays as it is); the row also has `answer_letter` and `answer_text`.

`share` reads a part of the rows, so that a file can be background and contaminants at once; `where`
reads those that have a value, such as `[task_id=1]` or `[answer=true]`.

Numbers become text. Of any other list the first item is taken. A row that lacks a mapped field
is an error; null is an empty text.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inject.errors import InputError, did_you_mean
from inject.examples.datasets.choices import RowsOptions, choice_fields, read_choice
from inject.examples.datasets.source import Dataset, DatasetSource, FieldPath, place_id
from inject.examples.example import Row
from inject.keyed import Stream, item_key, unit, words
from inject.reading.rows import PlacedRow, read_rows

_USUAL: Mapping[str, tuple[str, ...]] = {
    "id": ("id",),
    "group": ("group",),
    "label": ("label",),
    "text": ("text",),
    "passage": ("passage",),
    "question": ("question",),
    "options": ("options", "choices"),
    "answer": ("answer", "answerKey"),
}
_OPTIONS, _LETTERS, _ANSWER = "options", "letters", "answer"
_EVERY = "*"
_ABSENT = object()


def mapped_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows; fields as mapped."""
    if source.path is None:
        raise InputError("needs a file.", where="rows", hint="Give `path:`.")
    settings = RowsOptions.model_validate(source.options)
    for row in read_rows(source.path, purpose="rows"):
        if not _agrees(row, settings.where):
            continue
        values = _map_fields(row, source.fields) if source.fields else _by_usual_names(row)
        if settings.share is not None and not _is_read(values, settings.share):
            continue
        fields = _fields(row, values, settings, source.seed)
        yield Row(
            fields=fields,
            source_id=str(fields.get("id") or place_id(row)),
            group=str(fields["group"]) if fields.get("group") else None,
            stratum=str(fields.get("label", "")),
        )


def _agrees(row: PlacedRow, conditions: Sequence[str]) -> bool:
    """Return whether a row has the requested values.

    Raises:
        InputError: no value at one of the paths: a missing name is a mistake.
    """
    pairs = (condition.partition("=") for condition in conditions)
    return all(_is_written(_value_at(row, path, path), value) for path, _, value in pairs)


def _is_written(value: Any, text: str) -> bool:
    """Return whether a text is a value, or its JSON form: `true`, `null`, `1`, `1.0`."""
    if isinstance(value, str) or str(value) == text:
        return str(value) == text
    try:
        read = json.loads(text)
    except ValueError:
        return False
    # Python's booleans are equal to 0 and 1.
    return bool(read == value) and isinstance(read, bool) == isinstance(value, bool)


def _is_read(values: Mapping[str, Any], share: float) -> bool:
    """Return whether a row is among the share that is read: by its group, or by its content.

    The experiment's seed has no effect: one corpus, without the rows read, serves all seeds.
    """
    content = values.get("group") or json.dumps(values, sort_keys=True, default=str)
    return bool(unit(words(0, Stream.ROWS_READ, item_key(str(content)))) < share)


def _fields(
    row: PlacedRow, values: Mapping[str, Any], settings: RowsOptions, seed: int
) -> dict[str, Any]:
    options = values.get(_OPTIONS)
    # A text is what the row shows as its options, and is shown as it is.
    if options is None or isinstance(options, str):
        return {name: _plain_text(row, name, value) for name, value in values.items()}
    plain = {
        name: _plain_text(row, name, value)
        for name, value in values.items()
        if name not in (_OPTIONS, _LETTERS, _ANSWER)
    }
    choices, gold, by_text = read_choice(
        options,
        values.get(_LETTERS),
        values.get(_ANSWER),
        settings,
        key=plain.get("question", ""),
        seed=seed,
        place=row.place,
    )
    chosen = choice_fields(choices, gold)
    if _ANSWER in values:
        plain[_ANSWER] = chosen["answer_text" if by_text else "answer_letter"]
    return {**plain, **chosen}


def _map_fields(row: PlacedRow, fields: Mapping[str, FieldPath]) -> dict[str, Any]:
    return {
        name: _value_at(row, name, path)
        if isinstance(path, str)
        else [_value_at(row, name, part) for part in path]
        for name, path in fields.items()
    }


def _value_at(row: PlacedRow, name: str, path: str) -> Any:
    value = _lookup(row.values, path)
    if value is _ABSENT:
        names = _list_paths(row.values)
        raise InputError(
            f"the row has no {path!r} for field {name!r}; it has {', '.join(names)}."
            f"{did_you_mean(path, names)}",
            where=row.place,
        )
    return value


def _by_usual_names(row: PlacedRow) -> dict[str, Any]:
    values = {
        name: row.values[alias]
        for name, usual in _USUAL.items()
        for alias in usual[::-1]
        if alias in row.values
    }
    if values.get(_OPTIONS) in ([], {}):
        del values[_OPTIONS]
    if "text" not in values and "question" not in values:
        raise InputError(
            "the row has neither 'text' nor 'question'; it has "
            f"{', '.join(_list_paths(row.values))}.",
            where=row.place,
            hint="Map its names, such as `fields: {text: body}`.",
        )
    return values


def _lookup(values: Any, path: str) -> Any:
    # Returns `_ABSENT` rather than None: null is a value that a row may have.
    if isinstance(values, Mapping):
        if path in values:
            return values[path]
        head, dot, tail = path.partition(".")
        return _lookup(values[head], tail) if dot and head in values else _ABSENT
    if isinstance(values, list):
        head, dot, tail = path.partition(".")
        if head == _EVERY:
            parts = [_lookup(item, tail) if dot else item for item in values]
            return _ABSENT if _ABSENT in parts else parts
        if not head.isdigit() or int(head) >= len(values):
            return _ABSENT
        return _lookup(values[int(head)], tail) if dot else values[int(head)]
    return _ABSENT


def _list_paths(values: Mapping[str, Any], prefix: str = "") -> list[str]:
    names = []
    for name, value in values.items():
        names.append(f"{prefix}{name}")
        if isinstance(value, Mapping):
            names += _list_paths(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            names += _list_paths(value[0], f"{prefix}{name}.{_EVERY}.")
    return sorted(names)


def _plain_text(row: PlacedRow, name: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    if isinstance(value, Mapping | list | tuple):
        raise InputError(
            f"field {name!r} contains a {type(value).__name__}.",
            where=row.place,
            allowed="a text, a number, or a list of them",
            hint="A dotted path such as `q.stem` leads into an object.",
        )
    return "" if value is None else str(value)


DATASET = Dataset(
    name="rows",
    summary="Rows of your own: any JSON Lines, CSV or Parquet with a field map.",
    template="{text}",
    alternatives=(
        "{passage}\nQuestion: {question}\n{options}\nAnswer: {answer}",
        "{passage}\nQuestion: {question}\nAnswer: {answer}",
        "Question: {question}\n{options}\nAnswer: {answer}",
        "Question: {question}\nAnswer: {answer}",
        "{question}",
    ),
    rows=mapped_rows,
    options=RowsOptions,
    seeded=True,
    seeded_by="shuffle_options",
    maps_fields=True,
)
