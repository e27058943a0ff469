"""Score correction of a user's own answers: a file in, estimates with intervals out.

Rows of unknown membership are corrected; those of known membership calibrate, so the two are
disjoint, and an unknown row of a group that has a known one is left out. Intervals are percentile
bootstrap (Efron 1979): groups are drawn whole, those of the corrected rows, of known members and of
known non-members apart, and every replicate is calibrated again. Cost: 2,000 replicates of 1,000
rows take two seconds per column of scores.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis.correction.calibration import fit_platt, log_odds
from analysis.correction.estimators import (
    BY_SCORES,
    ESTIMATORS,
    Terms,
    estimate,
    score_free_terms,
    score_terms,
)
from analysis.decisions.flagged import clustered_share
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Counts, Floats, Mask, pack_groups
from inject import keyed
from inject.errors import InputError, did_you_mean
from inject.reading.rows import read_rows

INTERVAL = "percentile bootstrap"
REPLICATES = 2000
LEAST = 10
"""Known members, known non-members and corrected rows at least."""
CORRECT, MEMBER, GROUP, CLEAN = "correct", "member", "group", "clean_probability"
_CHUNK = 200
_YES, _NO = ("1", "true", "yes", "right"), ("0", "false", "no", "wrong")
_MEMBER, _NONMEMBER = ("1", "true", "yes", "member"), ("0", "false", "no", "nonmember")
_MISSING = ("", "none", "nan", "na", "null")


class UserItems(NamedTuple):
    """The rows of a file, [n] each."""

    right: Floats
    member: Mask
    """Which rows are known members."""
    nonmember: Mask
    """Which rows are known non-members."""
    corrected: Mask
    """Which rows are corrected."""
    group: Counts
    clean: Floats | None
    """A clean model's probability of the right answer; None without the column."""
    scores: Mapping[str, Floats]
    left_out: int
    """Unknown rows of a group that has a known row."""


class CorrectedScore(NamedTuple):
    """One estimate of the accuracy without contamination."""

    estimator: str
    detector: str | None
    """The column of scores; None for an estimator that uses none."""
    accuracy: Estimate
    unscored: int
    """Rows without a score: the share of members among the known rows is their probability."""


def read_items(path: str, score_columns: Sequence[str]) -> UserItems:
    """Read the rows of a file.

    Args:
        path: CSV, TSV, JSON Lines, JSON or Parquet.
        score_columns: the names of the columns of scores.

    Raises:
        InputError: for a missing column, a value that is not allowed, or too few rows of a kind.
    """
    placed = list(read_rows(path, what="answers"))
    names = {str(name).strip().lower(): name for name in placed[0].values}
    required = [CORRECT, MEMBER, *score_columns]
    for column in required:
        if column.lower() not in names:
            raise InputError(
                f"there is no column {column!r}.{did_you_mean(column.lower(), names)}",
                where=path,
                allowed=f"{', '.join(required)}, and optionally {GROUP}, {CLEAN}",
                hint=f"Its columns are {', '.join(names)}; --scores names those of scores.",
            )

    def column(name: str) -> list[tuple[str, str]]:
        """Return the place and the text of every value of a column."""
        key = names[name.lower()]
        return [(row.place, str(row.values.get(key, "")).strip()) for row in placed]

    right = _sides(column(CORRECT), CORRECT, _YES, _NO, blank=False)
    sides = _sides(column(MEMBER), MEMBER, _MEMBER, _NONMEMBER, blank=True)
    rows = [f"row {at}" for at in range(len(placed))]
    if GROUP in names:
        texts = [text for _, text in column(GROUP)]
        rows = [f"group {text}" if text else row for text, row in zip(texts, rows, strict=True)]
    group, _ = pack_groups(rows)
    unknown = np.isnan(sides)
    corrected = unknown & ~np.isin(group, group[~unknown])
    items = UserItems(
        right=right,
        member=sides == 1,
        nonmember=sides == 0,
        corrected=corrected,
        group=group,
        clean=_numbers(column(CLEAN), CLEAN, probability=True) if CLEAN in names else None,
        scores={name: _numbers(column(name), name) for name in score_columns},
        left_out=int((unknown & ~corrected).sum()),
    )
    _check_counts(items, path)
    return items


def _sides(
    values: Sequence[tuple[str, str]],
    column: str,
    yes: Sequence[str],
    no: Sequence[str],
    *,
    blank: bool,
) -> Floats:
    """Return 1, 0 or NaN for each value: yes, no or, if allowed, unknown."""
    numbers = {**dict.fromkeys(yes, 1.0), **dict.fromkeys(no, 0.0)}
    numbers |= dict.fromkeys(_MISSING if blank else (), np.nan)
    for place, text in values:
        if text.lower() not in numbers:
            unknown = ", or empty if it is unknown" if blank else ""
            raise InputError(
                f"{text!r} in column {column!r}",
                where=place,
                allowed=f"{', '.join(yes)}; {', '.join(no)}{unknown}",
                hint="Correct this value, or remove the row.",
            )
    return np.array([numbers[text.lower()] for _, text in values])


def _numbers(
    values: Sequence[tuple[str, str]], column: str, *, probability: bool = False
) -> Floats:
    """Return the numbers of a column; NaN for a missing score."""
    numbers = []
    for place, text in values:
        missing = text.lower() in _MISSING
        try:
            number = np.nan if missing else float(text)
        except ValueError:
            number = np.inf
        if np.isinf(number) or (probability and not 0 <= number <= 1):
            raise InputError(
                f"{text!r} in column {column!r}",
                where=place,
                allowed="a number from 0 to 1" if probability else "a finite number, or empty",
                hint="Correct this value, or remove the row.",
            )
        numbers.append(number)
    return np.array(numbers)


def _check_counts(items: UserItems, path: str) -> None:
    counts = {
        "known members": (items.member, f"Mark more rows in column {MEMBER!r} with member."),
        "known non-members": (items.nonmember, f"Mark more in column {MEMBER!r} with nonmember."),
        "rows to correct": (items.corrected, f"Leave column {MEMBER!r} empty in these rows."),
    }
    for noun, (rows, hint) in counts.items():
        if rows.sum() < LEAST:
            allowed = f"{LEAST} or more"
            raise InputError(f"{rows.sum()} {noun}", where=path, allowed=allowed, hint=hint)


def check_above_chance(items: UserItems, options: int, path: str, *, confidence: float) -> None:
    """Refuse answers that are no better than guessing: they cannot be inflated or corrected.

    Raises:
        InputError: the accuracy's interval (Clopper and Pearson) reaches 1 / `options`.
    """
    rows = items.corrected
    groups = [str(number) for number in items.group[rows]]
    accuracy = clustered_share(items.right[rows] > 0, groups, confidence=confidence)
    if accuracy.low <= 1 / options:
        raise InputError(
            f"the accuracy, {accuracy.text()}, is within noise of chance, {1 / options:.2f}",
            where=path,
            allowed=f"an accuracy that is above 1 / {options} beyond noise",
            hint="Accuracy at chance cannot be inflated. Use a benchmark that the model can answer, "
            "or give the number of answer options with --options.",
        )


def correct_items(
    items: UserItems, *, confidence: float = 0.95, replicates: int = REPLICATES
) -> list[CorrectedScore]:
    """Return the estimates without scores, then those of each column of scores.

    Args:
        items: from `read_items`.
        confidence: of the intervals.
        replicates: of the bootstrap.
    """
    points = _estimates(items, np.ones((1, len(items.right))))
    counts = _bootstrap_counts(items, replicates)
    samples = [_estimates(items, counts[at : at + _CHUNK]) for at in range(0, replicates, _CHUNK)]
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    results = []
    for detector, estimator in _all_estimators(items):
        key = detector, estimator
        accuracy = no_estimate(f"requires the column {CLEAN}")
        if key in points:
            values = np.concatenate([sample[key] for sample in samples])
            low, high = np.nanquantile(values, tails) if np.isfinite(values).any() else (np.nan,) * 2
            accuracy = Estimate(float(points[key][0]), float(low), float(high))
        unscored = int(np.isnan(items.scores[detector]).sum()) if detector else 0
        results.append(CorrectedScore(estimator, detector, accuracy, unscored))
    return results


def _all_estimators(items: UserItems) -> list[tuple[str | None, str]]:
    free = [(None, name) for name in ESTIMATORS if name not in BY_SCORES]
    return [*free, *((detector, name) for detector in items.scores for name in BY_SCORES)]


def _bootstrap_counts(items: UserItems, replicates: int) -> Floats:
    """Return how often each replicate contains each row, [replicates, n]."""
    random = keyed.generator(0, keyed.Stream.BOOTSTRAP, keyed.item_key("score correction"))
    counts = np.zeros((replicates, len(items.right)))
    for rows in (items.corrected, items.member, items.nonmember):
        _, group = np.unique(items.group[rows], return_inverse=True)
        n_groups = int(group.max()) + 1
        by_group = random.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=replicates)
        counts[:, rows] = by_group[:, group]
    return counts


def _estimates(items: UserItems, counts: Floats) -> dict[tuple[str | None, str], Floats]:
    """Return every estimate of each replicate, by column of scores and estimator."""
    rows, calibrating = items.corrected, items.member | items.nonmember
    shape = counts.shape

    def probabilities(values: Floats, positive: Mask, calibrate: Mask) -> Floats:
        wide = np.broadcast_to(values, shape)
        fit = fit_platt(
            wide[:, calibrate], np.broadcast_to(positive, shape)[:, calibrate], counts[:, calibrate]
        )
        return fit.probabilities(wide[:, rows])

    right, row_counts = np.broadcast_to(items.right, shape)[:, rows], counts[:, rows]
    clean = None
    if items.clean is not None:
        clean = probabilities(log_odds(items.clean), items.right > 0, items.nonmember)
    terms: dict[tuple[str | None, str], Terms] = {
        (None, name): each for name, each in score_free_terms(right, clean, row_counts).items()
    }
    for detector, scores in items.scores.items():
        member = probabilities(scores, items.member, calibrating)
        for name, each in score_terms(right, member, clean, row_counts).items():
            terms[detector, name] = each
    return {key: estimate(each) for key, each in terms.items()}
