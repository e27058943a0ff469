"""Is a detector at chance where there is nothing to find?

On the base model and the clean twin that is all members, on a model that was trained again without
a forget set the members that it never saw.
"""

from dataclasses import replace

from analysis.checks.chance import CHANCE, chance_width, possible_aucs, within_margin
from analysis.metrics_table import Cell
from analysis.validate.label_checks import interval_text
from detect.validate.finding import Finding

_OTHERWISE = "It tells the sides apart by something other than membership."
_LOOK = "Look at what differs between the sides without a model: length, topic, labels, gaps."


def chance(name: str, cell: Cell | None, number: int) -> Finding:
    """Say whether the detector is at chance on a model that saw none of the members.

    Args:
        name: of the model, in words.
        cell: its pooled AUC there.
        number: how many such models are looked at.
    """
    return _at_chance(
        f"chance on the {name}", cell, number, where=f"on the {name}", saw="none of the members"
    )


def after_removal(forgotten: Cell | None, kept: Cell | None, number: int) -> Finding:
    """Say whether the detector is at chance on members that the retrained model never saw.

    Args:
        forgotten: its pooled AUC for these members.
        kept: its pooled AUC for the members that this model did see.
        number: how many models are looked at.
    """
    found = _at_chance(
        "chance on the retrained model",
        forgotten,
        number,
        where="for the forgotten members on the retrained model",
        saw="none of them",
    )
    if kept is None or not kept.available:
        return found
    beside = f" For the members that it did see: AUC {interval_text(kept)}."
    return replace(found, found=found.found + beside)


def _at_chance(check: str, cell: Cell | None, number: int, *, where: str, saw: str) -> Finding:
    if cell is None or not cell.available:
        return Finding(
            check=check, severity="note", found=f"There is no AUC with an interval {where}."
        )
    ends = possible_aucs(cell)
    shown = interval_text(cell)
    if abs(cell.value - CHANCE) > chance_width(cell, number):
        return Finding(
            check=check,
            severity="wrong",
            found=f"AUC {shown} {where}, which saw {saw}.",
            meaning=_OTHERWISE,
            action=_LOOK,
        )
    if within_margin(ends):
        return Finding(
            check=check, severity="passed", found=f"AUC {shown} {where}: chance, as it must."
        )
    largest = min(0.5, max(0.5 - ends.low, ends.high - 0.5))
    return Finding(
        check=check,
        severity="note",
        found=f"AUC {shown} {where}: no farther from 0.5 than chance.",
        meaning=f"So few rows could miss a bias as large as {largest:.2f}.",
    )
