"""IMDB (Maas et al., ACL 2011): film reviews with their sentiment.

Read from JSON Lines `{text, label, …}`, from the hub, or from the original folders of one
review a file (`aclImdb/test/*/*.txt`, where the folder `pos` or `neg` is the label). Label 1
is positive. Reviews keep their raw `<br />` and control characters, as the benchmark has
them; `clean: true` turns the former into newlines and drops the latter. The default template
is HELM's.
"""

import re
from collections.abc import Iterator
from pathlib import PurePath

from inject.errors import InputError
from inject.examples.datasets.source import (
    Dataset,
    DatasetSource,
    missing_field,
    place_id,
    placed_rows,
    text_field,
)
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.reading.rows import PlacedRow
from inject.settings import Settings

_HUB = HubDataset("stanfordnlp/imdb", "test")
_SENTIMENTS = {"1": "Positive", "pos": "Positive", "0": "Negative", "neg": "Negative"}
_UNLABELLED = {"-1", "", "unsup"}
_BREAK = re.compile(r"[ \t]*<br\s*/?>[ \t]*", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class ImdbOptions(Settings):
    """Options of `imdb`."""

    clean: bool = False
    """Turn `<br />` into newlines and drop control characters."""


def imdb_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows; fields passage (the review), answer (Positive, Negative), rating."""
    options = ImdbOptions.model_validate(source.options)
    for row in placed_rows(source, _HUB, what="imdb"):
        review = text_field(row, "text")
        answer = _sentiment(row)
        yield Row(
            fields={
                "passage": _cleaned(review) if options.clean else review,
                "answer": answer,
                "rating": str(row.values.get("rating") or ""),
            },
            source_id=_source_id(row),
            stratum=answer,
        )


def _sentiment(row: PlacedRow) -> str:
    if "label" in row.values:
        given = str(row.values["label"] if row.values["label"] is not None else "")
    elif (folder := _file(row).parent.name) in _SENTIMENTS or folder in _UNLABELLED - {""}:
        given = folder
    else:
        raise missing_field(row, "label")
    if given in _UNLABELLED:
        return ""
    if given not in _SENTIMENTS:
        raise InputError(f"unknown label {given!r}.", where=row.place, allowed="0 or neg, 1 or pos")
    return _SENTIMENTS[given]


def _source_id(row: PlacedRow) -> str:
    # A review's number is unique only within its split and label, which its path names.
    if isinstance(path := row.values.get("path"), str):
        return path
    if "label" not in row.values:
        return "/".join(_file(row).parts[-3:])
    return place_id(row)


def _file(row: PlacedRow) -> PurePath:
    return PurePath(row.place.rsplit(":", 1)[0])


def _cleaned(review: str) -> str:
    return _CONTROL.sub("", _BREAK.sub("\n", review))


DATASET = Dataset(
    name="imdb",
    summary="IMDB: film reviews with their sentiment.",
    template="Passage: {passage}\nSentiment: {answer}",
    rows=imdb_rows,
    hub=_HUB.id,
    options=ImdbOptions,
)
