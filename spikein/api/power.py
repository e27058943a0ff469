"""Estimate the examples and seeds that an experiment needs: `spikein plan --power`.

Unknown values are assumed (`analysis.factors.power.Assumptions`), set by the user, or taken from
a finished run: the medians over its arms under the detector of its headline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Annotated

from pydantic import Field

from analysis.factors.power import (
    VARIANCE,
    Assumptions,
    auc_power,
    difference_power,
    needed_members,
    seen_auc,
    seen_difference,
    typical,
)
from analysis.findings import split_by_cohort
from analysis.summary import find_headline
from inject.errors import InputError
from inject.examples.contaminant import Contaminant
from inject.plan.settings import Copies
from inject.settings import Settings
from spikein.api.experiment import AnyExperiment, Overrides, read
from spikein.api.finished_run import load_run
from spikein.config.overrides import read_settings
from spikein.estimates.injection import expected_counts

_SEEDS = (1, 3, 5, 10)
_DEFAULT_DELTA = 0.05


class PowerAssumptions(Settings):
    """Values that a user may set in place of unknown ones."""

    auc: Annotated[float, Field(gt=0.5, lt=1)] | None = None
    """AUC of the arm."""
    delta: Annotated[float, Field(gt=0, lt=0.5)] | None = None
    """Difference of two arms to detect."""
    seed_deviation: Annotated[float, Field(ge=0, lt=0.5)] | None = None
    """Standard deviation of the true AUC over seeds."""
    correlation: Annotated[float, Field(gt=-1, lt=1)] | None = None
    """Correlation of two arms by their rows."""
    seed_correlation: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Correlation of two arms by their seeds."""
    shared: Annotated[float, Field(ge=0, le=1)] | None = None
    """Part of the rows' variance that all seeds share."""
    design_effect: Annotated[float, Field(gt=0, lt=1000)] | None = None
    """Variance over that of independent rows (groups)."""
    nonmembers_per_member: Annotated[float, Field(gt=0, lt=1e6)] | None = None
    """Non-members for each tested member."""
    confidence: Annotated[float, Field(gt=0.5, lt=1)] | None = None
    """Confidence of the interval."""


@dataclass(frozen=True, kw_only=True)
class PowerRow:
    """Power with a number of seeds."""

    seeds: int
    auc_power: float
    """With the experiment's members: the power to distinguish the assumed AUC from 0.5."""
    difference_power: float
    seen_auc: float | None
    """The smallest AUC that is distinguishable from 0.5 with 80 % power; None if none is."""
    seen_difference: float | None
    needed_for_auc: int | None
    """Members in the experiment file, all datasets together; None if no number does."""
    needed_for_difference: int | None


@dataclass(frozen=True, kw_only=True)
class PowerResult:
    """The power of an experiment."""

    name: str
    members: int
    """In the file, all datasets together."""
    tested: float
    """Members with a copy in the test split, expected in the arm that has fewest."""
    seeds: int
    delta: float
    assumed: Assumptions
    sources: Mapping[str, str]
    """Where each assumption comes from."""
    rows: tuple[PowerRow, ...]


def power(
    experiment: AnyExperiment,
    *,
    overrides: Overrides = (),
    assume: Sequence[str] = (),
    from_run: str | None = None,
    runs: Path | None = None,
) -> PowerResult:
    """Estimate the power of an experiment, and the members and seeds needed for more.

    Args:
        experiment: as in `spikein.plan`.
        overrides: values that replace those of the experiment, by dotted key.
        assume: `KEY=VALUE`, such as `delta=0.05` or `auc=0.65`.
        from_run: a finished run whose own variances are taken.
        runs: the folder of runs.

    Raises:
        InputError: for a bad assumption, or a run that has no such numbers.
    """
    checked = read(experiment, overrides)
    first = checked.experiment
    share = (1 - first.detect.tune_share) * min(
        _exposed_share(arm.experiment.copies, arm.experiment.contaminants) for arm in checked.arms
    )
    members = sum(contaminant.members for contaminant in first.contaminants)
    outside = sum(contaminant.nonmembers for contaminant in first.contaminants)
    tested = members * share
    values: dict[str, float] = {
        "nonmembers_per_member": outside * (1 - first.detect.tune_share) / max(tested, 1e-9),
        "confidence": first.analysis.confidence,
    }
    sources = dict.fromkeys(values, "the experiment")
    if from_run is not None:
        from_finished = _from_run(from_run, runs)
        values |= from_finished
        sources |= dict.fromkeys(from_finished, f"the run {from_run}")
    set_by_user = read_settings(PowerAssumptions, None, assume, {}).model_dump(exclude_none=True)
    values |= set_by_user
    sources |= dict.fromkeys(set_by_user, "as given")
    delta = values.pop("delta", _DEFAULT_DELTA)
    assumed = replace(Assumptions(), **values)
    if assumed.auc + delta >= 1:
        raise InputError(
            f"an AUC of {assumed.auc:g} plus {delta:g} is not an AUC", where="--assume"
        )
    rows = [
        _row(seeds, tested, share, delta, assumed) for seeds in sorted({*_SEEDS, len(first.seeds)})
    ]
    return PowerResult(
        name=first.name,
        members=members,
        tested=tested,
        seeds=len(first.seeds),
        delta=delta,
        assumed=assumed,
        sources={name: sources.get(name, "assumed") for name in PowerAssumptions.model_fields},
        rows=tuple(rows),
    )


def _row(seeds: int, tested: float, share: float, delta: float, assumed: Assumptions) -> PowerRow:
    def in_file(needed: int | None) -> int | None:
        return None if needed is None else ceil(needed / share)

    members = max(tested, 2.0)
    return PowerRow(
        seeds=seeds,
        auc_power=auc_power(members, seeds, assumed),
        difference_power=difference_power(delta, members, seeds, assumed),
        seen_auc=seen_auc(members, seeds, assumed),
        seen_difference=seen_difference(members, seeds, assumed),
        needed_for_auc=in_file(needed_members(seeds, assumed)),
        needed_for_difference=in_file(needed_members(seeds, assumed, delta=delta)),
    )


def _exposed_share(copies: Copies, contaminants: Sequence[Contaminant]) -> float:
    """Return the share of members that are expected to have a copy."""
    members = sum(contaminant.members for contaminant in contaminants)
    return 1 - expected_counts(copies, members)[2][0] / max(members, 1)


def _from_run(name: str, runs: Path | None) -> dict[str, float]:
    """Return a run's own variances, and the AUC of its headline."""
    run = load_run(name, runs=runs)
    best = find_headline(split_by_cohort(run.metrics, run.axes))
    if best is None:
        raise InputError("has no detector with an interval to take variances of", where=name)
    rows = [
        row
        for row in run.factors.to_pylist()
        if row["kind"] == VARIANCE and row["detector"] == best.detector
    ]
    variances = {}
    for term in ("design_effect", "seed_deviation", "shared", "correlation", "seed_correlation"):
        value = typical(row["value"] for row in rows if row["term"] == term)
        if value is not None:
            variances[term] = min(value, 0.999) if term == "correlation" else value
    if not variances:
        raise InputError(f"has no variances of {best.detector}", where=name)
    # An AUC at or under chance cannot be distinguished from it.
    return {**variances, "auc": min(max(best.cell.value, 0.51), 0.98)}
