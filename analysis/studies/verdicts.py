"""The verdict on each claim of a study, one row per claim and detector.

Settings are the defaults and rows those of the split `test`, within dataset, weighted by members.
All comparisons of the study are one family: claims times detectors, computed or not. Spreads are
outside the family. Row counts are those of the seed and arm with the fewest. Cost: 20 ms per arm,
seed and detector.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import Arm, Cohort, LoadedArm, axis_names, cohorts, load_arm
from analysis.auc_cells import PreparedCohort, compare_column
from analysis.copy_bins import ALL, EVERY_MEMBER, CopiesCell, copies_cells, is_dose
from analysis.factors.study import CONTAMINATED
from analysis.intervals.influence import Counts, Floats
from analysis.settings import AnalysisSettings
from analysis.studies.claims import Claim, split_term
from analysis.studies.contrasts import (
    Effect,
    dose_by_seed,
    effect_over_seeds,
    from_reported,
    probits,
)
from analysis.studies.seed_spread import Spread, seed_spread
from inject.settings import Settings

QUESTION = "claims"
Row = dict[str, Any]


class StudyClaims(Settings):
    """The claims of an experiment, with the meaning of the names in them."""

    claims: dict[str, Claim]
    arms: dict[str, dict[str, str]]
    """The axes of each named arm."""
    design: dict[str, dict[str, float]]
    """By arm, log2 of the columns that effects are fitted to; empty without effects."""

    @property
    def detectors(self) -> list[str]:
        """All detectors that a claim is about."""
        claims = self.claims.values()
        return list(dict.fromkeys(name for claim in claims for name in claim.detectors))

    @property
    def family(self) -> int:
        """Number of comparisons whose intervals hold together."""
        return sum(len(claim.detectors) for claim in self.claims.values() if claim.spread is None)


class _SeedNumbers(NamedTuple):
    """One measure of one term under all seeds, [S] each; NaN for a seed that lacks it."""

    value: Floats
    variance: Floats
    """Due to the rows of the seed."""
    members: Counts
    nonmembers: Counts
    note: str = ""
    """Why there is none; empty if there is one."""


@dataclass(frozen=True, kw_only=True)
class _NamedArm:
    """One arm under its seeds."""

    name: str
    loaded: Sequence[LoadedArm]
    work: PreparedCohort

    def numbers(self, claim: Claim, detector: str, dataset: str | None) -> _SeedNumbers:
        """Return the measure of a claim."""
        if detector not in self.loaded[0].detectors:
            return self._missing(f"{detector} did not score {self.name}")
        cells, copies = self.doses if claim.measure == "dose75" else ([_claim_cell(claim)], None)
        column = compare_column(replace(self.work, cells=cells), self.loaded[0].default(detector))
        aucs = column.aucs(column.scores).by_seed(dataset)
        if not aucs.value.size:
            return self._missing("no rows on both sides")
        variance = np.square(aucs.influence).sum(axis=2)
        counts = aucs.members.sum(axis=1), aucs.nonmembers.max(axis=1)
        if copies is not None:
            doses, note = dose_by_seed(aucs.value, variance, copies)
            note = f"{self.name}: {note}" if note else ""
            return _SeedNumbers(doses, np.full(len(doses), np.nan), *counts, note)
        value = aucs.value[:, 0]
        if claim.measure == "probit":
            value = probits(value, *counts)
        return _SeedNumbers(value, variance[:, 0], *counts)

    @cached_property
    def doses(self) -> tuple[list[CopiesCell], Floats]:
        """The bins of copies, each with the geometric mean of its members' copies."""
        counts = np.concatenate([arm.copies[arm.member & arm.test] for arm in self.loaded])
        bins = copies_cells(counts[counts > 0].tolist(), high_copies=1)
        cells = [cell for cell in bins if is_dose(cell.label)]
        logs = [float(np.log2(counts[cell.holds(counts)]).mean()) for cell in cells]
        return cells, np.exp2(logs)

    def _missing(self, note: str) -> _SeedNumbers:
        nothing, counts = np.full(len(self.loaded), np.nan), np.zeros(len(self.loaded), np.int64)
        return _SeedNumbers(nothing, nothing, counts, counts, note)


def _claim_cell(claim: Claim) -> CopiesCell:
    """Return the members that a claim is about."""
    if claim.copies is None:
        return CopiesCell(ALL, 1, EVERY_MEMBER.high)
    low, high = claim.copies
    return CopiesCell(str(low) if low == high else f"{low}-{high}", low, high)


def claim_rows(
    arms: Sequence[Arm], study: StudyClaims, settings: AnalysisSettings
) -> Iterator[Row]:
    """Yield the rows of the question `claims`.

    Args:
        arms: all models of the experiment; every arm has the same seeds.
        study: its claims.
        settings: which rows are compared, and the confidence.
    """
    named = _named_arms(arms, study, settings)
    for name, claim in study.claims.items():
        weights = claim.weights(study.design)
        for detector in claim.detectors:
            numbers = [
                named[arm].numbers(claim, detector, dataset)
                for arm, dataset in map(split_term, weights)
            ]
            yield {
                "claim": name,
                "hypothesis": claim.hypothesis,
                "kind": claim.form,
                "comparison": claim.comparison,
                "detector": detector,
                "copies": _claim_cell(claim).label,
                "measure": claim.measure if claim.spread is None else "deviation",
                **_answer(claim, [*weights.values()], numbers, study.family, settings.confidence),
            }


def _named_arms(
    arms: Sequence[Arm], study: StudyClaims, settings: AnalysisSettings
) -> dict[str, _NamedArm]:
    """Read the arms that claims are about."""
    terms = [term for claim in study.claims.values() for term in claim.weights(study.design)]
    axes, by_cohort = axis_names(arms), cohorts(arms)
    named = {}
    for name in dict.fromkeys(split_term(term)[0] for term in terms):
        cohort = Cohort(tuple((key, study.arms[name].get(key, "")) for key in axes), CONTAMINATED)
        loaded = [load_arm(arm) for arm in by_cohort[cohort]]
        first = loaded[0]
        columns = [first.default(name) for name in study.detectors if name in first.detectors]
        work = PreparedCohort.prepare(cohort, loaded, columns, settings)
        named[name] = _NamedArm(name=name, loaded=loaded, work=work)
    return named


def _answer(
    claim: Claim,
    weights: Sequence[float],
    numbers: Sequence[_SeedNumbers],
    family: int,
    confidence: float,
) -> Row:
    """Return the number of one detector, its verdict and its sample size."""
    values = np.array(weights) @ np.array([each.value for each in numbers])
    used = np.isfinite(values)
    answer: Effect | Spread
    if claim.spread is not None:
        answer = seed_spread(values[used], numbers[0].variance[used], confidence=confidence)
    else:
        effect = effect_over_seeds(values[used], confidence=confidence, family=family)
        answer = from_reported(effect) if claim.measure == "probit" else effect
    answer = answer._replace(note=next(filter(None, (n.note for n in numbers)), answer.note))
    sides = [np.array([each[side] for each in numbers])[:, used] for side in (2, 3)]
    fewest = [int(side.min(initial=side.max(initial=0))) for side in sides]
    return {
        **answer._asdict(),
        "verdict": answer.verdict(claim.least_effect),
        "margin": claim.least_effect,
        "n_seeds": int(used.sum()),
        "members_per_seed": fewest[0],
        "nonmembers_per_seed": fewest[1],
    }
