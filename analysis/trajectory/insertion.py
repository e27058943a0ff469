"""The insertion contrast: how far does a text's loss fall where training first saw it?

Michel, Basu and Kaufmann 2026 (2602.16596) attack a sequence of models at the step at which a text
is inserted: unlike the last model, the change there does not dilute the signal. They derive the
optimal score for an empirical mean; here losses under two consecutive checkpoints replace it.
Inserted are the members whose first exposure (to any part of a copy) is between the two.

    contrast = mean fall of the loss of inserted members - mean fall of the reference rows

The reference rows are non-members, or members not exposed between the two: not yet, or only before.
Positive means learnt. The score of a row is its own fall minus the mean of the non-members of its
dataset, and its AUC sets inserted members against non-members. Nothing is chosen, so rows of both
splits count. Intervals as everywhere, whole groups. Cost: 5 ms a pair of checkpoints.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import nan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from analysis.findings import question_table
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Counts, Floats, Mask
from analysis.intervals.numbers import Numbers
from analysis.intervals.rows import Rows, auc_numbers, mean_numbers
from analysis.metrics import AUC, POOLED
from analysis.settings import AnalysisSettings
from analysis.trajectory.fading import PreparedCheckpoint
from analysis.trajectory.palimpsest import LOSS, NO_LOSS

QUESTION = "insertion"
CONTRAST = "contrast"
NONMEMBERS = "non-members"
UNEXPOSED = "members not exposed"
NO_CHECKPOINTS = (
    "no checkpoint was saved: add train.checkpoints (such as {fractions: [0.25, 0.5, 0.75]}) and "
    "run again, which repeats the training"
)
Row = dict[str, Any]


class CheckpointPair(NamedTuple):
    """Rows of all seeds between two checkpoints, [n] each."""

    rows: Rows
    """Inserted members against non-members."""
    unexposed: Mask
    """Members that training did not see between the two."""
    fall: Floats
    """Fall of the mean loss per token, in nats; NaN if either is missing."""

    def row_contrasts(self) -> Floats:
        """Return each row's fall minus the mean fall of the non-members of its dataset and seed."""
        contrasts = np.full(len(self.fall), nan)
        for at in (at for seed in self.rows.places for at in seed.values()):
            reference = self.fall[at][self.rows.nonmember[at] & np.isfinite(self.fall[at])]
            if len(reference):
                contrasts[at] = self.fall[at] - reference.mean()
        return contrasts

    def contrast(self, reference: Mask) -> Numbers:
        """Return the mean fall of inserted members minus that of reference rows."""
        inserted = replace(self.rows, nonmember=reference)
        others = replace(self.rows, member=reference)
        return mean_numbers(inserted, self.fall) - mean_numbers(others, self.fall)


def insertion_rows(
    head: Mapping[str, str], checkpoints: Sequence[PreparedCheckpoint], settings: AnalysisSettings
) -> list[Row]:
    """Return the rows of the question `insertion`: each pair of checkpoints, each dataset.

    Args:
        head: the axes' columns.
        checkpoints: all of one cohort, by step.
        settings: how intervals are made.
    """
    common = {**head, "detector": LOSS}
    arms = [arm for checkpoint in checkpoints for arm in checkpoint.work.loaded]
    if any(LOSS not in arm.detectors for arm in arms):
        return [{**common, "dataset": POOLED, **no_estimate(NO_LOSS).row()}]
    rows = []
    for before, after in pairwise(checkpoints):
        steps = {"from_step": before.step, "to_step": after.step}
        place = {**common, "setting": after.work.loaded[0].default(LOSS).setting, **steps}
        rows += [{**place, **row} for row in pair_rows(checkpoint_pair(before, after), settings)]
    return rows


def pair_rows(pair: CheckpointPair, settings: AnalysisSettings) -> list[Row]:
    """Return both contrasts and the AUC of a pair, of all datasets and of each."""
    rows = pair.rows
    numbers = {
        (CONTRAST, NONMEMBERS): pair.contrast(rows.nonmember),
        (CONTRAST, UNEXPOSED): pair.contrast(pair.unexposed),
        (AUC, NONMEMBERS): auc_numbers(rows, pair.row_contrasts()),
    }
    return [
        {
            "dataset": name,
            "metric": metric,
            "versus": versus,
            **_estimate(own, name, settings).row(),
        }
        for name in [POOLED, *(rows.n_groups if len(rows.n_groups) > 1 else ())]
        for (metric, versus), own in numbers.items()
    ]


def _estimate(numbers: Numbers, dataset: str, settings: AnalysisSettings) -> Estimate:
    name = None if dataset == POOLED else dataset
    estimates = numbers.estimates(name, confidence=settings.confidence)
    if not estimates:
        return no_estimate("no member was first seen between the two, or no reference row")
    (estimate,) = estimates
    if estimate.members >= settings.min_members:
        return estimate
    few = f"none: {estimate.members} members, fewer than min_members"
    return estimate._replace(low=nan, high=nan, about=few, seed_low=nan, seed_high=nan)


def checkpoint_pair(before: PreparedCheckpoint, after: PreparedCheckpoint) -> CheckpointPair:
    """Return the rows between two checkpoints of one cohort, with the same seeds."""
    rows = after.work.rows
    inserted, unexposed = np.concatenate(
        [
            exposed_between(before.step, early, after.step, late)
            for early, late in zip(before.since, after.since, strict=True)
        ],
        axis=1,
    )
    return CheckpointPair(
        rows=replace(rows, member=rows.member & inserted, levels=None),
        unexposed=rows.member & unexposed,
        fall=_log_probabilities(after) - _log_probabilities(before),
    )


def _log_probabilities(checkpoint: PreparedCheckpoint) -> Floats:
    return checkpoint.work.scores(checkpoint.work.loaded[0].default(LOSS))


def exposed_between(step: int, since: Counts, later_step: int, later_since: Counts) -> Mask:
    """Return which rows were first seen between two steps, and which were not seen, [2, n].

    Args:
        step: of the earlier checkpoint.
        since: steps since the last exposure by then; -1 where there was none.
        later_step: of the later checkpoint.
        later_since: as `since`.
    """
    inserted = (since < 0) & (later_since >= 0)
    never = (since < 0) & (later_since < 0)
    before = (since >= 0) & (step - since == later_step - later_since)
    return np.stack([inserted, never | before])


def missing_insertion(axes: Sequence[str]) -> pa.Table:
    """Return the finding of an experiment without checkpoints: what is missing, and how to get it.

    Args:
        axes: the swept axes.
    """
    row = {"dataset": POOLED, "detector": LOSS, **no_estimate(NO_CHECKPOINTS).row()}
    return question_table(QUESTION, axes, [row])
