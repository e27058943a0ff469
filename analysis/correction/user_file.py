"""Score correction of a user's own answers: rows in, estimates with intervals out.

Rows of unknown membership are corrected; those of known membership calibrate, so the two are
disjoint, and an unknown row of a group that has a known one is left out. Intervals are percentile
bootstrap (Efron 1979): groups are drawn whole, those of the corrected rows, of known members and of
known non-members apart, and every replicate is calibrated again. Without a clean model's
probability of a right answer, it is the accuracy of the known non-members. Cost: 2,000
replicates of 1,000 rows take 1.3 s per column of scores.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import inf, isnan, nan
from sys import float_info
from typing import NamedTuple

import numpy as np

from analysis.correction import estimators
from analysis.correction.calibration import fit_platt, log_odds
from analysis.correction.draws import resampled_counts
from analysis.decisions.flagged import clustered_share
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import Counts, Floats, Mask, pack_groups
from inject import keyed
from inject.errors import InputError, did_you_mean
from inject.reading.rows import PlacedRow, read_rows

REPLICATES = 2000
CONFIDENCE = 0.95
INTERVAL = f"{CONFIDENCE:.0%} percentile bootstrap, {REPLICATES:,} replicates, groups whole"
LEAST = 10
"""Known members, known non-members and corrected rows at least."""
IN_MEMORY = "answers"
"""The place of columns in memory, in messages."""
CORRECT, MEMBER, GROUP, CLEAN = "correct", "member", "group", "clean_probability"
_UNDEFINED = 0.05
"""If a larger share of the replicates has no estimate, the interval is omitted."""
_CHUNK = 200
_MARK = f"Column {MEMBER!r} has member, non-member, or nothing for a row that is corrected."


class UserItems(NamedTuple):
    """The rows of a file or of columns in memory, [n] each."""

    right: Floats
    member: Mask
    """Which rows are known members."""
    nonmember: Mask
    """Which rows are known non-members."""
    corrected: Mask
    group: Counts
    clean: Floats
    """A clean model's probability of the right answer; NaN if it is missing."""
    scores: Mapping[str, Floats]
    numbers: Mapping[str, int]
    """How many rows are corrected, known, or left out: unknown, in a group with a known row."""
    unused: tuple[str, ...]
    """Names of the columns that are not read."""


class CorrectedScore(NamedTuple):
    """One estimate of the accuracy without contamination."""

    estimator: str
    scores: str | None
    """The column of scores; None for an estimator that uses none."""
    accuracy: Estimate
    unscored: int
    """Rows without a score: the share of members among the known rows is their probability."""


def read_items(
    answers: str | Mapping[str, Sequence[object]], score_columns: Sequence[str]
) -> UserItems:
    """Read the rows of a file or of columns; their names are case-insensitive.

    Args:
        answers: a file (CSV, TSV, JSON Lines, JSON or Parquet), or columns by name.
        score_columns: the names of the columns of scores.

    Raises:
        InputError: for a missing column, a value that is not allowed, or too few rows of a kind.
    """
    path = answers if isinstance(answers, str) else IN_MEMORY
    placed = (
        list(read_rows(answers, purpose="answers"))
        if isinstance(answers, str)
        else _column_rows(answers)
    )
    present = list(dict.fromkeys(name for row in placed for name in row.values))
    required = (CORRECT, MEMBER, *score_columns)
    names = {
        column: name
        for column in (*required, GROUP, CLEAN)
        if (name := _named(column, present, path)) is not None
    }
    for column in required:
        if column not in names:
            raise InputError(
                f"there is no column {column!r}.{did_you_mean(column, present)}",
                where=path,
                allowed=f"{CORRECT}, {MEMBER}, columns of --scores; optionally {GROUP}, {CLEAN}",
                hint=f"The columns are {', '.join(present)}.",
            )

    def numbers(column: str, values: Values) -> Floats:
        key = names[column]
        return np.array([values.read(row.place, _text(row, key), column) for row in placed])

    groups = [_text(row, names.get(GROUP, GROUP)) for row in placed]
    group, _ = pack_groups(
        [f"\0row {at}" if name.lower() in _EMPTY else name for at, name in enumerate(groups)]
    )
    sides = numbers(MEMBER, _SIDES)
    unknown = np.isnan(sides)
    corrected = unknown & ~np.isin(group, group[~unknown])
    sets = {"corrected": corrected, "known members": sides == 1, "known non-members": sides == 0}
    counts = {name: int(rows.sum()) for name, rows in sets.items()}
    if few := [f"{count} rows are {name}" for name, count in counts.items() if count < LEAST]:
        raise InputError(few[0], where=path, allowed=f"{LEAST} or more", hint=_MARK)
    scores = {name: numbers(name, _SCORES) for name in score_columns}
    for name, values in scores.items():
        for kind, side in (("members", sides == 1), ("non-members", sides == 0)):
            if (scored := int(np.isfinite(values[side]).sum())) < LEAST:
                raise InputError(
                    f"{scored} known {kind} have a value in column {name!r}",
                    where=path,
                    allowed=f"{LEAST} or more",
                    hint="Known rows calibrate the scores: score more of them.",
                )
    return UserItems(
        right=numbers(CORRECT, _ANSWERS),
        member=sides == 1,
        nonmember=sides == 0,
        corrected=corrected,
        group=group,
        clean=numbers(CLEAN, _PROBABILITIES) if CLEAN in names else np.full(len(placed), nan),
        scores=scores,
        numbers={**counts, "left out": int((unknown & ~corrected).sum())},
        unused=tuple(name for name in present if name not in names.values()),
    )


def _named(column: str, present: Sequence[str], path: str) -> str | None:
    """Return the column of a name, or the only one that differs by case; None if there is none.

    Raises:
        InputError: if several differ by case only.
    """
    alike = [name for name in present if name.strip().lower() == column.lower()]
    if column in alike or len(alike) < 2:
        return column if column in alike else next(iter(alike), None)
    raise InputError(
        f"columns {', '.join(map(repr, alike))} differ by case only",
        where=path,
        allowed=f"one, or one that is exactly {column!r}",
        hint="Rename the others.",
    )


def _column_rows(columns: Mapping[str, Sequence[object]]) -> list[PlacedRow]:
    """Return columns in memory as rows.

    Raises:
        InputError: columns of different lengths, or without rows.
    """
    single = [
        name
        for name, values in columns.items()
        if isinstance(values, str) or not hasattr(values, "__len__")
    ]
    if single:
        raise InputError(
            f"column {single[0]!r} is a single value",
            where=IN_MEMORY,
            allowed="a list, an array or a series, with one value per row",
        )
    lengths = {name: len(values) for name, values in columns.items()}
    if 0 in lengths.values() or len({*lengths.values()}) != 1:
        problem = f"the columns have these numbers of rows: {lengths}"
        raise InputError(problem, where=IN_MEMORY, allowed="one number of rows, not 0")
    return [
        PlacedRow(f"{IN_MEMORY}: row {number}", dict(zip(columns, values, strict=True)))
        for number, values in enumerate(zip(*columns.values(), strict=True), start=1)
    ]


def _text(row: PlacedRow, column: str) -> str:
    value = row.values.get(column)
    return "" if value is None else str(value).strip()


class Values(NamedTuple):
    """The values that a column may have."""

    texts: Mapping[str, float]
    allowed: str
    low: float = inf
    high: float = -inf
    """Numbers from low to high are allowed as well."""

    def read(self, place: str, text: str, column: str) -> float:
        """Return a value as a number.

        Raises:
            InputError: for a value that is not allowed.
        """
        if text.lower() in self.texts:
            return self.texts[text.lower()]
        with suppress(ValueError):
            if self.low <= (number := float(text)) <= self.high:
                return number
        raise InputError(
            f"{text!r} in column {column!r}",
            where=place,
            allowed=self.allowed,
            hint="Correct this value, or remove the row.",
        )


def _words(yes: str, no: str) -> dict[str, float]:
    # pandas writes whole numbers next to missing ones with a point.
    return {**dict.fromkeys((yes, "1", "1.0", "true", "yes"), 1.0),
            **dict.fromkeys((no, "0", "0.0", "false", "no"), 0.0)}  # fmt: skip


_EMPTY = dict.fromkeys(("", "nan", "na", "<na>", "null"), nan)
_ANSWERS = Values(_words("right", "wrong"), "right, 1, true, yes; wrong, 0, false, no")
_SIDES = Values(
    _words("member", "nonmember") | {"non-member": 0.0} | _EMPTY,
    "member, 1, true, yes; non-member, 0, false, no; empty if it is unknown",
)
_PROBABILITIES = Values(_EMPTY, "a number from 0 to 1, or empty", 0.0, 1.0)
_LARGEST = float_info.max / 4
"""The difference of two scores is finite."""
_SCORES = Values(_EMPTY, "a finite number, or empty", -_LARGEST, _LARGEST)


def check_above_chance(items: UserItems, options: int, path: str) -> None:
    """Refuse answers that are not better than guessing: they cannot be inflated or corrected.

    Raises:
        InputError: the accuracy's interval (Clopper and Pearson) reaches 1 / `options`, or there is
            only one option.
    """
    if options < 2:
        raise InputError(f"{options} answer options", where="options", allowed="2 or more")
    rows = items.corrected
    groups = [str(number) for number in items.group[rows]]
    accuracy = clustered_share(items.right[rows] > 0, groups, confidence=CONFIDENCE)
    if accuracy.low <= 1 / options:
        raise InputError(
            f"the accuracy, {accuracy.text()}, is within noise of chance, {1 / options:.2f}",
            where=path,
            allowed=f"an accuracy that is above 1 / {options} beyond noise",
            hint="Correct a benchmark that the model can answer; --options is its answer options.",
        )


def correct_items(items: UserItems, *, replicates: int = REPLICATES) -> list[CorrectedScore]:
    """Return the estimates without scores, then those of each column of scores."""
    points = _estimates(items, np.ones((1, len(items.right))))
    counts = _bootstrap_counts(items, replicates)
    samples = [_estimates(items, counts[at : at + _CHUNK]) for at in range(0, replicates, _CHUNK)]
    sides = (items.corrected, items.member, items.nonmember)
    fewest = min(len(np.unique(items.group[side])) for side in sides)
    few = f"fewer than {LEAST} groups of rows of a kind" if fewest < LEAST else ""
    results = []
    for (scores, name), (value,) in points.items():
        values = np.concatenate([sample[scores, name] for sample in samples])
        unscored = int(np.isnan(items.scores[scores]).sum()) if scores else 0
        accuracy = _with_interval(float(value), values, few)
        results.append(CorrectedScore(name, scores, accuracy, unscored))
    return results


def _with_interval(value: float, replicates: Floats, few: str) -> Estimate:
    """Return an estimate with the percentile interval of its replicates, if they support one."""
    undefined = float(np.isnan(replicates).mean())
    reason = few
    if isnan(value):
        reason = "no row is left"
    elif undefined > _UNDEFINED:
        reason = f"no row is left in {undefined:.0%} of the replicates"
    if reason:
        return Estimate(value, nan, nan, f"none: {reason}")
    low, high = np.nanquantile(replicates, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(value, float(low), float(high))


def _bootstrap_counts(items: UserItems, replicates: int) -> Floats:
    """Return the number of times each replicate contains each row, [replicates, n]."""
    random = keyed.generator(0, keyed.Stream.BOOTSTRAP, keyed.item_key("score correction"))
    sides = (items.corrected, items.member, items.nonmember)
    return resampled_counts(items.group, sides, replicates, random)


def _estimates(items: UserItems, counts: Floats) -> dict[tuple[str | None, str], Floats]:
    """Return every estimate of each replicate, by column of scores and estimator."""
    right, corrected = items.right[None], counts * items.corrected
    clean = _calibrated(log_odds(items.clean), items.right > 0, counts * items.nonmember)
    free = estimators.score_free_terms(right, clean, corrected)
    terms: dict[str | None, Mapping[str, estimators.Terms]] = {None: free}
    for name, scores in items.scores.items():
        calibrating = counts * (items.member | items.nonmember)
        member = _calibrated(scores, items.member, calibrating)
        terms[name] = estimators.score_terms(right, member, clean, corrected)
    return {
        (scores, name): estimators.estimate(each)
        for scores, by_name in terms.items()
        for name, each in by_name.items()
    }


def _calibrated(values: Floats, positive: Mask, counts: Floats) -> Floats:
    return fit_platt(values[None], positive[None], counts).probabilities(values[None])
