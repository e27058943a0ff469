"""Rows of one's own: any JSON Lines, CSV or Parquet with a field map.

`fields` says where each field lies: `{id: qid, question: q.stem, answer: gold}`. A dotted
path walks into objects, and by number into lists; a column whose own name holds the dots
comes first. `id`, `group` and `label` are the row's id, its group and its stratum; every
other name is for the template. Without `fields` the usual names are looked for in each row
(`text`; `question`, `passage`, `options`, `answer`; `id`, `group`, `label`).

Numbers become text. Of a list the first item is taken, except for `options`, which stays a
list. A row that lacks a mapped field is an error; null is an empty text.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from inject.datasets.source import Dataset, DatasetSource, place_id
from inject.errors import InputError, did_you_mean
from inject.example import Row
from inject.rows import PlacedRow, read_rows

_USUAL = ("id", "group", "label", "text", "passage", "question", "options", "answer")
_LISTS = ("options",)
_ABSENT = object()


def mapped_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows; fields as mapped."""
    if source.path is None:
        raise InputError("needs a file.", where="rows", hint="Give `path:`.")
    for row in read_rows(source.path, what="rows"):
        found = _mapped(row, source.fields) if source.fields else _usual(row)
        fields = {name: _plain(row, name, value) for name, value in found.items()}
        yield Row(
            fields=fields,
            source_id=str(fields.get("id") or place_id(row)),
            group=str(fields["group"]) if fields.get("group") else None,
            stratum=str(fields.get("label", "")),
        )


def _mapped(row: PlacedRow, fields: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for name, path in fields.items():
        value = _lookup(row.values, path)
        if value is _ABSENT:
            known = _known(row.values)
            raise InputError(
                f"the row has no {path!r} for field {name!r}; it has {', '.join(known)}."
                f"{did_you_mean(path, known)}",
                where=row.place,
            )
        found[name] = value
    return found


def _usual(row: PlacedRow) -> dict[str, Any]:
    found = {name: row.values[name] for name in _USUAL if name in row.values}
    if "text" not in found and "question" not in found:
        raise InputError(
            f"the row has neither 'text' nor 'question'; it has {', '.join(_known(row.values))}.",
            where=row.place,
            hint="Map its names, such as `fields: {text: body}`.",
        )
    return found


def _lookup(values: Any, path: str) -> Any:
    # Returns `_ABSENT` rather than None: null is a value that a row may hold.
    if isinstance(values, Mapping):
        if path in values:
            return values[path]
        head, dot, rest = path.partition(".")
        return _lookup(values[head], rest) if dot and head in values else _ABSENT
    if isinstance(values, list):
        head, dot, rest = path.partition(".")
        if not head.isdigit() or int(head) >= len(values):
            return _ABSENT
        return _lookup(values[int(head)], rest) if dot else values[int(head)]
    return _ABSENT


def _known(values: Mapping[str, Any], prefix: str = "") -> list[str]:
    names = []
    for name, value in values.items():
        names.append(f"{prefix}{name}")
        if isinstance(value, Mapping):
            names += _known(value, f"{prefix}{name}.")
    return sorted(names)


def _plain(row: PlacedRow, name: str, value: Any) -> str | list[str]:
    if isinstance(value, list | tuple):
        texts = [_text(row, name, item) for item in value]
        if name in _LISTS:
            return texts
        return texts[0] if texts else ""
    return _text(row, name, value)


def _text(row: PlacedRow, name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping | list | tuple):
        raise InputError(
            f"field {name!r} holds a {type(value).__name__}.",
            where=row.place,
            allowed="a text, a number, or a list of them",
            hint="A dotted path such as `q.stem` leads into an object.",
        )
    return str(value)


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
    maps_fields=True,
)
