"""Calls a detector so that an error in it affects neither the others nor the run.

Detectors get read-only views of the evidence, which they share, and of the target only what their
level of access allows (`detect.access`); only those that need labels get them. A row on which a
detector raises, exits, or returns something other than a score has a missing score with a reason;
if it fails on all rows, its columns are empty. Reasons are stored and shown, and the message of an
exception may quote the detector's input: if that may contain a protected text, a reason has only
the exception's type, file and line. Cost: microseconds per row; a detector that fails is called
once more for each row, to find the rows on which it fails.
"""

import inspect
import math
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from detect.access import Access, AccessRefusedError, allowed_evidence, rebuilt
from detect.detector import Column, Detector, NoScores, Score, described, exact_number
from detect.evidence import Evidence
from detect.evidence.membership import Sides
from inject.errors import InputError

T = TypeVar("T")

NO_SCORE = "NO SCORE of"
"""Begins the note on rows that a detector failed on."""
_MESSAGE = 200
"""Maximum characters kept of an error's message: it may contain a whole text."""
_EXPECTED = "a list with one Column for each setting, of one Score per row"


def read_only(value: T) -> T:
    """Return the same evidence as tuples, read-only mappings and read-only views of its arrays.

    Accepts any part of evidence; read-only values are returned as they are.
    """
    return rebuilt(value, _read_only_view)


def _read_only_view(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value


class GuardedScores(NamedTuple):
    """A detector's columns, one per setting, and its failures."""

    columns: list[Column]
    failed: frozenset[int]
    """Rows without a score because the detector failed on them."""
    failure: InputError | None
    """The error; names the detector and its file."""


def score_guarded(
    detector: Detector,
    evidence: Evidence,
    settings: Sequence[Any],
    *,
    rows: int,
    protected: bool = True,
) -> GuardedScores:
    """Return a detector's columns.

    A row on which it fails when called separately (it raises, exits, exceeds its level of access,
    or returns no score) has a missing score; the others are then scored together.

    Args:
        detector: the detector to call.
        evidence: result of `read_only`.
        settings: its parameters; access allowed for one of them is allowed for all.
        rows: number of rows.
        protected: the evidence may contain a protected text, so messages of exceptions are
            discarded.

    Raises:
        InputError: out of memory, which stored scores should not report as a property of a row.
    """
    level = max((detector.access_with(setting) for setting in settings), default=detector.access)
    allowed = allowed_evidence(evidence, level)
    if not any(
        isinstance(need, Sides) for setting in settings for need in detector.needs_with(setting)
    ):
        allowed = replace(allowed, members=None)

    def scored(chosen: list[int]) -> list[Column] | InputError:
        part = allowed if len(chosen) == rows else allowed.take(chosen)
        return _call(detector, part, settings, level, rows=len(chosen), protected=protected)

    all_rows = list(range(rows))
    whole = scored(all_rows)
    if not isinstance(whole, InputError):
        return GuardedScores(whole, frozenset(), None)
    failures = {row: result for row in all_rows if isinstance(result := scored([row]), InputError)}
    others = [row for row in all_rows if row not in failures]
    columns = scored(others) if failures and others else whole
    if isinstance(columns, InputError):
        failures, others, columns = dict.fromkeys(all_rows, whole), [], [Column([])] * len(settings)
    reasons = {row: f"{detector.name}: {error.problem}" for row, error in failures.items()}
    failed_rows = f"{len(failures)} of {rows} rows" if others else f"ANY of the {rows} rows"
    note = f"{NO_SCORE} {failed_rows}, where it failed: {whole}"
    return GuardedScores(
        [_with_missing(column, others, reasons, note) for column in columns],
        frozenset(failures),
        whole,
    )


def _with_missing(
    column: Column, others: Sequence[int], reasons: Mapping[int, str], note: str
) -> Column:
    """Return the scores of all rows, from some scores and the reasons of the other rows."""
    scores = dict(zip(others, column.scores, strict=True))
    scores |= {row: Score(math.nan, reason) for row, reason in reasons.items()}
    return Column([scores[row] for row in sorted(scores)], (*column.notes, note))


def _call(
    detector: Detector,
    evidence: Evidence,
    settings: Sequence[Any],
    level: Access,
    *,
    rows: int,
    protected: bool,
) -> list[Column] | InputError:
    """Return a detector's result if it has `rows` scores per setting, else an error.

    Raises:
        As `score_guarded`.
    """
    location = f"detector {detector.name} ({_place(detector)})"
    try:
        return _check_columns(detector.score(evidence, settings), len(settings), rows)
    except AccessRefusedError as error:
        return InputError(
            f"it reads {error.what}, which requires access to the target's {error.needed.label}; "
            f"its own level is {level.label!r}",
            where=location,
            hint=f"Declare `access=Access.{error.needed.name}`, or read something else.",
        )
    except NoScores as error:
        return InputError(error.problem, where=location, allowed=error.allowed)
    # A plug-in's exit must not end the run in silence.
    except (Exception, SystemExit) as error:
        if isinstance(error, InputError) and not protected:
            return error
        failure = _error_of_exception(error, location, protected=protected)
        if isinstance(error, MemoryError):
            # Chained exceptions are shown with their messages.
            raise failure from (None if protected else error)
        return failure


def _place(detector: Detector) -> str:
    function = inspect.unwrap(detector.score)
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    return file or f"module {getattr(function, '__module__', 'unknown')}"


def _error_of_exception(error: BaseException, location: str, *, protected: bool) -> InputError:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename in location]
    place = (own or frames)[-1]
    action = "tried to end the program" if isinstance(error, SystemExit) else "stopped"
    hint = "Correct it, or leave it out of `detectors`."
    if isinstance(error, ValueError) and "read-only" in str(error):
        hint = "Detectors share their arrays: change a copy (`array.copy()`). " + hint
    return InputError(
        f"it {action} at {Path(place.filename).name}:{place.lineno} with "
        f"{safe_message(error, protected=protected)}",
        where=location,
        hint=hint,
    )


def safe_message(error: BaseException, *, protected: bool) -> str:
    """Return an exception's type and, if no text is protected, its message's first line."""
    name = type(error).__name__
    if protected:
        return f"{name} (its message is left out: it may quote a protected text)"
    message = str(error).strip().splitlines()
    return f"{name}: {message[0][:_MESSAGE]}" if message else name


def _check_columns(columns: Any, settings: int, rows: int) -> list[Column]:
    """Return columns as plain floats and reasons; raise `NoScores` for anything else."""

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
        if isinstance(column.notes, str) or not all(isinstance(note, str) for note in column.notes):
            raise wrong(f"notes that are not a list of texts (column {number})")
        scores = [_plain_score(score) for score in column.scores]
        for row, score in enumerate(scores, start=1):
            if isinstance(score, str):
                # The caller names a row that is scored separately.
                raise wrong(f"{score} for row {row} (column {number})" if rows > 1 else score)
        checked.append(Column(cast(list[Score], scores), tuple(column.notes)))
    return checked


def _plain_score(score: Any) -> Score | str:
    """Return a score as a float and a reason, or the problem in words."""
    # Most are a float without a reason, and their number is rows times settings.
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
