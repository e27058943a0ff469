"""Which detector is best where: the set that cannot be distinguished from the best, and gaps.

Comparisons with the best (Hsu 1984): a detector belongs to the set where no other is above it by
more than chance, corrected for how many others there are (Bonferroni), were it the best itself. The
set so holds the truly best one with the confidence asked for, however many are compared; each arm
and dataset is a statement of its own. Gaps: how far an upper bound (shadow models, a reference
model) lies above each detector, as one family of paired differences.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from analysis.arm import UPPER_BOUNDS
from analysis.factors.comparisons import contrasts
from analysis.factors.joint import Aucs, join_seeds
from analysis.factors.measured import by_dataset
from analysis.factors.study import SeedRows, Study, StudyArm
from analysis.intervals.bounds import LEAST_GROUPS
from analysis.intervals.influence import Mask
from analysis.metrics import Floats

BOUNDS = ("reference", *sorted(UPPER_BOUNDS))
"""What stands above the others: `reference` asks a model that saw no copy where the run has one."""


BEST = "best"
GAP = "gap"
Row = dict[str, Any]


def compare_detectors(study: Study, arm: StudyArm, *, confidence: float) -> Iterator[Row]:
    """Yield the contestants of one arm in each dataset, and their gaps to its upper bounds.

    Args:
        study: all arms.
        arm: which.
        confidence: of each set, and of each family of gaps.
    """

    def every(rows: SeedRows) -> list[Mask]:
        return [rows.member & (rows.copies > 0)]

    measured = {name: by_dataset(study, arm, name, every) for name in study.detectors}
    for dataset in dict.fromkeys(name for one in measured.values() for name in one):
        head = {**arm.cohort.columns(), "dataset": dataset}
        here = _same_rows({name: one[dataset] for name, one in measured.items() if dataset in one})
        contestants = {name: one for name, one in here.items() if name not in UPPER_BOUNDS}
        if len(contestants) > 1:
            inside = best_set(list(contestants.values()), confidence=confidence)
            if inside is not None:
                yield from ({**head, **row} for row in _best_rows(contestants, inside))
        for bound in (name for name in BOUNDS if name in here):
            others = [name for name in contestants if name != bound]
            if others:
                gaps = contrasts(
                    [(here[bound], here[name]) for name in others], confidence=confidence
                )
                for name, gap in zip(others, gaps, strict=True):
                    row = {"kind": GAP, "detector": name, "versus": bound, "term": "difference"}
                    yield {**head, **row, **gap.columns()}


def best_set(aucs: Sequence[Aucs], *, confidence: float) -> list[bool] | None:
    """Say which AUCs (K = 1 each) cannot be distinguished from the largest; None without groups.

    Args:
        aucs: of the same rows and seeds.
        confidence: that the truly largest is among them.
    """
    values = np.concatenate([one.value for one in aucs], axis=1)
    influence = np.concatenate([one.influence for one in aucs], axis=1)
    there = np.isfinite(values).all(axis=1)
    if not there.any() or min(int(one.groups[there].min()) for one in aucs) < LEAST_GROUPS:
        return None
    values, influence = values[there], influence[there]
    return [_may_be_best(values, influence, at, confidence) for at in range(values.shape[1])]


def _may_be_best(values: Floats, influence: Floats, at: int, confidence: float) -> bool:
    """Say whether nothing is above one detector by more than chance."""
    from scipy.stats import t

    others = [k for k in range(values.shape[1]) if k != at]
    joint = join_seeds(
        values[:, others] - values[:, [at]], influence[:, others] - influence[:, [at]]
    )
    error = joint.error
    same = error <= 1e-12
    # Two detectors of the same scores are one.
    if (joint.value[same] > 1e-12).any():
        return False
    if same.all():
        return True
    chance = t.sf(joint.value[~same] / error[~same], joint.freedom[~same]).min()
    return bool(chance * len(others) >= 1 - confidence)


def _same_rows(found: Mapping[str, Aucs]) -> dict[str, Aucs]:
    """Return the detectors that are measured on the rows that most are measured on."""
    rows = {
        name: tuple(np.concatenate([one.members[:, 0], one.nonmembers[:, 0]]).tolist())
        for name, one in found.items()
    }
    counted = list(rows.values())
    most = max(counted, key=lambda key: (counted.count(key), key))
    return {name: one for name, one in found.items() if rows[name] == most}


def _best_rows(contestants: Mapping[str, Aucs], inside: Sequence[bool]) -> Iterator[Row]:
    """Yield the contestants, best first; says of each whether it may be the best."""
    held = dict(zip(contestants, inside, strict=True))
    values = {name: float(np.nanmean(one.value)) for name, one in contestants.items()}
    first = next(iter(contestants.values()))
    for name, value in sorted(values.items(), key=lambda item: -item[1]):
        yield {
            "kind": BEST,
            "detector": name,
            "term": "auc",
            "value": value,
            "n_members": int(first.members.sum()),
            "n_seeds": int(np.isfinite(first.value[:, 0]).sum()),
            "shown": "may be the best" if held[name] else "",
        }
