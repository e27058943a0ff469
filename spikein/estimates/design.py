"""The design of an experiment with several arms: what separates them, before anything runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.studies.design import Design, design
from spikein.config.design_rows import Rows, design_rows, matrix_columns
from spikein.config.sweep import ArmExperiment
from spikein.estimates.injection import InjectionEstimate

AXES = "the axes"


@dataclass(frozen=True, kw_only=True)
class StudyDesign:
    """The arms, and what their design can separate."""

    axes: tuple[str, ...]
    """Dotted keys in which the arms differ."""
    rows: Rows
    """Values of the axes and of the columns that follow from the settings, by arm."""
    named: bool
    """Whether the arms have names; else they go by their labels."""
    shares: Mapping[str, float | None]
    """Expected share of the copies in the training stream, by arm; None if unknown."""
    matrices: Mapping[str, Design]
    """Of the axes, and of the columns of each claim."""
    claimed: bool
    """Whether the experiment has claims."""


def study_design(
    arms: Sequence[ArmExperiment], estimates: Sequence[InjectionEstimate]
) -> StudyDesign | None:
    """Return the design of an experiment's arms; None if there is one arm, of any seeds.

    Args:
        arms: the arms of an experiment.
        estimates: the injection of each.
    """
    first = arms[0]
    rows = design_rows(arms)
    if len(rows) < 2:
        return None
    claims = first.experiment.claims
    shares: dict[str, float | None] = {}
    for arm, estimate in zip(arms, estimates, strict=True):
        shares.setdefault(arm.cohort, estimate.share)
    titles: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for name, claim in claims.items():
        titles.setdefault(matrix_columns(claim), []).append(f"claims.{name}")
    matrices = {AXES: design(list(rows.values()), first.axes)}
    for (columns, named), names in titles.items():
        if columns:
            chosen = [row for arm, row in rows.items() if arm in (named or rows)]
            matrices[", ".join(names)] = design(chosen, columns)
    return StudyDesign(
        axes=tuple(first.axes),
        rows=rows,
        named=bool(first.name),
        shares=shares,
        matrices=matrices,
        claimed=bool(claims),
    )
