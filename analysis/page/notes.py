"""What a reader must know: rows that pools dropped, protected texts, what detectors note."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from analysis.arm import Arm, Cohort
from detect.scores.table import score_notes
from inject.examples.example import Loss

_STILL_USED = (Loss.CUT, Loss.CUT_BEFORE_ANSWER)
_NAMED = 10
"""Rows named in a sentence; the others are in the pool's table."""


class PoolReport(NamedTuple):
    """What became of the rows of one pool of examples."""

    label: str
    datasets: Mapping[str, Mapping[str, Any]]
    """Dataset → the facts that the pool records of it (`examples.json`)."""


def pool_notes(pools: Sequence[PoolReport]) -> list[str]:
    """Return a sentence for everything that is unusual, dataset by dataset."""
    notes = []
    for pool in pools:
        where = f"{pool.label} · " if len(pools) > 1 else ""
        for name, facts in pool.datasets.items():
            notes += _dataset_notes(f"{where}{name}", facts)
            if facts["protected"]:
                notes.append(
                    f"{name} is a protected dataset: its texts appear neither here nor in the "
                    "tables of this folder. Do not share the artifacts that hold them."
                )
    return notes


def _dataset_notes(name: str, facts: Mapping[str, Any]) -> list[str]:
    notes = []
    lost = facts["losses"]
    reasons = ", ".join(
        f"{count} {loss}" for loss, count in lost.items() if loss not in _STILL_USED
    )
    if reasons:
        notes.append(f"{name}: dropped {reasons}.")
    if repeated := facts["repeated_ids"]:
        notes.append(f"{name}: {repeated} rows have the id of an earlier row; each counts.")
    if pooled := facts["strata_pooled"]["strata"]:
        notes.append(
            f"{name}: {pooled} of {facts['strata']} strata "
            f"({facts['strata_pooled']['rows']} rows) are too small to be balanced on "
            "both sides (or their groups too large); they were drawn as one stratum."
        )
    if facts["split"]:
        notes.append(
            f"{name}: {facts['split']} rows are longer than the context and were left whole, over "
            "several windows."
        )
    if cut := sum(lost.get(loss, 0) for loss in _STILL_USED):
        notes.append(f"{name}: {cut} rows are longer than the context and were cut to it.")
    if unanswered := facts[Loss.CUT_BEFORE_ANSWER]:
        named = ", ".join(unanswered[:_NAMED])
        more = f" and {len(unanswered) - _NAMED} more" if len(unanswered) > _NAMED else ""
        notes.append(
            f"{name}: {len(unanswered)} of these rows were cut before the end of their answer, "
            f"which no model learns from them: {named}{more}."
        )
    return notes


def detector_notes(arms: Sequence[Arm], *, besides: Collection[str]) -> list[str]:
    """Return what detectors note on the scores of the models, each note once.

    Args:
        arms: the scored models.
        besides: notes that the page shows elsewhere.
    """
    found: dict[str, list[str]] = {}
    for arm in arms:
        label = Cohort(tuple(arm.axes.items()), arm.model).label()
        model = " · ".join(part for part in (arm.model, label, f"seed {arm.seed}") if part)
        for note in score_notes(arm.scores):
            if note not in besides:
                found.setdefault(note, []).append(model)
    return [
        note if len(models) == len(arms) else f"{note} ({'; '.join(models)})"
        for note, models in found.items()
    ]
