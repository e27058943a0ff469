"""What `spikein validate` prints for people: the ranking, and one line for each finding."""

from math import isfinite
from typing import TYPE_CHECKING

from spikein.cli.output import Column, print_table, say

if TYPE_CHECKING:
    from analysis.metrics_table import Cell
    from analysis.validate.validation import Judged, Validation

_STYLES = {"wrong": "bold red", "look": "yellow", "note": "", "passed": "green"}


def print_validation(found: "Validation") -> None:
    """Print the ranking, the differences to others, and the findings of each detector."""
    arms = f" (1 of {len(found.arms)} arms)" if len(found.arms) > 1 else ""
    say(f"{found.name}, arm {found.arm}{arms}: all detectors on the test split")
    _print_ranking(found)
    for one in found.judged:
        _print_judged(found, one)


def _print_ranking(found: "Validation") -> None:
    lines = found.ranking.lines
    rates = [
        rate
        for rate in found.settings.false_positive_rates
        if any(_shown(line.tpr[rate]) for line in lines)
    ]
    judged = {line.detector for line in lines if line.judged}
    print_table(
        [
            Column("", right=True),
            Column("detector", whole=True),
            Column("setting", whole=True),
            Column("AUC", right=True),
            Column(f"{found.settings.confidence:.0%} interval", right=True),
            *(Column(f"TPR at {100 * rate:g}% FPR", right=True) for rate in rates),
            *(Column(f"AUC: {name} minus it", right=True) for name in sorted(judged)[:2]),
            Column("remark"),
        ],
        (
            (
                "" if line.rank is None else str(line.rank),
                f"→ {line.detector}" if line.judged else line.detector,
                line.setting,
                _value(line.auc),
                _ends(line.auc),
                *(_shown(line.tpr[rate]) for rate in rates),
                *(_gap(found, name, line.detector) for name in sorted(judged)[:2]),
                _remark(line.role, line.own_rows, line.auc),
            )
            for line in lines
        ),
    )
    cell = next((line.auc for line in lines if line.auc is not None and not line.own_rows), None)
    if cell is not None:
        say(
            f"{cell.n_members} members and {cell.n_nonmembers} non-members, "
            f"{cell.n_seeds} {'seed' if cell.n_seeds == 1 else 'seeds'}; settings chosen on tune. "
            "Differences are paired: the same rows, the same resamplings.",
            style="dim",
        )


def _print_judged(found: "Validation", one: "Judged") -> None:
    line = found.ranking.line(one.name)
    ranked = [other for other in found.ranking.lines if other.rank is not None]
    place = "without a rank" if line.rank is None else f"{line.rank} of {len(ranked)} by AUC"
    say("")
    say(
        f"{one.name}: {place}; {one.candidate.takes}; {one.seconds:.2g} s for 1,000 rows.",
        style="bold",
    )
    for finding in one.findings:
        say(
            f"  {finding.severity:<6}  {finding.check}: {finding.text}",
            style=_STYLES[finding.severity],
        )
    for note in one.notes:
        say(f"  note    {note}")
    for title, part in (("dataset", "dataset"), ("copies", "copies")):
        names = [name for name in found.ranking.table.values(part) if name != "all"]
        cells = [
            (name, found.ranking.table.get(one.name, selection=line.selection, **{part: name}))
            for name in names
        ]
        if len(cells) > 1:
            shown = ", ".join(
                f"{name} {_value(cell)} [{_ends(cell)}]" for name, cell in cells if cell
            )
            say(f"  AUC by {title}: {shown}")
    if len(one.arms) > 1:
        shown = "; ".join(f"{arm} {_value(cell)} [{_ends(cell)}]" for arm, cell in one.arms)
        say(f"  AUC by arm: {shown}")


def _remark(role: str, own_rows: bool, cell: "Cell | None") -> str:
    parts = [role]
    if own_rows and cell is not None:
        parts.append(f"own rows: {cell.n_members} + {cell.n_nonmembers}")
    if cell is None or not isfinite(cell.value):
        parts.append("no AUC")
    return "; ".join(part for part in parts if part)


def _gap(found: "Validation", name: str, other: str) -> str:
    gap = found.ranking.difference(name, other)
    if gap is None or not isfinite(gap.estimate.value):
        return ""
    ends = ""
    if isfinite(gap.estimate.low):
        ends = f" [{gap.estimate.low:+.2f}, {gap.estimate.high:+.2f}]"
    return f"{gap.estimate.value:+.2f}{ends}"


def _value(cell: "Cell | None") -> str:
    return "" if cell is None or not isfinite(cell.value) else f"{cell.value:.3f}"


def _ends(cell: "Cell | None") -> str:
    if cell is None or not isfinite(cell.low):
        return ""
    return f"{cell.low:.3f} – {cell.high:.3f}"


def _shown(cell: "Cell | None") -> str:
    if cell is None or not isfinite(cell.value):
        return ""
    ends = "" if not isfinite(cell.low) else f" [{cell.low:.2f}, {cell.high:.2f}]"
    return f"{cell.value:.2f}{ends}"
