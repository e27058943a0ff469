"""Calls a detector so that it can harm neither the others nor the run.

Detectors get read-only views of the evidence, which they share, and of the target only what their
level of access allows (`detect.access`); labels go to those alone that need them. Whatever one
raises, an exit included, and whatever it returns that is no column of scores for every setting,
becomes an error that names the detector and its file. Ctrl-C passes. Cost: microseconds a row.
"""

import inspect
import math
import operator
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import numpy as np

from detect.access import AccessRefusedError, allowed_evidence
from detect.detector import Column, Detector, Score
from detect.evidence import Evidence
from detect.needs import Sides
from inject.errors import InputError

T = TypeVar("T")

_EXPECTED = "a list with one Column for each setting, of one Score a row"


def read_only(value: T) -> T:
    """Return the same evidence as tuples, read-only mappings and read-only views of its arrays.

    Any part of evidence will do; what is read-only already is returned as it is.
    """
    frozen: T = _frozen(value)
    return frozen


def score_guarded(
    detector: Detector, evidence: Evidence, settings: Sequence[Any], *, rows: int
) -> list[Column]:
    """Return a detector's columns, one a setting.

    Args:
        detector: which one.
        evidence: of `read_only`.
        settings: its parameters; what one of them may read, it may read for all.
        rows: how many scores each column must have.

    Raises:
        InputError: it raised, exited, read what its level of access does not allow, or returned
            anything but `rows` scores a setting; names the detector and its file.
        KeyboardInterrupt: as it came.
    """
    where = f"detector {detector.name} ({_place(detector)})"
    level = max((detector.access_with(one) for one in settings), default=detector.access)
    given = allowed_evidence(evidence, level)
    if not any(isinstance(need, Sides) for one in settings for need in detector.needs_with(one)):
        given = replace(given, members=None)
    try:
        columns = detector.score(given, settings)
    except KeyboardInterrupt:
        raise
    except AccessRefusedError as error:
        raise InputError(
            f"it reads {error.what}, which takes access to the target's {error.needed.label}; "
            f"its own level is {level.label!r}",
            where=where,
            hint=f"Declare `access=Access.{error.needed.name}`, or read something else.",
        ) from error
    # A plug-in's exit must not end the run in silence, so not only `Exception` is caught.
    except BaseException as error:
        if isinstance(error, InputError):
            raise
        _raised(error, where)
    _check(columns, where, settings=len(settings), rows=rows)
    return [
        Column(
            [one if _is_plain(one) else Score(float(one[0]), one[1]) for one in scores],
            tuple(notes),
        )
        for scores, notes in columns
    ]


def _frozen(value: Any) -> Any:
    """Return a value that cannot be changed, of whatever evidence is made of."""
    if isinstance(value, np.ndarray):
        if not value.flags.writeable:
            return value
        view = value.view()
        view.flags.writeable = False
        return view
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, Mapping):
        found = {key: _frozen(item) for key, item in value.items()}
        same = isinstance(value, MappingProxyType) and all(
            map(operator.is_, found.values(), value.values())
        )
        return value if same else MappingProxyType(found)
    if isinstance(value, Sequence):
        items = tuple(_frozen(item) for item in value)
        same = isinstance(value, tuple) and all(map(operator.is_, items, value))
        return value if same else items
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            field.name: frozen
            for field in fields(value)
            if (frozen := _frozen(given := getattr(value, field.name))) is not given
        }
        return replace(value, **changed) if changed else value
    return value


def _place(detector: Detector) -> str:
    function = inspect.unwrap(detector.score)
    try:
        file = inspect.getsourcefile(function)
    except TypeError:
        file = None
    return file or f"module {getattr(function, '__module__', 'unknown')}"


def _raised(error: BaseException, where: str) -> NoReturn:
    message = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {message[0]}" if message else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename in where]
    place = (own or frames)[-1]
    action = "tried to end the program" if isinstance(error, SystemExit) else "stopped"
    hint = "Correct it, or leave it out of `detectors`."
    if isinstance(error, ValueError) and "read-only" in str(error):
        hint = "Detectors share their arrays: change a copy (`array.copy()`). " + hint
    raise InputError(
        f"it {action} at {Path(place.filename).name}:{place.lineno} with {what}",
        where=where,
        hint=hint,
    ) from error


def _check(columns: Any, where: str, *, settings: int, rows: int) -> None:
    def wrong(problem: str) -> InputError:
        return InputError(f"it returned {problem}", where=where, allowed=_EXPECTED)

    if columns is None:
        raise wrong("nothing")
    if not isinstance(columns, list | tuple) or isinstance(columns, Column):
        raise wrong(f"a {type(columns).__name__}")
    if len(columns) != settings:
        raise wrong(f"{len(columns)} columns for {settings} settings")
    for number, column in enumerate(columns, start=1):
        if not isinstance(column, Column) or not isinstance(column.scores, list | tuple):
            raise wrong(f"a {type(column).__name__} as column {number}")
        if len(column.scores) != rows:
            raise wrong(f"{len(column.scores)} scores for {rows} rows (column {number})")
        if isinstance(column.notes, str) or not all(isinstance(one, str) for one in column.notes):
            raise wrong(f"notes that are no list of texts (column {number})")
        for row, score in enumerate(column.scores, start=1):
            if not _is_plain(score) and (problem := _wrong_score(score)):
                raise wrong(f"{problem} for row {row} (column {number})")


def _is_plain(score: Any) -> bool:
    """Return whether a score needs no look: a float that is a number, without a reason.

    Most are, and there are as many as rows times settings.
    """
    return (
        type(score) is Score
        and type(score[0]) is float
        and score[1] is None
        and score[0] == score[0]
    )


def _wrong_score(score: Any) -> str | None:
    if not isinstance(score, Score):
        return "nothing" if score is None else f"a {type(score).__name__}"
    value, reason = score
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        return "no value" if value is None else f"a value that is a {type(value).__name__}"
    if reason is not None and not isinstance(reason, str):
        return f"a reason that is a {type(reason).__name__}"
    if math.isnan(value) and reason == "":
        return "NaN with an empty reason"
    return None
