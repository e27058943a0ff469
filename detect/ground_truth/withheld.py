"""Texts that are not here: what reads one of them is refused, in place of being given an empty one.

A bundle holds no text of a protected dataset, nothing that a model wrote after one, and of its
token statistics neither ids nor places in the text. A detector that needs none of these scores such
rows as any others; one that touches them gets `TextWithheld`, and is then run on the other rows
alone (`readable`). Held-out rows of protected datasets are withheld alike.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from detect.access import TextWithheld
from detect.evidence import Evidence, ExampleEvidence, HeldOutRows, PrefixedStatistics, ShadowModel
from detect.ground_truth.row_tables import ROW_KINDS

REASON = "the text is protected, and the bundle does not hold it"


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


class _WithheldWords:
    """Before a class of what a model wrote: after a text that is not here."""

    hidden_names: tuple[str, ...] = ()

    def __getattribute__(self, name: str) -> Any:
        if name in type(self).hidden_names:
            raise TextWithheld(f"{name}: {REASON}")
        return super().__getattribute__(name)


_SHOW_TEXT = {how.make: how.texts for how in ROW_KINDS.values() if how.texts}


@cache
def _withheld_kind(kind: Any) -> Any:
    """Return a class of token statistics, or of what a model wrote, whose text is not here."""
    name = f"Withheld{kind.__name__}"
    if kind in _SHOW_TEXT:
        return type(name, (_WithheldWords, kind), {"hidden_names": _SHOW_TEXT[kind]})
    return type(name, (_Withheld, kind), {})


def _hidden(one: object) -> Any:
    """Return the same token statistics, or words of a model, without what shows the text.

    A detector's access may be limited already (`detect.access`); that stays so.
    """
    kind: Any = type(one)
    hidden = object.__new__(_withheld_kind(kind))
    vars(hidden).update(vars(one))
    return hidden


def _hide(rows: Sequence[Any], withheld: npt.NDArray[np.bool_]) -> tuple[Any, ...]:
    return tuple(_hidden(one) if gone else one for one, gone in zip(rows, withheld, strict=True))


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


def guarded(
    evidence: Evidence, withheld: npt.NDArray[np.bool_], held_out: npt.NDArray[np.bool_]
) -> Evidence:
    """Return evidence in which reading a withheld text raises `TextWithheld`.

    Args:
        evidence: as a detector gets it; anything may stand for the withheld texts.
        withheld: which rows are not to be read.
        held_out: which held-out rows are not; as many as there are.
    """
    changed: dict[str, Any] = {}
    if withheld.any():
        changed = _guarded_rows(evidence, withheld)
    if evidence.held_out is not None and held_out.any():
        changed["held_out"] = _guarded_held_out(evidence.held_out, held_out)
    return _as(_PartlyWithheld, replace(evidence, **changed)) if changed else evidence


def readable(
    evidence: Evidence, withheld: npt.NDArray[np.bool_], held_out: npt.NDArray[np.bool_]
) -> Evidence:
    """Return the evidence on the rows whose texts are here, held-out rows alike."""
    found = evidence.take(np.flatnonzero(~withheld).tolist()) if withheld.any() else evidence
    if evidence.held_out is None or not held_out.any():
        return found
    rows = np.flatnonzero(~held_out).tolist()

    def taken(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(values[row] for row in rows)

    every = replace(
        evidence.held_out,
        datasets=taken(evidence.held_out.datasets),
        texts=taken(evidence.held_out.texts),
        **_held_out_statistics(evidence.held_out, taken),
    )
    return replace(found, held_out=every)


def _guarded_rows(evidence: Evidence, withheld: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return the fields that are by row, those of withheld rows hidden."""
    changed: dict[str, Any] = {"texts": WithheldTexts(evidence.texts, withheld)}
    for name in ("statistics", "tuned", "continuations", "guesses"):
        if found := getattr(evidence, name):
            changed[name] = {key: _hide(rows, withheld) for key, rows in found.items()}
    if evidence.reference is not None:
        changed["reference"] = _hide(evidence.reference, withheld)
    if evidence.prefixed:
        changed["prefixed"] = {
            name: PrefixedStatistics(statistics=_hide(one.statistics, withheld), notes=one.notes)
            for name, one in evidence.prefixed.items()
        }
    if evidence.shadows is not None:
        changed["shadows"] = tuple(
            ShadowModel(statistics=_hide(one.statistics, withheld), inside=one.inside)
            for one in evidence.shadows
        )
    return changed


def _guarded_held_out(found: HeldOutRows, withheld: npt.NDArray[np.bool_]) -> HeldOutRows:
    return replace(
        found,
        texts=WithheldTexts(found.texts, withheld),
        **_held_out_statistics(found, lambda rows: _hide(rows, withheld)),
    )


def _held_out_statistics(
    found: HeldOutRows, change: Callable[[Sequence[Any]], Sequence[Any]]
) -> dict[str, Any]:
    """Return the token statistics of held-out rows under each model, changed."""
    return {
        "statistics": change(found.statistics),
        "reference": None if found.reference is None else change(found.reference),
        "shadows": None if found.shadows is None else [change(one) for one in found.shadows],
    }


def _as(kind: type[Any], value: Any) -> Any:
    """Return a dataclass's object as one of a class that inherits from it."""
    given: Mapping[str, Any] = {one.name: getattr(value, one.name) for one in fields(value)}
    return kind(**given)
