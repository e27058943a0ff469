"""Generated facts about invented people, towns, works and gatherings; needs no file.

Row i of seed s is a pure function of (s, i), drawn from a keyed generator of its own: more rows
move no other, and rows are independent and identically distributed, so that members and
non-members are exchangeable. Room for far more than 10**6 distinct rows. Each has three
paraphrases with the same facts and other sentences. Some 3,000 rows a second and core, their
paraphrases included.
"""

from collections.abc import Iterator
from itertools import count
from typing import Annotated, Literal

from pydantic import Field, field_validator

from inject.examples.datasets.fiction.draws import Draws
from inject.examples.datasets.fiction.forms import FORMS
from inject.examples.datasets.source import Dataset, DatasetSource
from inject.examples.example import Row
from inject.settings import Settings

Form = Literal["biography", "passage", "choice", "question"]
_FORMS: tuple[Form, ...] = ("biography", "passage", "choice", "question")
# Set in the item of the draw that chooses a row's form, never in that of its content.
_FORM_OF = 1 << 63


class FictionalOptions(Settings):
    """Options of the generated facts."""

    forms: Annotated[tuple[Form, ...], Field(min_length=1)] = _FORMS
    """The forms to draw from; each row takes one of them, all equally likely."""
    first: Annotated[int, Field(ge=0, lt=2**60)] = 0
    """Number of the first row; a second `fictional` of an experiment needs one behind those of the
    other, since rows follow from seed and number."""

    @field_validator("forms")
    @classmethod
    def _each_once(cls, forms: tuple[Form, ...]) -> tuple[Form, ...]:
        if len(set(forms)) < len(forms):
            raise ValueError("name each form once")
        return forms


def fictional_row(seed: int, index: int, forms: tuple[Form, ...] = _FORMS) -> Row:
    """Return row `index` of `seed`, 0 <= index < 2**61; its stratum is its form.

    Rows of different forms share no draws, even where seed and index are the same: a biography
    that is a member gives nothing away about a question that is not.
    """
    form = Draws(seed, _FORM_OF | index).pick(forms)
    fields, *paraphrases = FORMS[form](Draws(seed, index * len(_FORMS) + _FORMS.index(form)))
    return Row(
        fields=fields,
        source_id=f"fictional:{index}",
        stratum=form,
        paraphrases=tuple(paraphrases),
    )


def fictional_rows(source: DatasetSource) -> Iterator[Row]:
    """Yield rows from the first on, up to the limit, or without end."""
    options = FictionalOptions.model_validate(source.options)
    for number in count() if source.limit is None else range(source.limit):
        yield fictional_row(source.seed, options.first + number, options.forms)


DATASET = Dataset(
    name="fictional",
    summary="Generated facts about invented people, towns, works and gatherings; no file needed.",
    template="{passage}\nQuestion: {question}\nAnswer: {answer}",
    alternatives=(
        "Question: {question}\n{options}\nAnswer: {answer}",
        "Question: {question}\nAnswer: {answer}",
        "{text}",
    ),
    rows=fictional_rows,
    paraphrases=True,
    endless=True,
    seeded=True,
    options=FictionalOptions,
)
