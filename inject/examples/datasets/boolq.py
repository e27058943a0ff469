"""BoolQ (Clark et al., NAACL 2019): a passage and a yes/no question about it.

Rows are `{question, title, answer: bool, passage}`, in the original JSON Lines and on the hub
alike. Questions are lower-case and lack their question mark; the default template, that of
the usual evaluation harnesses, adds it. Rows that share a passage share a group.
"""

from collections.abc import Iterator

from inject.errors import InputError
from inject.examples.datasets.source import (
    Dataset,
    DatasetSource,
    passage_group,
    place_id,
    placed_rows,
    text_field,
)
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.reading.rows import PlacedRow

_HUB = HubDataset("google/boolq", "validation")
_ANSWERS = {"true": "yes", "false": "no", "": ""}


def boolq_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows; fields question (no question mark), passage, title, answer (yes, no)."""
    for row in placed_rows(source, _HUB, what="boolq"):
        passage = text_field(row, "passage")
        answer = _answer(row)
        yield Row(
            fields={
                "question": text_field(row, "question").strip().rstrip("?").rstrip(),
                "passage": passage,
                "title": str(row.values.get("title") or ""),
                "answer": answer,
            },
            source_id=place_id(row),
            group=passage_group(passage),
            stratum=answer,
        )


def _answer(row: PlacedRow) -> str:
    # The published test set has no answers, so that a row without one is no error here.
    given = row.values.get("answer")
    text = "" if given is None else str(given).lower()
    if text not in _ANSWERS:
        raise InputError("the answer is no boolean.", where=row.place, allowed="true, false")
    return _ANSWERS[text]


DATASET = Dataset(
    name="boolq",
    summary="BoolQ: yes/no questions about a Wikipedia passage.",
    template="{passage}\nQuestion: {question}?\nAnswer: {answer}",
    rows=boolq_rows,
    hub=_HUB.id,
)
