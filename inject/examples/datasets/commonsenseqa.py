"""CommonsenseQA (Talmor et al., NAACL 2019): everyday questions with five options.

Two formats: the authors' JSON Lines (`question: {stem, question_concept, choices: [{label,
text}]}`) and the hub's flat one (`question`, `choices: {label: […], text: […]}`); the gold is
`answerKey`, a letter, empty in the published test set. The default template is that of the
usual evaluation harnesses, its answer written out as letter and text.
"""

from collections.abc import Mapping

from inject.errors import InputError
from inject.examples.datasets.choices import choice_fields, gold_index
from inject.examples.datasets.source import NoOptions, benchmark, place_id, text_field
from inject.examples.example import Row
from inject.hub.dataset_rows import HubDataset
from inject.reading.rows import PlacedRow


def commonsenseqa_row(row: PlacedRow, _: NoOptions) -> Row:
    """Return a row with the fields question, options (list), answer (`B. library`), answer_letter,
    answer_text, concept.
    """
    text_field(row, "question")
    question = row.values["question"]
    nested = question if isinstance(question, Mapping) else {**row.values, "stem": question}
    stem, choices = nested.get("stem"), nested.get("choices") or ()
    try:
        if isinstance(choices, Mapping):
            labels, texts = choices["label"], choices["text"]
        else:
            labels = [choice["label"] for choice in choices]
            texts = [choice["text"] for choice in choices]
    except (KeyError, TypeError):
        labels, texts = [], []
    if not isinstance(stem, str) or not texts or len(labels) != len(texts):
        raise InputError(
            "the row is in neither CommonsenseQA format.",
            where=row.place,
            allowed="question: {stem, choices: [{label, text}]}, or question and "
            "choices: {label: [], text: []}",
        )
    gold = gold_index(text_field(row, "answerKey"), [*map(str, labels)], place=row.place)
    choice = choice_fields([*map(str, texts)], gold)
    answer = f"{choice['answer_letter']}. {choice['answer_text']}" if gold is not None else ""
    return Row(
        fields={
            "question": stem,
            "concept": str(nested.get("question_concept") or ""),
            "answer": answer,
            **choice,
        },
        source_id=str(row.values.get("id") or place_id(row)),
        stratum=choice["answer_letter"],
    )


DATASET = benchmark(
    commonsenseqa_row,
    name="commonsenseqa",
    summary="CommonsenseQA: everyday questions with five options.",
    template="Question: {question}\n{options}\nAnswer: {answer}",
    hub=HubDataset("tau/commonsense_qa", "validation"),
)
