"""How `spikein detect` shows scores: AUCs, decisions, counts, and the same as plain values."""

from collections import Counter
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spikein.cli.output import print_rows, say

if TYPE_CHECKING:
    from analysis.any_scores import AucRow
    from analysis.decisions.flagged import FileDecision
    from analysis.intervals.estimate import Estimate
    from detect.user_rows.labelled_rows import LabelledRows
    from spikein.scoring.scored_rows import ScoredRows


def print_result(result: "ScoredRows", out: Path) -> None:
    """Print AUCs and TPRs where the rows carry labels, else how many rows were scored."""
    if result.rows.labels is None:
        print_rows(
            {
                "detector": counts["detector"],
                "setting": counts["setting"],
                "scored": counts["scored"],
                "not scored": counts["unscored"],
                "reasons": "; ".join(f"{n} {reason}" for reason, n in counts["reasons"].items()),
            }
            for counts in _counts(result)
        )
        say("The rows carry no labels, so there is no AUC to report.", style="dim")
    else:
        _print_aucs(result)
        _print_documents(result)
    _print_decisions(_decisions(result), by_held_out=result.calibration is not None)
    say(f"Scores of {len(result.rows.texts)} rows: {out}", style="bold")


def summary(result: "ScoredRows", out: Path) -> dict[str, Any]:
    """Return what `--json` prints."""
    counts = _counts(result)
    documents = _documents(result)
    if result.rows.labels is not None:
        for entry, row in zip(counts, _auc_rows(result), strict=True):
            entry |= {
                "auc": row.auc,
                "tpr": {f"{rate:g}": estimate for rate, estimate in row.tpr.items()},
                "members": row.n_members,
                "nonmembers": row.n_nonmembers,
                "own_rows": row.own_rows,
            }
    return {
        "out": str(out),
        **rows_counted(result.rows),
        "limited": result.rows.limited,
        "scores": counts,
        "documents": documents
        and [
            {
                "detector": row.detector,
                "setting": row.setting,
                "auc": row.auc,
                "members": row.n_members,
                "nonmembers": row.n_nonmembers,
            }
            for row in documents
        ],
        "flagged": _decisions(result),
        "notes": result.notes,
    }


def rows_counted(rows: "LabelledRows") -> dict[str, int | None]:
    """Return how many rows there are, and of which side where that is known."""
    labels = rows.labels
    return {
        "rows": len(rows.texts),
        "members": None if labels is None else sum(labels),
        "nonmembers": None if labels is None else len(labels) - sum(labels),
    }


def _counts(result: "ScoredRows") -> list[dict[str, Any]]:
    """Return, for each detector and setting, how many rows were scored, and why others were not."""
    reasons: dict[tuple[str, str], Counter[str]] = {}
    columns = (result.scores[name].to_pylist() for name in ("detector", "setting", "reason"))
    for detector, setting, reason in zip(*columns, strict=True):
        why = reasons.setdefault((detector, setting), Counter())
        if reason is not None:
            why[reason] += 1
    rows = len(result.rows.texts)
    return [
        {
            "detector": detector,
            "setting": setting,
            "scored": rows - why.total(),
            "unscored": why.total(),
            "reasons": dict(why.most_common()),
        }
        for (detector, setting), why in reasons.items()
    ]


def _auc_rows(result: "ScoredRows") -> "list[AucRow]":
    from analysis.any_scores import auc_table

    # A text that stands twice is no second observation.
    groups = result.rows.groups or result.rows.texts
    return auc_table(result.scores, result.rows.labels or [], groups)


def _print_aucs(result: "ScoredRows") -> None:
    from analysis.settings import AnalysisSettings

    rows = _auc_rows(result)
    rates = [rate for rate in rows[0].tpr if any(not row.tpr[rate].reason for row in rows)]
    interval = f"{AnalysisSettings().confidence:.0%} interval"
    print_rows(
        {
            **_auc_cells(row, interval),
            **{f"TPR at {100 * rate:g}% FPR": _with_interval(row.tpr[rate]) for rate in rates},
            "members": row.n_members,
            "non-members": row.n_nonmembers,
            "remark": _remark(row),
        }
        for row in rows
    )
    say(
        "Above 0.5: members score higher. Intervals count groups, not rows. A TPR at an FPR t "
        "is shown from 10 / t non-members on.",
        style="dim",
    )


def _documents(result: "ScoredRows") -> "list[AucRow] | None":
    from analysis.any_scores import document_table

    if result.rows.labels is None:
        return None
    return document_table(result.scores, result.rows.labels, result.rows.groups)


def _print_documents(result: "ScoredRows") -> None:
    found = _documents(result)
    if found is None:
        return
    say("By document: the mean over the rows of each group.", style="bold")
    print_rows(
        {
            **_auc_cells(row, "interval"),
            "members": row.n_members,
            "non-members": row.n_nonmembers,
        }
        for row in found
    )


def _auc_cells(row: "AucRow", interval: str) -> dict[str, object]:
    auc = row.auc
    return {
        "detector": row.detector,
        "setting": row.setting,
        "AUC": "" if isnan(auc.value) else f"{auc.value:.3f}",
        interval: "" if isnan(auc.low) else f"{auc.low:.3f} – {auc.high:.3f}",
    }


def _with_interval(found: "Estimate") -> str:
    if isnan(found.value):
        return ""
    ends = "" if isnan(found.low) else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.value:.2f}{ends}"


def _remark(row: "AucRow") -> str:
    parts = [
        row.auc.reason or row.auc.caution or "",
        f"{row.unscored} rows not scored" if row.unscored else "",
        "measured on its own rows" if row.own_rows else "",
    ]
    return "; ".join(part for part in parts if part)


def _decisions(result: "ScoredRows") -> "list[FileDecision]":
    """Return what each setting flags; nothing without known non-members."""
    from analysis.decisions.flagged import decide_rows

    return decide_rows(
        result.scores,
        labels=result.rows.labels,
        groups=result.rows.groups,
        calibration=result.calibration,
    )


def _print_decisions(found: "Sequence[FileDecision]", *, by_held_out: bool) -> None:
    """Print the settings that flag rows, and name the others."""
    if not found:
        return
    from analysis.page.table import with_noun
    from analysis.settings import AnalysisSettings

    level = f"{AnalysisSettings().false_discovery_rate:.0%}"
    flagging = [one for one in found if one.flagged]
    say(f"Rows flagged as members at a false-discovery rate of {level}:", style="bold")
    if flagging:
        print_rows(
            {
                "detector": decision.detector,
                "setting": decision.setting,
                "flagged": f"{len(decision.flagged)} of {decision.decided}",
                "non-members": decision.nonmembers if decision.share else None,
                "their share": _false_share(decision),
            }
            for decision in flagging
        )
    calibrations: dict[tuple[int, int, float], list[FileDecision]] = {}
    for decision in found:
        own = (decision.calibration_rows, decision.calibration_groups, decision.smallest_p)
        calibrations.setdefault(own, []).append(decision)
    for (rows, groups, smallest), decisions in calibrations.items():
        named = _settings(decisions) if len(calibrations) > 1 else "Every detector"
        say(
            f"{named}: calibrated by {with_noun(rows, 'row')} in "
            f"{with_noun(groups, 'group')}, so no p-value can be below "
            f"{smallest:.3f} (more known non-members make smaller ones).",
            style="dim",
        )
    if none := [decision for decision in found if not decision.flagged]:
        say(f"No row is flagged by {_settings(none)}.", style="dim")
    calibration = (
        "held-out rows"
        if by_held_out
        else "a random half of the non-members, which are not decided about"
    )
    say(
        f"Conformal p-values, calibrated by {calibration}, and Benjamini-Hochberg, for each "
        f"detector by itself: at most {level} of the flagged are non-members on average, if known "
        "non-members are drawn as those among the rows are.",
        style="dim",
    )


def _settings(decisions: "Sequence[FileDecision]") -> str:
    return ", ".join(f"{one.detector} {one.setting}".rstrip(" -") for one in decisions)


def _false_share(one: "FileDecision") -> str:
    share = one.share
    return "" if share is None else f"{share.value:.0%} [{share.low:.0%}, {share.high:.0%}]"
