"""Correct a benchmark's accuracy for contamination from Python, as `spikein correct` does."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

from analysis.correction.user_file import (
    IN_MEMORY,
    INTERVAL,
    CorrectedScore,
    check_above_chance,
    correct_items,
    read_items,
)
from inject.errors import InputError
from spikein.store.filesystem import AnyPath


class Correction(NamedTuple):
    """The result of `correct`."""

    estimates: tuple[CorrectedScore, ...]
    """The estimates without scores, then those of each column of scores."""
    rows: Mapping[str, int]
    """Numbers of corrected rows, of known members, of known non-members, and of rows left out."""
    interval: str
    """The kind of the intervals."""
    unused_columns: tuple[str, ...]
    """Columns that no estimate uses."""


def correct(
    answers: AnyPath | Mapping[str, Sequence[object]],
    *,
    scores: str | Sequence[str] = "score",
    options: int | None = None,
) -> Correction:
    """Estimate what a benchmark's accuracy would have been without contamination.

    Args:
        answers: a file (CSV, TSV, JSON Lines, JSON or Parquet), a data frame, or columns by name:
            `correct`, `member` (None if unknown: corrected), scores, and optionally `group` and
            `clean_probability`; see docs/score-correction.md.
        scores: columns of scores, a list or separated by commas; higher: more likely a member.
        options: answer options of each question; None does not compare with chance.

    Returns:
        The estimates with intervals, and which rows they are about.

    Raises:
        InputError: for a missing column, a value that is not allowed, fewer than ten known members,
            known non-members or other rows, or an accuracy within noise of 1 / `options`.

    Example:
        ```python
        import spikein

        corrected = spikein.correct("answers.csv", scores=["min_k", "zlib"], options=4)
        for estimate in corrected.estimates:
            print(estimate.estimator, estimate.scores, estimate.accuracy.text())
        ```
    """
    names = scores.split(",") if isinstance(scores, str) else scores
    columns = list(dict.fromkeys(name.strip() for name in names if name.strip()))
    source = _source(answers)
    items = read_items(source, columns)
    if options is not None:
        check_above_chance(items, options, source if isinstance(source, str) else IN_MEMORY)
    return Correction(tuple(correct_items(items)), items.numbers, INTERVAL, items.unused)


def _source(answers: Any) -> str | Mapping[str, Sequence[object]]:
    """Return the path of a file, or columns by name.

    Raises:
        InputError: for anything else.
    """
    if isinstance(answers, Mapping):
        return answers
    if isinstance(answers, (str, PathLike)):
        return str(answers)
    if (names := getattr(answers, "columns", None)) is not None:
        return {str(name): answers[name] for name in names}
    raise InputError(
        f"answers of the type {type(answers).__name__}",
        where="answers",
        allowed="the path of a file, a data frame, or columns by name",
    )
