"""What `spikein detect` prints of decisions: rows that are flagged, and how many wrongly."""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from spikein.cli.output import print_table, say

if TYPE_CHECKING:
    from analysis.decisions.flagged_file import FileDecision
    from spikein.scoring.detect_file import DetectFileResult


def decisions(result: "DetectFileResult") -> "list[FileDecision]":
    """Return what each setting flags; nothing without known non-members."""
    from analysis.decisions.flagged_file import decide_rows

    return decide_rows(
        result.scores,
        labels=result.rows.labels,
        groups=result.rows.groups,
        calibration=result.calibration,
    )


def print_decisions(found: "Sequence[FileDecision]", *, by_held_out: bool) -> None:
    """Print the settings that flag rows, and name the others."""
    if not found:
        return
    from analysis.settings import AnalysisSettings

    level = f"{AnalysisSettings().false_discovery_rate:.0%}"
    flagging = [one for one in found if one.flagged]
    say(f"Rows flagged as members at a false-discovery rate of {level}:", style="bold")
    if flagging:
        print_table(
            ("detector", "setting", "flagged", "non-members", "their share"),
            (
                (
                    one.detector,
                    one.setting,
                    f"{len(one.flagged)} of {one.decided}",
                    one.nonmembers if one.share else None,
                    _share(one),
                )
                for one in flagging
            ),
        )
    none = dict.fromkeys(f"{one.detector} {one.setting}".rstrip(" -") for one in found)
    for one in flagging:
        none.pop(f"{one.detector} {one.setting}".rstrip(" -"), None)
    if none:
        smallest = min(one.smallest_p for one in found)
        say(
            f"No row is flagged by {', '.join(none)} (no p-value can be below {smallest:.3f}: more "
            "known non-members make smaller ones).",
            style="dim",
        )
    calibration = (
        "held-out rows"
        if by_held_out
        else "a random half of the non-members, which are not decided about"
    )
    say(
        f"Conformal p-values, calibrated by {calibration} ({found[0].calibration_rows} rows in "
        f"{found[0].calibration_groups} groups), and Benjamini-Hochberg, for each detector by "
        f"itself: at most {level} of the flagged are non-members on average, if known non-members "
        "are drawn as those among the rows are.",
        style="dim",
    )


def decision_summary(one: "FileDecision") -> dict[str, Any]:
    """Return a decision as plain JSON values."""
    plain = {**one._asdict(), "flagged": list(one.flagged)}
    share = plain.pop("share")
    plain["share"] = share and {
        name: value if isfinite(value) else None for name, value in share._asdict().items()
    }
    return plain


def _share(one: "FileDecision") -> str:
    share = one.share
    return "" if share is None else f"{share.value:.0%} [{share.low:.0%}, {share.high:.0%}]"
