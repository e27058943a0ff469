"""TruthfulQA (Lin et al., ACL 2022), generation: questions that people often answer wrongly.

Read from the authors' CSV (`Question`, `Best Answer`, `Correct Answers` joined by `;`) or
from the hub (`question`, `best_answer`, `correct_answers` as a list). The default template is
the authors' own `Q: … A: …` with the best answer.
"""

from typing import Any

from inject.examples.datasets.source import NoOptions, benchmark, place_id, text_field
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.reading.rows import PlacedRow


def truthfulqa_row(row: PlacedRow, _: NoOptions) -> Row:
    """Return a row with the fields question, answer (the best), correct_answers, incorrect_answers
    (lists), category, type.
    """
    kind = text_field(row, "Type", "type")
    return Row(
        fields={
            "question": text_field(row, "Question", "question"),
            "answer": text_field(row, "Best Answer", "best_answer").strip(),
            "correct_answers": _split(row, "Correct Answers", "correct_answers"),
            "incorrect_answers": _split(row, "Incorrect Answers", "incorrect_answers"),
            "category": text_field(row, "Category", "category"),
            "type": kind,
        },
        source_id=place_id(row),
        stratum=kind,
    )


def _split(row: PlacedRow, name: str, hub_name: str) -> list[str]:
    text = text_field(row, name, hub_name)
    answers: Any = row.values.get(hub_name)
    parts = answers if isinstance(answers, list) else text.split(";")
    return [part.strip() for part in parts if part.strip()]


DATASET = benchmark(
    truthfulqa_row,
    name="truthfulqa",
    summary="TruthfulQA (generation): questions that people often answer wrongly.",
    template="Q: {question}\nA: {answer}",
    hub=HubDataset("truthfulqa/truthful_qa", "validation", "generation"),
)
