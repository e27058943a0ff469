"""AUCs and TPRs for `spikein detect`: any scores with labels, no experiment around them.

The comparison is on the rows that every setting could score; a setting that failed on more
than `max_unscored` of the labelled rows is measured on its own rows and says so.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from analysis.auc_interval import auc_estimate, tpr_estimate
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.settings import AnalysisSettings
from inject.errors import InputError
from inject.keyed import Stream, generator, item_key

_SAMPLES = 10


class AucRow(NamedTuple):
    """One line of the table."""

    detector: str
    setting: str
    auc: Estimate
    n_members: int
    n_nonmembers: int
    unscored: int
    """Labelled rows this setting could not score."""
    own_rows: bool
    """Whether it failed too often and is measured on rows of its own."""
    tpr: Mapping[float, Estimate]
    """True-positive rate by false-positive rate; with a reason where too few non-members stand
    behind it."""


def auc_table(
    scores: pa.Table,
    labels: Sequence[int | bool | None],
    groups: Sequence[str | None] | None = None,
    settings: AnalysisSettings | None = None,
) -> list[AucRow]:
    """Return one row a detector and setting, in the order of the scores.

    Args:
        scores: row (index into `labels`), detector, setting, score; higher = member.
        labels: 1 or True for members, 0 or False for non-members, None for unknown.
        groups: rows that share a passage; None is a group of its own.
        settings: of the intervals; defaults where not given.

    Raises:
        InputError: for a label that is none of these, or groups of another length.
    """
    how = settings or AnalysisSettings()
    wrong = next((label for label in labels if label not in (0, 1, None)), None)
    if wrong is not None:
        raise InputError(
            f"{wrong!r} is no label", where="label", allowed="1 (member), 0 (non-member), empty"
        )
    if groups is not None and len(groups) != len(labels):
        raise InputError(f"{len(groups)} groups for {len(labels)} labels", where="group")
    known = np.array([label is not None for label in labels], dtype=bool)
    member = np.array([bool(label) for label in labels], dtype=bool) & known
    names = group_names(groups, len(labels))
    columns = scores_by_setting(scores, len(labels))
    scored = {key: known & np.isfinite(values) for key, values in columns.items()}
    apart = {
        key
        for key, there in scored.items()
        if (known & ~there).sum() > how.max_unscored * known.sum()
    }
    common = known.copy()
    for key in columns.keys() - apart:
        common &= scored[key]
    table = []
    for key, values in columns.items():
        used = scored[key] if key in apart else common
        inside, outside = used & member, used & ~member
        rows = (values[used], member[used], names[used].tolist())
        estimate = auc_estimate(*rows, confidence=how.confidence)
        table.append(
            AucRow(
                detector=key[0],
                setting=key[1],
                auc=estimate if known.any() else no_estimate("no labels"),
                n_members=int(inside.sum()),
                n_nonmembers=int(outside.sum()),
                unscored=int((known & ~scored[key]).sum()),
                own_rows=key in apart,
                tpr={
                    rate: tpr_estimate(*rows, rate, confidence=how.confidence)
                    for rate in how.false_positive_rates
                },
            )
        )
    return table


class DocumentTable(NamedTuple):
    """AUCs over documents."""

    rows: list[AucRow]
    thresholded: dict[tuple[str, str], "Thresholded"]
    """By detector and setting: the figure that public code of DE-COP calls AUC."""


class Thresholded(NamedTuple):
    """The AUC of predictions at a threshold that was chosen on the same documents: optimistic.

    Duarte et al. 2024, section 5.1: ten samples with replacement from either side; in each the
    threshold that separates the two best, and the AUC of what it predicts.
    """

    mean: float
    deviation: float
    """Over the samples."""


def document_table(
    scores: pa.Table,
    labels: Sequence[int | bool | None],
    groups: Sequence[str | None] | None,
    settings: AnalysisSettings | None = None,
) -> DocumentTable | None:
    """Return the AUCs over groups of rows; None where no group of one label has two rows.

    Args:
        scores: as `auc_table`.
        labels: as `auc_table`; a group with rows of both labels is no document.
        groups: the document of each row.
        settings: of the intervals.
    """
    if groups is None:
        return None
    rows_of: dict[str, list[int]] = {}
    for row, group in enumerate(groups):
        if group is not None and labels[row] is not None:
            rows_of.setdefault(group, []).append(row)
    documents = {
        name: rows for name, rows in rows_of.items() if len({labels[row] for row in rows}) == 1
    }
    if not any(len(rows) > 1 for rows in documents.values()):
        return None
    member = np.array([bool(labels[rows[0]]) for rows in documents.values()])
    parts, thresholded = [], {}
    for (detector, setting), values in scores_by_setting(scores, len(labels)).items():
        means = np.array([_mean(values[rows]) for rows in documents.values()])
        parts.append(
            pa.table(
                {
                    "row": pa.array(range(len(means)), pa.int64()),
                    "detector": [detector] * len(means),
                    "setting": [setting] * len(means),
                    "score": means,
                }
            )
        )
        there = np.isfinite(means)
        found = _thresholded(means[there & member], means[there & ~member])
        if found is not None:
            thresholded[detector, setting] = found
    table = auc_table(pa.concat_tables(parts), member.tolist(), None, settings)
    return DocumentTable(table, thresholded)


def _mean(values: np.ndarray) -> float:
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else float("nan")


def _thresholded(members: np.ndarray, nonmembers: np.ndarray) -> Thresholded | None:
    if not len(members) or not len(nonmembers):
        return None
    found = []
    for sample in range(_SAMPLES):
        random = generator(0, Stream.BOOTSTRAP, item_key(f"thresholded {sample}"))
        inside = random.choice(members, len(members))
        outside = random.choice(nonmembers, len(nonmembers))
        # With one threshold the ROC has one corner: its area is the mean of the two true rates.
        cuts = np.unique(np.concatenate([inside, outside]))
        true = (inside[None] >= cuts[:, None]).mean(axis=1)
        false = (outside[None] >= cuts[:, None]).mean(axis=1)
        found.append(float(((true + 1 - false) / 2).max()))
    return Thresholded(float(np.mean(found)), float(np.std(found)))


def group_names(groups: Sequence[str | None] | None, rows: int) -> np.ndarray:
    """Return the group of each row; a row without one is a group of its own."""
    named: Sequence[str | None] = [None] * rows if groups is None else groups
    return np.array(
        [f"row {row}" if name is None else f"group {name}" for row, name in enumerate(named)],
        dtype=object,
    )


def scores_by_setting(scores: pa.Table, n: int) -> dict[tuple[str, str], np.ndarray]:
    """Return each setting's scores by row, NaN where it has none."""
    found: dict[tuple[str, str], np.ndarray] = {}
    names = zip(scores["detector"].to_pylist(), scores["setting"].to_pylist(), strict=True)
    values = zip(scores["row"].to_pylist(), scores["score"].to_pylist(), strict=True)
    for key, (row, score) in zip(names, values, strict=True):
        column = found.setdefault(key, np.full(n, np.nan))
        column[row] = np.nan if score is None else score
    return found
