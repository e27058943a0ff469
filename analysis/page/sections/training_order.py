"""What the page shows of the training order: the palimpsest test and the insertion contrast."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from analysis.findings import ArmOf, Findings, Row, group_by
from analysis.intervals.estimate import Estimate
from analysis.metrics import AUC, POOLED
from analysis.page.parts import Note, Section, answer, folded
from analysis.page.table import Table, listing, p_text
from analysis.trajectory.insertion import CONTRAST, NO_CHECKPOINTS, NONMEMBERS, UNEXPOSED
from analysis.trajectory.insertion import QUESTION as INSERTION
from analysis.trajectory.palimpsest import NO_REFERENCE
from analysis.trajectory.palimpsest import QUESTION as PALIMPSEST
from analysis.unit import AUC as AUCS
from analysis.unit import DIFFERENCE, Unit

RHO = Unit("ρ", 2)
_REFERENCES = {"twin": "the clean twin", "base": "the base model", NO_REFERENCE: "no reference"}


def order_section(
    results: Mapping[str, pa.Table], trajectory: Mapping[str, pa.Table] | None, arm_of: ArmOf
) -> Section | None:
    """Return the audits that the recorded order of training permits.

    Args:
        results: the tables of the analysis, by question; runs of older versions lack this one.
        trajectory: those of detection along training; None without checkpoints.
        arm_of: the arm of a row, in words.
    """
    palimpsest = results.get(PALIMPSEST)
    insertion = None if trajectory is None else trajectory.get(INSERTION)
    rows = [] if palimpsest is None else palimpsest.to_pylist()
    pooled = [row for row in rows if row["dataset"] == POOLED]
    if not pooled:
        return None
    contrasts = None if insertion is None else _contrasts(insertion, arm_of)
    lacking = None if trajectory else Note(f"Insertion contrast: {NO_CHECKPOINTS}.", "how")
    return answer(
        "training-order",
        "Training order",
        "Are recently seen texts more likely?",
        " ".join(
            _sentence(row, arm_of, len(pooled)) for row in pooled if row["p_value"] is not None
        ),
        extra=[
            _correlations(rows, arm_of),
            folded(contrasts.title, [contrasts]) if contrasts else lacking,
        ],
    )


def _sentence(row: Row, arm_of: ArmOf, n_tests: int) -> str:
    """Return the verdict on one arm, at level 0.05 over all arms (Bonferroni)."""
    arm = arm_of(row)
    more_likely = "more likely" if row["p_value"] < 0.05 / n_tests else "not detectably more likely"
    rho = RHO.text(row["value"], row["low"], row["high"])
    return (
        f"{f'{arm[0].upper()}{arm[1:]}: m' if arm else 'M'}embers that were seen later are "
        f"{more_likely} ({rho}, p {p_text(row['p_value'])})."
    )


def _correlations(rows: Sequence[Row], arm_of: ArmOf) -> Table | None:
    permutations = max((row["permutations"] or 0 for row in rows), default=0)
    return listing(
        "Palimpsest test",
        ("Dataset", "Arm", "Rank correlation", "p", "Members", "Reference", "Note"),
        [
            (
                "all datasets" if row["dataset"] == POOLED else row["dataset"],
                arm_of(row),
                RHO.brief(row),
                p_text(row["p_value"]),
                f"{row['n_members']:,}",
                _REFERENCES.get(row["versus"], ""),
                Estimate.of(row).note,
            )
            for row in rows
        ],
        "Spearman's correlation of the optimiser step of the last exposure with the mean "
        "log-probability minus that under the reference, among members with equally many copies. "
        f"p is one-sided, from {permutations:,} permutations of steps; intervals: jackknife over "
        "groups. A learning rate that changes affects it also. The sentences above allow for the "
        "number of arms (Bonferroni).",
    )


def _contrasts(insertion: pa.Table, arm_of: ArmOf) -> Table | None:
    """Return one row per pair of checkpoints, datasets pooled."""
    pairs = group_by(
        (row for row in insertion.to_pylist() if row["dataset"] == POOLED),
        lambda row: (f"{row['from_step']} to {row['to_step']}", arm_of(row)),
    )
    return listing(
        "Insertion contrast",
        (
            "Steps", "Arm", "Fall beyond non-members", "Fall beyond members not exposed", "AUC",
            "Members", "Note",
        ),
        [(*pair, *_contrast_texts(Findings(rows))) for pair, rows in pairs.items()],
        "Members whose first exposure is between two checkpoints: by how many nats per token their "
        "loss falls from one to the other beyond that of other rows (above 0: learnt), and the AUC "
        "of that fall against non-members.",
    )  # fmt: skip


def _contrast_texts(rows: Findings) -> Sequence[str]:
    places: Sequence[tuple[Unit, Mapping[str, str]]] = (
        (DIFFERENCE, {"metric": CONTRAST, "versus": NONMEMBERS}),
        (DIFFERENCE, {"metric": CONTRAST, "versus": UNEXPOSED}),
        (AUCS, {"metric": AUC, "versus": NONMEMBERS}),
    )
    first = Estimate.of(rows.rows[0])
    texts = [unit.brief(rows.get(**place)) for unit, place in places]
    return [*texts, f"{first.members:,}", first.note]
