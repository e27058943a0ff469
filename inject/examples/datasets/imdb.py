"""IMDB (Maas et al., ACL 2011): film reviews with their sentiment.

Read from JSON Lines `{text, label, …}`, from the hub, or from the original folders of one
review per file (`aclImdb/test/*/*.txt`, where the folder `pos` or `neg` is the label). Label 1
is positive. Reviews keep their raw `<br />` and control characters, as the benchmark has
them; `clean: true` turns the former into newlines and drops the latter. The default template
is HELM's.
"""

import re
from pathlib import PurePath

from inject.errors import InputError
from inject.examples.datasets.source import benchmark, place_id, text_field
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.reading.rows import PlacedRow
from inject.settings import Settings

_SENTIMENTS = {"1": "Positive", "pos": "Positive", "0": "Negative", "neg": "Negative"}
_UNLABELLED = {"-1": "", "": "", "unsup": ""}
_BREAK = re.compile(r"[ \t]*<br\s*/?>[ \t]*", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class ImdbOptions(Settings):
    """Options of `imdb`."""

    clean: bool = False
    """Turn `<br />` into newlines and drop control characters."""


def imdb_row(row: PlacedRow, options: ImdbOptions) -> Row:
    """Return a row with the fields passage (the review), answer (Positive, Negative), rating."""
    review = text_field(row, "text")
    path = PurePath(row.place.rsplit(":", 1)[0])
    labelled = "label" in row.values
    # Of the original folders, `pos` and `neg` are the labels.
    in_folder = not labelled and path.parent.name in {**_SENTIMENTS, "unsup": ""}
    label = path.parent.name if in_folder else text_field(row, "label")
    answer = {**_SENTIMENTS, **_UNLABELLED}.get(label)
    if answer is None:
        raise InputError(f"unknown label {label!r}.", where=row.place, allowed="0 or neg, 1 or pos")
    # A review's number is unique only within its split and label, which its path names.
    own_path = row.values.get("path")
    place = place_id(row) if labelled else "/".join(path.parts[-3:])
    return Row(
        fields={
            "passage": _CONTROL.sub("", _BREAK.sub("\n", review)) if options.clean else review,
            "answer": answer,
            "rating": str(row.values.get("rating") or ""),
        },
        source_id=own_path if isinstance(own_path, str) else place,
        stratum=answer,
    )


DATASET = benchmark(
    imdb_row,
    name="imdb",
    summary="IMDB: film reviews with their sentiment.",
    template="Passage: {passage}\nSentiment: {answer}",
    hub=HubDataset("stanfordnlp/imdb", "test"),
    options=ImdbOptions,
)
