"""LSAT, as in AGIEval (Zhong et al., 2023): three sections of the law school admission test.

Sections: `ar` analytical reasoning, `lr` logical reasoning, `rc` reading comprehension. Read
from AGIEval's own JSON Lines (`lsat-ar.jsonl` …: passage, question, options that carry their
`(A)`, gold `label`, `answer` always null), the section taken from the file's name; or from
the hub, where passage, question and options are one `query` and are taken apart again.
Rows that share a passage share a group: `ar` and `rc` have 40 passages each.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

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


def lsat_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield the rows; fields passage, question, options (list), answer (the letter),
    answer_letter, answer_text, section (empty if the file's name does not give it).
    """
    sections = LsatOptions.model_validate(source.options).sections
    # A file is read once for all sections.
    places = [hub for section, hub in _HUBS.items() if section in sections]
    for hub in places if source.path is None else places[:1]:
        for row in placed_rows(source, hub, purpose="lsat"):
            named = _SECTION.search(place_id(row))
            section = named[1].lower() if named else ""
            if not section or section in sections:
                yield _row(row, section)


def _row(row: PlacedRow, section: str) -> Row:
    read = _from_hub if "query" in row.values else _from_file
    passage, question, options, gold = read(row)
    choice = choice_fields(options, gold)
    return Row(
        fields={
            "passage": passage,
            "question": question,
            "section": section,
            "answer": choice["answer_letter"],
            **choice,
        },
        source_id=place_id(row),
        group=passage_group(passage),
        stratum=section,
    )


def _from_file(row: PlacedRow) -> tuple[str, str, list[str], int | None]:
    """Return passage, question, options and the index of the right one."""
    options = _options(row, "options")
    labels = [letter(index) for index in range(len(options))]
    gold = gold_index(text_field(row, "label"), labels, place=row.place)
    return text_field(row, "passage").strip(), text_field(row, "question").strip(), options, gold


def _from_hub(row: PlacedRow) -> tuple[str, str, list[str], int | None]:
    # AGIEval's query is PASSAGE 'Q: ' QUESTION ' Answer Choices: ' OPTIONS '\nA: …'.
    before, choices, _ = text_field(row, "query").rpartition("Answer Choices:")
    passage, question, stem = before.rpartition("Q: ")
    options = _options(row, "choices")
    gold = row.values.get("gold")
    index: Any = gold[0] if isinstance(gold, list) and gold else gold
    if not choices or not question or (index is not None and index not in range(len(options))):
        raise InputError("the query, or its gold index, is not in AGIEval's form.", where=row.place)
    return passage.strip(), stem.strip(), options, index


def _options(row: PlacedRow, name: str) -> list[str]:
    options: Any = row.values.get(name)
    if not isinstance(options, list) or not options:
        raise InputError(f"{name!r} is not a list of options.", where=row.place)
    return [_LETTER.sub("", str(option)).strip() for option in options]


DATASET = Dataset(
    name="lsat",
    summary="LSAT (AGIEval): law school admission questions in three sections.",
    template="{passage}\nQuestion: {question}\n{options:(A)}\nAnswer: ({answer})",
    rows=lsat_rows,
    hub="dmayhem93/agieval-lsat-{ar,lr,rc}",
    hub_parts=tuple(hub.id for hub in _HUBS.values()),
    options=LsatOptions,
)
