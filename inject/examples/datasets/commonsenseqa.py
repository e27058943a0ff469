"""CommonsenseQA (Talmor et al., NAACL 2019): everyday questions with five options.

Two formats: the authors' JSON Lines (`question: {stem, question_concept, choices: [{label,
text}]}`) and the hub's flat one (`question`, `choices: {label: […], text: […]}`); the gold is
`answerKey`, a letter, empty in the published test set. The default template is that of the
usual evaluation harnesses, its answer written out as letter and text.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from inject.errors import InputError
from inject.examples.datasets.choices import choice_fields, gold_index
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

_HUB = HubDataset("tau/commonsense_qa", "validation")


class _Question(NamedTuple):
    stem: str
    concept: str
    labels: list[str]
    texts: list[str]


def commonsenseqa_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows; fields question, options (list), answer (`B. library`), answer_letter,
    answer_text, concept.
    """
    for row in placed_rows(source, _HUB, what="commonsenseqa"):
        question = _question(row)
        gold = gold_index(text_field(row, "answerKey"), question.labels, where=row.place)
        choice = choice_fields(question.texts, gold)
        answer = f"{choice['answer_letter']}. {choice['answer_text']}" if gold is not None else ""
        yield Row(
            fields={
                "question": question.stem,
                "concept": question.concept,
                "answer": answer,
                **choice,
            },
            source_id=str(row.values.get("id") or place_id(row)),
            stratum=choice["answer_letter"],
        )


def _question(row: PlacedRow) -> _Question:
    if "question" not in row.values:
        raise missing_field(row, "question")
    question = row.values["question"]
    if isinstance(question, Mapping):
        stem, concept = question.get("stem"), question.get("question_concept")
        choices = question.get("choices")
    else:
        stem, concept = question, row.values.get("question_concept")
        choices = row.values.get("choices")
    try:
        if isinstance(choices, Mapping):
            labels, texts = choices["label"], choices["text"]
        else:
            labels = [choice["label"] for choice in choices or ()]
            texts = [choice["text"] for choice in choices or ()]
    except (KeyError, TypeError) as error:
        raise _malformed(row) from error
    if not isinstance(stem, str) or not texts or len(labels) != len(texts):
        raise _malformed(row)
    return _Question(stem, str(concept or ""), _texts(labels), _texts(texts))


def _texts(values: Any) -> list[str]:
    return [str(value) for value in values]


def _malformed(row: PlacedRow) -> InputError:
    return InputError(
        "the row is in neither CommonsenseQA format.",
        where=row.place,
        allowed="question: {stem, choices: [{label, text}]}, or question and "
        "choices: {label: [], text: []}",
    )


DATASET = Dataset(
    name="commonsenseqa",
    summary="CommonsenseQA: everyday questions with five options.",
    template="Question: {question}\n{options}\nAnswer: {answer}",
    rows=commonsenseqa_rows,
    hub=_HUB.id,
)
