"""TruthfulQA (Lin et al., ACL 2022), generation: questions that people often answer wrongly.

Read from the authors' CSV (`Question`, `Best Answer`, `Correct Answers` joined by `;`) or
from the hub (`question`, `best_answer`, `correct_answers` as a list). The default template is
the authors' own `Q: … A: …` with the best answer.
"""

from collections.abc import Iterator
from typing import Any

from inject.examples.datasets.source import (
    Dataset,
    DatasetSource,
    missing_field,
    place_id,
    placed_rows,
)
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.reading.rows import PlacedRow

_HUB = HubDataset("truthfulqa/truthful_qa", "validation", "generation")


def truthfulqa_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows; fields question, answer (the best), correct_answers, incorrect_answers
    (lists), category, type.
    """
    for row in placed_rows(source, _HUB, what="truthfulqa"):
        kind = _value(row, "type") or ""
        yield Row(
            fields={
                "question": _value(row, "question") or "",
                "answer": (_value(row, "best_answer") or "").strip(),
                "correct_answers": _split(_value(row, "correct_answers")),
                "incorrect_answers": _split(_value(row, "incorrect_answers")),
                "category": _value(row, "category") or "",
                "type": kind,
            },
            source_id=place_id(row),
            stratum=kind,
        )


def _value(row: PlacedRow, hub_name: str) -> Any:
    for name in (hub_name.replace("_", " ").title(), hub_name):
        if name in row.values:
            return row.values[name]
    raise missing_field(row, name)


def _split(answers: Any) -> list[str]:
    parts = answers.split(";") if isinstance(answers, str) else answers or []
    return [part.strip() for part in parts if part.strip()]


DATASET = Dataset(
    name="truthfulqa",
    summary="TruthfulQA (generation): questions that people often answer wrongly.",
    template="Q: {question}\nA: {answer}",
    rows=truthfulqa_rows,
    hub=_HUB.id,
)
