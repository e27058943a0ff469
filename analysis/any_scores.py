"""AUCs and TPRs of any scores with the intervals that the report uses; no experiment around them.

`auc_interval` answers for one column, for anyone with two arrays, and `auc_table` for all
settings of a file (`spikein detect`), alike to the last bit. Influence values are summed by group,
the value is the mean over seeds, and if no valid interval exists, the ends are NaN and `reason`
explains why.

Settings of a file are compared on the rows that all of them could score; one that failed on more
than `max_unscored` of the labelled rows is measured on its own rows and marked so. Cost: about 1 ms
for 400 rows.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from math import nan
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.arm import FILE, Cohort, LoadedArm, file_arm
from analysis.compared_rows import compare_rows
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Floats, Mask, pack_groups
from analysis.intervals.rows import Rows, auc_numbers, tpr_numbers, unsupported
from analysis.metrics import SUPPORT, supports_rate
from analysis.settings import AnalysisSettings
from inject.errors import InputError


def auc_interval(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    groups: Sequence[object] | npt.NDArray[Any] | None = None,
    seeds: Sequence[object] | npt.NDArray[Any] | None = None,
    *,
    settings: AnalysisSettings | None = None,
) -> Estimate:
    """Return the AUC of scores with its interval, clustered by group and over seeds.

    The AUC is the chance that a random member scores above a random non-member, ties half.

    Args:
        scores: one per row; higher means 'more likely a member'. No NaN, no infinity.
        labels: one per row: 1 or True for members, 0 or False for non-members.
        groups: one per row: rows of one group (questions about one passage) count as one; a group
            of two seeds is the same text in both. None makes each row its own, and with several
            seeds the nth row of each is the same text.
        seeds: one per row: the seed of the model that gave the score. The value
            is the mean of the seeds' AUCs. From three seeds on the interval applies to any
            seed; with one or two, only to these models. None means one. Without `groups`, seeds
            with different row counts have no interval: it is unknown which rows are the same text.
        settings: the confidence; if None, the report's.

    Returns:
        value, low, high, reason and caution; all three numbers are NaN if the scores
        support no statement, both ends if they support no interval, and `reason` explains why.
        `caution` warns of intervals from fewer than 15 groups of members, and reports both
        values of two seeds.

    Raises:
        InputError: for arrays of other lengths, a score that is not finite, a label that
            is neither 0 nor 1, or labels of only one class.

    Example:
        ```python
        import spikein

        found = spikein.auc_interval([0.9, 0.4, 0.8, 0.3, 0.6, 0.1], [1, 1, 1, 0, 0, 0])
        print(f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]", found.caution)
        ```
    """
    analysis_settings = settings or AnalysisSettings()
    values, member = _scores(scores), _labels(labels)
    _check_length("labels", len(member), len(values))
    seed = _names(seeds, "", len(values)) or [""] * len(values)
    group = _names(groups, "group", len(values)) or _places(seed)
    _check_classes(member)
    estimate = auc_estimate(values, member, group, seed, confidence=analysis_settings.confidence)
    distinct = len(set(seed))
    if groups is None and len(set(Counter(seed).values())) > 1 and estimate.reason is None:
        return Estimate(estimate.value, nan, nan, f"none: {_UNKNOWN_ROWS}")
    if distinct == 2 and estimate.reason is None:
        seeds_of = auc_numbers(_rows(member, group, seed), values).seeds
        aucs = [
            float(part.sample.value[0]) for seed_parts in seeds_of for part in seed_parts.values()
        ]
        seed_values = f"only of these two models: {aucs[0]:.3f} and {aucs[1]:.3f}"
        return estimate.said("these 2 models", seed_values, estimate.caution)
    return estimate


_UNKNOWN_ROWS = (
    "the seeds have different numbers of rows: pass `groups` to identify rows of the same text"
)


def _places(seeds: Sequence[str]) -> list[str]:
    """Return the place of each row among those of its seed."""
    places: dict[str, Iterator[int]] = defaultdict(count)
    return [f"row {next(places[seed])}" for seed in seeds]


def auc_estimate(
    scores: Floats,
    member: Mask,
    groups: Sequence[str],
    seeds: Sequence[str] | None = None,
    *,
    confidence: float = 0.95,
) -> Estimate:
    """Return the AUC with its interval; the value is the mean of the seeds' AUCs.

    Args:
        scores: one per row.
        member: which rows are members.
        groups: of each row; a group of two seeds, or of both sides, is one group.
        seeds: which model gave each score; None means one.
        confidence: requested coverage.
    """
    rows = _rows(member, groups, seeds)
    usable, reasons = scores.astype(np.float64), []
    for at in (at for seed in rows.places for at in seed.values()):
        if reason := unsupported(rows, scores, at):
            reasons.append(reason)
            usable[at] = nan
    if not np.isfinite(usable).any():
        return no_estimate(", ".join(dict.fromkeys(reasons)))
    return auc_numbers(rows, usable).estimates(confidence=confidence)[0]


def tpr_estimate(
    scores: Floats,
    member: Mask,
    groups: Sequence[str],
    rate: float,
    *,
    confidence: float = 0.95,
) -> Estimate:
    """Return the TPR at an FPR of at most `rate` with its interval, as `auc_estimate` does.

    Below 10 / rate non-members there is none, and `reason` explains it. The value is at the largest
    k / m <= rate, the interval of the rate that new non-members are expected to have.
    """
    rows = _rows(member, groups, None)
    if reason := unsupported(rows, scores, np.arange(len(scores))):
        return no_estimate(reason)
    if not supports_rate(rate, int(rows.nonmember.sum())):
        return no_estimate(f"fewer than {np.ceil(SUPPORT / rate - 1e-9):.0f} non-members")
    (estimate,) = tpr_numbers(rows, scores, rate).estimates(confidence=confidence)
    above = np.sort(scores[~member])
    at_or_above = len(above) - np.searchsorted(above, scores[member], side="left")
    return estimate.around(float((at_or_above <= np.floor(rate * len(above) + 1e-9)).mean()))


class AucRow(NamedTuple):
    """One line of the table."""

    detector: str
    setting: str
    auc: Estimate
    n_members: int
    n_nonmembers: int
    unscored: int
    """Rows this setting could not score."""
    own_rows: bool
    """Whether it failed too often and is measured on separate rows."""
    tpr: Mapping[float, Estimate]
    """True-positive rate by false-positive rate; with a reason if too few non-members are
    behind it."""


def auc_table(
    scores: pa.Table,
    labels: Sequence[bool],
    groups: Sequence[str] | None = None,
    settings: AnalysisSettings | None = None,
) -> list[AucRow]:
    """Return one row per detector and setting, in the order of the scores.

    Args:
        scores: row (index into `labels`), detector, setting, score; higher = member.
        labels: True for members.
        groups: rows that share a passage; None makes each row its own.
        settings: of the intervals; None uses the defaults.
    """
    return _auc_rows(file_arm(scores, len(labels), labels, groups), settings or AnalysisSettings())


def document_table(
    scores: pa.Table,
    labels: Sequence[bool],
    groups: Sequence[str] | None,
    settings: AnalysisSettings | None = None,
) -> list[AucRow] | None:
    """Return the AUCs over groups of rows; None if no group of one label has two rows.

    Args:
        scores: as `auc_table`.
        labels: as `auc_table`; a group with rows of both labels is not a document.
        groups: the document of each row.
        settings: of the intervals.
    """
    if groups is None:
        return None
    arm = file_arm(scores, len(labels), labels, groups)
    rows_of_groups = [np.flatnonzero(arm.group == name) for name in dict.fromkeys(arm.group)]
    documents = [at for at in rows_of_groups if len({*arm.member[at]}) == 1]
    if not any(len(at) > 1 for at in documents):
        return None
    first = np.array([at[0] for at in documents])
    # The mean of a document's scored rows; NaN if it has none.
    has_score = np.isfinite(arm.scores)
    total = np.stack([np.where(has_score, arm.scores, 0.0)[at].sum(axis=0) for at in documents])
    scored = np.stack([has_score[at].sum(axis=0) for at in documents])
    means = np.where(scored, total / np.maximum(scored, 1), np.nan)
    columns = {name: getattr(arm, name)[first] for name in ("member", "test", "dataset", "group")}
    by_document = replace(arm, scores=means, reasons={}, **columns)
    return _auc_rows(by_document, settings or AnalysisSettings())


def _auc_rows(arm: LoadedArm, settings: AnalysisSettings) -> list[AucRow]:
    place = Cohort((), arm.arm.model)
    compared = compare_rows(arm, arm.columns, FILE, cohort=place, settings=settings)
    table = []
    for column in arm.columns:
        used, values = compared.rows(column), arm.scores[:, arm.index[column]]
        rows = (values[used], arm.member[used], arm.group[used].tolist())
        table.append(
            AucRow(
                *column,
                auc=auc_estimate(*rows, confidence=settings.confidence),
                n_members=int((used & arm.member).sum()),
                n_nonmembers=int((used & ~arm.member).sum()),
                unscored=int((~np.isfinite(values)).sum()),
                own_rows=column in compared.own,
                tpr={
                    rate: tpr_estimate(*rows, rate, confidence=settings.confidence)
                    for rate in settings.false_positive_rates
                },
            )
        )
    return table


def _rows(member: Mask, groups: Sequence[str], seeds: Sequence[str] | None) -> Rows:
    seed = "" if seeds is None else np.asarray(seeds, dtype=object)
    return Rows.of(pack_groups(groups)[0], seed=seed, member=member)


def _scores(values_given: npt.ArrayLike) -> Floats:
    try:
        values = np.asarray(values_given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"scores are not numbers ({error})", where="scores") from None
    if values.ndim != 1:
        raise InputError(
            f"scores have the shape {values.shape}", where="scores", allowed="one number a row"
        )
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise InputError(
            f"{len(wrong)} of {len(values)} scores are not finite, the first in row {wrong[0]} "
            f"({values[wrong[0]]})",
            where="scores",
            hint="Leave out these rows from scores, labels, groups and seeds alike.",
        )
    return values


def _labels(labels_given: npt.ArrayLike) -> Mask:
    values = np.asarray(labels_given, dtype=object)
    if values.ndim != 1:
        raise InputError(
            f"labels have the shape {values.shape}", where="labels", allowed="one label a row"
        )
    for row, label in enumerate(values.tolist()):
        if not isinstance(label, int | float | np.number | np.bool_) or label not in (0, 1):
            raise InputError(
                f"row {row} has the label {label!r}",
                where="labels",
                allowed="1 or True for members, 0 or False for non-members",
            )
    return values.astype(bool)


def _names(names_given: Any, noun: str, rows: int) -> list[str] | None:
    if names_given is None:
        return None
    argument = "groups" if noun else "seeds"
    if isinstance(names_given, str):
        raise InputError("is one text", where=argument, allowed="one value per row")
    names = np.asarray(names_given, dtype=object).tolist()
    _check_length(argument, len(names), rows)
    return [f"{noun} {name}" if noun else str(name) for name in names]


def _check_length(noun: str, length: int, rows: int) -> None:
    if length != rows:
        raise InputError(
            f"{length} {noun} for {rows} scores", where=noun, allowed="one for each score"
        )


def _check_classes(member: Mask) -> None:
    if not len(member):
        raise InputError("there are no scores", where="scores")
    if member.all() or not member.any():
        only, none = ("members", "non-members") if member.all() else ("non-members", "members")
        raise InputError(
            f"all {len(member)} rows are {only}",
            where="labels",
            hint=f"An AUC compares two sides: add rows of {none}.",
        )
