"""Texts that are not here: what reads one of them is refused, in place of being given an empty one.

A bundle holds no text of a protected dataset, and of its token statistics neither ids nor places in
the text. A detector that needs none of these scores such rows as any others; one that touches them
gets `TextWithheld`, and is then run on the other rows alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from detect.evidence import Evidence, ExampleEvidence, ShadowModel
from detect.token_statistics import TokenStatistics
from inject.errors import InputError

REASON = "the text is protected, and the bundle does not hold it"


class TextWithheld(InputError):
    """A detector asked for a text, or for what would show it, that is not here."""


def shows_text(name: str, kind: np.dtype[Any]) -> bool:
    """Return whether a column of token statistics shows which tokens the text has.

    Ids and places do. Numbers and ranks do only to somebody who has the model, too.
    """
    return not (np.issubdtype(kind, np.floating) or name == "rank")


class WithheldTexts(Sequence[str]):
    """Texts of which some cannot be read."""

    def __init__(self, texts: Sequence[str], withheld: npt.NDArray[np.bool_]) -> None:
        self._texts = texts
        self._withheld = withheld

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[str]: ...
    def __getitem__(self, row: int | slice) -> str | Sequence[str]:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        if self._withheld[row]:
            raise TextWithheld(f"row {row}: {REASON}")
        return self._texts[row]


class _Withheld:
    """Before a class of token statistics: those of a text that is not here."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if isinstance(value, np.ndarray) and shows_text(name, value.dtype):
            raise TextWithheld(f"{name}: {REASON}")
        return value

    def __len__(self) -> int:
        # Token statistics count their ids.
        return len(self.log_probability)


@cache
def _withheld_kind(kind: Any) -> Any:
    """Return a class of token statistics whose text cannot be read."""
    return type(f"Withheld{kind.__name__}", (_Withheld, kind), {})


def _hidden(one: TokenStatistics) -> TokenStatistics:
    """Return the same statistics, without what shows the text.

    A detector's access may be limited already (`detect.access`); that stays so.
    """
    kind: Any = type(one)
    hidden: TokenStatistics = object.__new__(_withheld_kind(kind))
    vars(hidden).update(vars(one))
    return hidden


class _WithheldExample(ExampleEvidence):
    """Evidence on one example whose text is not here."""

    def __getattribute__(self, name: str) -> Any:
        if name == "text":
            raise TextWithheld(REASON)
        return super().__getattribute__(name)


class _PartlyWithheld(Evidence):
    """Evidence of which some texts cannot be read."""

    def examples(self) -> Iterator[ExampleEvidence]:
        texts = self.texts
        if not isinstance(texts, WithheldTexts):
            yield from super().examples()
            return
        plain = {one.name: getattr(self, one.name) for one in fields(Evidence)}
        readable = Evidence(**{**plain, "texts": texts._texts})
        for example, hidden in zip(readable.examples(), texts._withheld, strict=True):
            if hidden:
                yield _as(_WithheldExample, example)
            else:
                yield example


def guarded(evidence: Evidence, withheld: npt.NDArray[np.bool_]) -> Evidence:
    """Return evidence in which reading a withheld text raises `TextWithheld`.

    Args:
        evidence: as a detector gets it; anything may stand for the withheld texts.
        withheld: which rows are not to be read.
    """
    if not withheld.any():
        return evidence

    def hide(rows: Sequence[TokenStatistics]) -> Sequence[TokenStatistics]:
        return tuple(
            _hidden(one) if hidden else one for one, hidden in zip(rows, withheld, strict=True)
        )

    changed: dict[str, Any] = {"texts": WithheldTexts(evidence.texts, withheld)}
    if evidence.statistics:
        changed["statistics"] = {name: hide(rows) for name, rows in evidence.statistics.items()}
    if evidence.reference is not None:
        changed["reference"] = hide(evidence.reference)
    if evidence.shadows is not None:
        changed["shadows"] = tuple(
            ShadowModel(statistics=hide(one.statistics), inside=one.inside)
            for one in evidence.shadows
        )
    return _as(_PartlyWithheld, replace(evidence, **changed))


def _as(kind: type[Any], value: Any) -> Any:
    """Return a dataclass's object as one of a class that inherits from it."""
    given: Mapping[str, Any] = {one.name: getattr(value, one.name) for one in fields(value)}
    return kind(**given)
