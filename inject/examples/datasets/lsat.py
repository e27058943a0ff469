"""LSAT, as in AGIEval (Zhong et al., 2023): three sections of the law school admission test.

Sections: `ar` analytical reasoning, `lr` logical reasoning, `rc` reading comprehension. Read
from AGIEval's own JSON Lines (`lsat-ar.jsonl` …: passage, question, options that carry their
`(A)`, gold `label`, `answer` always null), the section taken from the file's name; or from
the hub, where passage, question and options are one `query` and are taken apart again.
Rows that share a passage share a group: `ar` and `rc` have 40 passages each.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from inject.errors import InputError
from inject.examples.datasets.choices import choice_fields, gold_index
from inject.examples.datasets.source import (
    Dataset,
    DatasetSource,
    passage_group,
    place_id,
    placed_rows,
    text_field,
)
from inject.examples.example import Row
from inject.examples.template import letter
from inject.hub.dataset_rows import HubDataset
from inject.reading.rows import PlacedRow
from inject.settings import Settings

Section = Literal["ar", "lr", "rc"]
_SECTIONS: tuple[Section, ...] = ("ar", "lr", "rc")
_HUBS = {section: HubDataset(f"dmayhem93/agieval-lsat-{section}", "test") for section in _SECTIONS}
_LETTER = re.compile(r"^\s*\(([A-Z])\)\s*")
_SECTION = re.compile(r"lsat[-_](ar|lr|rc)", re.IGNORECASE)


class LsatOptions(Settings):
    """Options of `lsat`."""

    sections: Annotated[tuple[Section, ...], Field(min_length=1)] = _SECTIONS
    """Which sections: `ar`, `lr`, `rc`."""


class _Question(NamedTuple):
    passage: str
    question: str
    options: list[str]
    gold: int | None


def lsat_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows; fields passage, question, options (list), answer (the letter),
    answer_letter, answer_text, section (empty where the file's name does not say it).
    """
    wanted = LsatOptions.model_validate(source.options).sections
    for row in _raw_rows(source, wanted):
        found = _SECTION.search(place_id(row))
        section = found[1].lower() if found else ""
        if section and section not in wanted:
            continue
        question = _from_hub(row) if "query" in row.values else _from_file(row)
        choice = choice_fields(question.options, question.gold)
        yield Row(
            fields={
                "passage": question.passage,
                "question": question.question,
                "section": section,
                "answer": choice["answer_letter"],
                **choice,
            },
            source_id=place_id(row),
            group=passage_group(question.passage),
            stratum=section,
        )


def _raw_rows(source: DatasetSource, wanted: tuple[Section, ...]) -> Iterator[PlacedRow]:
    if source.path is not None:
        yield from placed_rows(source, _HUBS["ar"], what="lsat")
        return
    for section in _SECTIONS:
        if section in wanted:
            yield from placed_rows(source, _HUBS[section], what="lsat")


def _from_file(row: PlacedRow) -> _Question:
    options = _options(row, "options")
    labels = [letter(index) for index in range(len(options))]
    return _Question(
        text_field(row, "passage").strip(),
        text_field(row, "question").strip(),
        options,
        gold_index(text_field(row, "label"), labels, where=row.place),
    )


def _from_hub(row: PlacedRow) -> _Question:
    # AGIEval's query is PASSAGE 'Q: ' QUESTION ' Answer Choices: ' OPTIONS '\nA: …'.
    before, choices, _ = text_field(row, "query").rpartition("Answer Choices:")
    passage, question, stem = before.rpartition("Q: ")
    if not choices or not question:
        raise InputError("the query is not in AGIEval's form.", where=row.place)
    options = _options(row, "choices")
    gold = row.values.get("gold")
    index = gold[0] if isinstance(gold, list) and gold else gold
    if index is not None and (not isinstance(index, int) or not 0 <= index < len(options)):
        raise InputError("gold is no index into the choices.", where=row.place)
    return _Question(passage.strip(), stem.strip(), options, index)


def _options(row: PlacedRow, name: str) -> list[str]:
    given: Any = row.values.get(name)
    if not isinstance(given, list) or not given:
        raise InputError(f"{name!r} is no list of options.", where=row.place)
    return [_LETTER.sub("", str(option)).strip() for option in given]


DATASET = Dataset(
    name="lsat",
    summary="LSAT (AGIEval): law school admission questions in three sections.",
    template="{passage}\nQuestion: {question}\n{options:(A)}\nAnswer: ({answer})",
    rows=lsat_rows,
    hub="dmayhem93/agieval-lsat-{ar,lr,rc}",
    hub_parts=tuple(hub.id for hub in _HUBS.values()),
    options=LsatOptions,
)
