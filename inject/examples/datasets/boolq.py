"""BoolQ (Clark et al., NAACL 2019): a passage and a yes/no question about it.

Rows are `{question, title, answer: bool, passage}`, in the original JSON Lines and on the hub
alike. Questions are lower-case and lack their question mark; the default template, that of
the usual evaluation harnesses, adds it. Rows that share a passage share a group.
"""

from inject.errors import InputError
from inject.examples.datasets.source import (
    NoOptions,
    benchmark,
    passage_group,
    place_id,
    text_field,
)
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.reading.rows import PlacedRow

_ANSWERS = {"true": "yes", "false": "no", "": ""}


def boolq_row(row: PlacedRow, _: NoOptions) -> Row:
    """Return a row: question (no question mark), passage, title, answer (yes, no)."""
    passage = text_field(row, "passage")
    # The published test set has no answers, so a row without one is not an error here.
    answer = text_field(row, "answer", required=False).lower()
    if answer not in _ANSWERS:
        raise InputError("the answer is not a boolean.", where=row.place, allowed="true, false")
    return Row(
        fields={
            "question": text_field(row, "question").strip().rstrip("?").rstrip(),
            "passage": passage,
            "title": text_field(row, "title", required=False),
            "answer": _ANSWERS[answer],
        },
        source_id=place_id(row),
        group=passage_group(passage),
        stratum=_ANSWERS[answer],
    )


DATASET = benchmark(
    boolq_row,
    name="boolq",
    summary="BoolQ: yes/no questions about a Wikipedia passage.",
    template="{passage}\nQuestion: {question}?\nAnswer: {answer}",
    hub=HubDataset("google/boolq", "validation"),
)
