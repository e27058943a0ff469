"""Score texts in memory under any model, as `spikein detect` does for a file.

The same code scores both (`spikein.scoring.scored_rows`), so the numbers are the same.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from analysis.any_scores import AucRow, auc_table
from detect.settings import detector_parts
from detect.user_rows.labelled_rows import LabelledRows
from inject.errors import InputError
from inject.examples.example import example_id
from spikein.scoring.options import ScoringOptions
from spikein.scoring.scored_rows import plan_rows, score_rows
from spikein.store.filesystem import AnyPath


class ScoredTexts(NamedTuple):
    """The result of `score_texts`."""

    scores: pa.Table
    """One row per text, detector and setting: row (of `texts`), example_id, detector, setting,
    score (higher: more likely a member; NaN if there is none), reason (why there is none)."""
    aucs: pa.Table | None
    """One row per detector and setting: auc, low, high, reason, members, non-members, unscored
    rows, and true-positive rates with their ends; None if no labels were given."""
    notes: tuple[str, ...]
    """Notes on the scores, such as skipped detectors and the reasons."""


def score_texts(
    model: AnyPath,
    texts: Sequence[str],
    *,
    detectors: str | Sequence[str] | None = None,
    labels: Sequence[int | bool] | None = None,
    groups: Sequence[object] | None = None,
    reference: AnyPath | None = None,
    frequency: AnyPath | None = None,
    options: ScoringOptions | None = None,
) -> ScoredTexts:
    """Score texts with detectors: how strongly does each indicate that the model saw the text?

    Args:
        model: a folder or a hub id of a causal language model.
        texts: the texts to score, in this order.
        detectors: `"min_k:k=0.2,zlib"`, or a list of such parts (see `spikein detectors`); all
            by default.
        labels: 1 for members, 0 for non-members; with labels there are AUCs.
        groups: one per text; texts of one group (questions about one passage) count together in
            intervals.
        reference: a model that has not seen the texts, for the detector `reference`.
        frequency: a file, folder or glob of texts, counted for `dc_pdd` and `tag_tab`.
        options: device, number format, long texts and the like.

    Returns:
        The scores, the AUCs if there are labels, and notes.

    Raises:
        InputError: for lists of different lengths, unknown detectors, a named detector without its
            requirements, or a model that cannot be loaded.

    Example:
        ```python
        import spikein

        texts = ["A text that was in the training data.", "A text that was not."]
        found = spikein.score_texts("my/model", texts, detectors="loss,min_k:k=0.2")
        print(found.scores.to_pandas())
        ```
    """
    rows = _rows(texts, labels, groups)
    values = {
        "detectors": detectors and tuple(detector_parts(detectors)),
        "reference": reference and str(reference),
        "frequency": frequency and str(frequency),
    }
    chosen = (options or ScoringOptions()).model_copy(
        update={name: value for name, value in values.items() if value}
    )
    if chosen.limit is not None:
        raise InputError("limit applies only to a file of rows", where="options")
    scored = score_rows(plan_rows(rows, str(model), chosen))
    table = None
    if rows.labels is not None:
        table = _auc_columns(auc_table(scored.scores, rows.labels, rows.groups or rows.texts))
    return ScoredTexts(scored.scores, table, scored.notes)


def _rows(
    texts: Sequence[str],
    labels: Sequence[int | bool] | None,
    groups: Sequence[object] | None,
) -> LabelledRows:
    """Return the texts as the rows of a file would be.

    Raises:
        InputError: naming the first text, label or group that cannot be used.
    """
    if isinstance(texts, str):
        raise InputError("texts is one text", where="texts", allowed="a list of texts")
    listed = list(texts)
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise InputError(f"texts[{row}] is a {type(text).__name__}", allowed="a text")
    if not listed:
        raise InputError("there are no texts", where="texts")
    return LabelledRows(
        texts=listed,
        ids=[example_id(text) for text in listed],
        labels=None if labels is None else _labels(labels, len(listed)),
        groups=None
        if groups is None
        else [f"group {group}" for group in _one_per_text("groups", groups, len(listed))],
    )


def _labels(labels: Sequence[int | bool], rows: int) -> list[bool]:
    listed = _one_per_text("labels", labels, rows)
    for row, label in enumerate(listed):
        if isinstance(label, str) or label not in (0, 1):
            raise InputError(
                f"labels[{row}] is {label!r}",
                allowed="1 or True for members, 0 or False for non-members",
            )
    return [bool(label) for label in listed]


def _one_per_text(name: str, values: Sequence[Any], rows: int) -> list[Any]:
    listed = list(values)
    if len(listed) != rows:
        problem = f"{len(listed)} {name} for {rows} texts"
        raise InputError(problem, where=name, allowed="one for each text")
    return listed


def _auc_columns(rows: Sequence[AucRow]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "detector": row.detector,
                "setting": row.setting,
                "auc": row.auc.value,
                **{name: getattr(row.auc, name) for name in ("low", "high", "reason", "caution")},
                "n_members": row.n_members,
                "n_nonmembers": row.n_nonmembers,
                "unscored": row.unscored,
                "own_rows": row.own_rows,
                **{
                    f"tpr@{rate:g}{end}": getattr(estimate, name)
                    for rate, estimate in row.tpr.items()
                    for end, name in (("", "value"), ("_low", "low"), ("_high", "high"))
                },
            }
            for row in rows
        ]
    )
