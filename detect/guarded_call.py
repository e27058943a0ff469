"""Calls a detector so that a mistake in it harms neither the others nor the run.

Detectors get read-only views of the evidence, which they share, and of the target only what their
level of access allows (`detect.access`); labels go to those alone that need them. A row on which
one raises, exits, or returns what is no score, is a missing score with its reason; where it fails
on all rows, its columns are empty. Reasons are stored and shown, and the message of an exception
may quote what the detector was given: where that may hold a protected text, a reason has the
exception's type, file and line alone. Cost: microseconds a row; where a detector fails, it is
called once more for each row, to find those that it fails on.
"""

import inspect
import math
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from detect.access import AccessRefusedError, allowed_evidence, rebuilt
from detect.detector import Column, Detector, NoScores, Score, described, exact_number
from detect.evidence import Evidence
from detect.evidence.membership import Sides
from inject.errors import InputError

T = TypeVar("T")

NO_SCORE = "NO SCORE of"
"""Begins the note on rows that a detector failed on."""
_MESSAGE = 200
"""Characters of an error's message that are kept: it may hold a whole text."""
_EXPECTED = "a list with one Column for each setting, of one Score a row"


def read_only(value: T) -> T:
    """Return the same evidence as tuples, read-only mappings and read-only views of its arrays.

    Any part of evidence will do; what is read-only already is returned as it is.
    """
    frozen: T = rebuilt(value, _read_only_view)
    return frozen


def _read_only_view(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value


class GuardedScores(NamedTuple):
    """A detector's columns, one a setting, and where it failed."""

    columns: list[Column]
    failed: frozenset[int]
    """Rows that have no score since it failed on them."""
    failure: InputError | None
    """What happened; names the detector and its file."""


def score_guarded(
    detector: Detector,
    evidence: Evidence,
    settings: Sequence[Any],
    *,
    rows: int,
    protected: bool = True,
) -> GuardedScores:
    """Return a detector's columns.

    A row that it cannot be called for alone (it raises, exits, reads what its level of access does
    not allow, or returns no score) is a missing score; the others are then scored together.

    Args:
        detector: which one.
        evidence: of `read_only`.
        settings: its parameters; what one of them may read, it may read for all.
        rows: how many there are.
        protected: the evidence may hold a protected text, so no message of an exception is kept.

    Raises:
        InputError: it ran out of memory: nothing that scores which are kept should say of a row.
    """
    level = max((detector.access_with(one) for one in settings), default=detector.access)
    allowed = allowed_evidence(evidence, level)
    if not any(isinstance(need, Sides) for one in settings for need in detector.needs_with(one)):
        allowed = replace(allowed, members=None)

    def scored(chosen: list[int]) -> list[Column] | InputError:
        part = allowed if len(chosen) == rows else allowed.take(chosen)
        return _called(detector, part, settings, rows=len(chosen), protected=protected)

    every = list(range(rows))
    whole = scored(every)
    if not isinstance(whole, InputError):
        return GuardedScores(whole, frozenset(), None)
    alone = {row: result for row in every if isinstance(result := scored([row]), InputError)}
    others = [row for row in every if row not in alone]
    columns = scored(others) if alone and others else whole
    if isinstance(columns, InputError):
        alone, others, columns = dict.fromkeys(every, whole), [], [Column([])] * len(settings)
    reasons = {row: f"{detector.name}: {error.problem}" for row, error in alone.items()}
    gone = f"{len(alone)} of {rows} rows" if others else f"ANY of the {rows} rows"
    note = f"{NO_SCORE} {gone}, where it failed: {whole}"
    return GuardedScores(
        [_with_missing(column, others, reasons, note) for column in columns],
        frozenset(alone),
        whole,
    )


def _with_missing(
    column: Column, others: Sequence[int], reasons: Mapping[int, str], note: str
) -> Column:
    """Return the scores of all rows, from those of some and the reasons of the rest."""
    scores = dict(zip(others, column.scores, strict=True))
    scores |= {row: Score(math.nan, reason) for row, reason in reasons.items()}
    return Column([scores[row] for row in sorted(scores)], (*column.notes, note))


def _called(
    detector: Detector,
    evidence: Evidence,
    settings: Sequence[Any],
    *,
    rows: int,
    protected: bool,
) -> list[Column] | InputError:
    """Return what a detector returned, if that is `rows` scores a setting, else what is wrong.

    Raises:
        As `score_guarded`.
    """
    where = f"detector {detector.name} ({_place(detector)})"
    try:
        return _checked(detector.score(evidence, settings), len(settings), rows)
    except AccessRefusedError as error:
        level = max((detector.access_with(one) for one in settings), default=detector.access)
        return InputError(
            f"it reads {error.what}, which requires access to the target's {error.needed.label}; "
            f"its own level is {level.label!r}",
            where=where,
            hint=f"Declare `access=Access.{error.needed.name}`, or read something else.",
        )
    except NoScores as error:
        return InputError(error.problem, where=where, allowed=error.allowed)
    # A plug-in's exit must not end the run in silence.
    except (Exception, SystemExit) as error:
        if isinstance(error, InputError) and not protected:
            return error
        failure = _raised(error, where, protected=protected)
        if isinstance(error, MemoryError):
            # What is chained is shown with its message.
            raise failure from (None if protected else error)
        return failure


def _place(detector: Detector) -> str:
    function = inspect.unwrap(detector.score)
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    return file or f"module {getattr(function, '__module__', 'unknown')}"


def _raised(error: BaseException, where: str, *, protected: bool) -> InputError:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename in where]
    place = (own or frames)[-1]
    action = "tried to end the program" if isinstance(error, SystemExit) else "stopped"
    hint = "Correct it, or leave it out of `detectors`."
    if isinstance(error, ValueError) and "read-only" in str(error):
        hint = "Detectors share their arrays: change a copy (`array.copy()`). " + hint
    return InputError(
        f"it {action} at {Path(place.filename).name}:{place.lineno} with "
        f"{in_words(error, protected=protected)}",
        where=where,
        hint=hint,
    )


def in_words(error: BaseException, *, protected: bool) -> str:
    """Return an exception's type and, where no text is protected, its message's first line."""
    name = type(error).__name__
    if protected:
        return f"{name} (its message is left out: it may quote a protected text)"
    message = str(error).strip().splitlines()
    return f"{name}: {message[0][:_MESSAGE]}" if message else name


def _checked(columns: Any, settings: int, rows: int) -> list[Column]:
    """Return columns as plain floats and reasons; raises `NoScores` for what is none."""

    def wrong(problem: str) -> NoScores:
        return NoScores(f"it returned {problem}", allowed=_EXPECTED)

    if not isinstance(columns, list | tuple) or isinstance(columns, Column):
        raise wrong(described(columns))
    if len(columns) != settings:
        raise wrong(f"{len(columns)} columns for {settings} settings")
    checked = []
    for number, column in enumerate(columns, start=1):
        if not isinstance(column, Column) or not isinstance(column.scores, list | tuple):
            raise wrong(f"{described(column)} as column {number}")
        if len(column.scores) != rows:
            raise wrong(f"{len(column.scores)} scores for {rows} rows (column {number})")
        if isinstance(column.notes, str) or not all(isinstance(one, str) for one in column.notes):
            raise wrong(f"notes that are no list of texts (column {number})")
        scores = [_plain(score) for score in column.scores]
        for row, score in enumerate(scores, start=1):
            if isinstance(score, str):
                # A row that is called alone is named by who called.
                raise wrong(f"{score} for row {row} (column {number})" if rows > 1 else score)
        checked.append(Column(cast(list[Score], scores), tuple(column.notes)))
    return checked


def _plain(score: Any) -> Score | str:
    """Return a score as a float and a reason, or what is wrong with it."""
    # Most are a float and no reason, and there are as many as rows times settings.
    if (
        type(score) is Score
        and type(score[0]) is float
        and score[1] is None
        and score[0] == score[0]
    ):
        return score
    if not isinstance(score, Score):
        return described(score)
    value, reason = score
    number = exact_number(value)
    if number is None:
        return "no value" if value is None else f"a value that is {described(value)}"
    if reason is not None and not isinstance(reason, str):
        return f"a reason that is a {type(reason).__name__}"
    if math.isnan(number) and reason == "":
        return "NaN with an empty reason"
    return Score(number, reason)
