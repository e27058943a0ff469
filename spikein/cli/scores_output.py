"""Output of `spikein detect`: AUCs, decisions and counts, as tables and as plain values."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.page.table import Table, listing, with_noun
from spikein.cli.output import say, show_parts

if TYPE_CHECKING:
    from analysis.any_scores import AucRow
    from analysis.decisions.flagged import FileDecision
    from analysis.page.parts import Part
    from detect.user_rows.labelled_rows import LabelledRows
    from spikein.scoring.scored_rows import ScoredRows


def print_result(result: "ScoredRows", out: Path) -> None:
    """Print AUCs and TPRs if the rows carry labels, else how many rows were scored."""
    from analysis.page.parts import present

    counts = listing(
        "Rows scored",
        ("Detector", "Setting", "Scored", "Not scored", "Why"),
        [
            (
                *(row["detector"], row["setting"], f"{row['scored']:,}", f"{row['unscored']:,}"),
                "; ".join(f"{number} {reason}" for reason, number in row["reasons"].items()),
            )
            for row in _counts(result)
        ],
        "The rows carry no labels, so there is no AUC to report.",
    )
    aucs = _aucs_tables(result) if result.rows.labels is not None else [counts]
    parts = [_aucs_table(f"AUC, {part}", rows, "") for part, rows in _parts(result).items()]
    decided = _decision_parts(_decisions(result), by_held_out=result.calibration is not None)
    show_parts(present(*aucs, *parts, decided))
    say(f"Scores of {len(result.rows.texts)} rows: {out}", style="bold")


def summary(result: "ScoredRows", out: Path) -> dict[str, Any]:
    """Return the values for `--json`."""
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
        "documents": documents and _values(documents),
        "parts": {part: _values(rows) for part, rows in _parts(result).items()},
        "flagged": _decisions(result),
        "notes": result.notes,
    }


def _values(rows: "Sequence[AucRow]") -> list[dict[str, Any]]:
    return [
        {
            "detector": row.detector,
            "setting": row.setting,
            "auc": row.auc,
            "members": row.n_members,
            "nonmembers": row.n_nonmembers,
        }
        for row in rows
    ]


def rows_counted(rows: "LabelledRows") -> dict[str, int | None]:
    """Return the number of rows, and of members and non-members if known."""
    labels = rows.labels
    return {
        "rows": len(rows.texts),
        "members": None if labels is None else sum(labels),
        "nonmembers": None if labels is None else len(labels) - sum(labels),
    }


def _counts(result: "ScoredRows") -> list[dict[str, Any]]:
    """Return the number of scored rows by detector and setting, and why others were not scored."""
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

    # A text that occurs twice is not a second observation.
    groups = result.rows.groups or result.rows.texts
    return auc_table(result.scores, result.rows.labels or [], groups)


def _parts(result: "ScoredRows") -> "dict[str, list[AucRow]]":
    """Return the AUCs within each part of a benchmark; nothing for a single part."""
    from analysis.any_scores import auc_table

    of_rows = result.rows.parts or []
    names = sorted({*of_rows} - {""})
    labels, groups = result.rows.labels or [], result.rows.groups or result.rows.texts
    tables: dict[str, list[AucRow]] = {}
    for name in names if len(names) > 1 else ():
        chosen = [row for row, part in enumerate(of_rows) if part in (name, "")]
        places = pc.index_in(result.scores["row"], value_set=pa.array(chosen, pa.int64()))
        scores = result.scores.set_column(0, "row", places.cast(pa.int64()))
        scores = scores.filter(pc.is_valid(scores["row"]))
        tables[name] = auc_table(
            scores, [labels[row] for row in chosen], [groups[row] for row in chosen]
        )
    return tables


def _documents(result: "ScoredRows") -> "list[AucRow] | None":
    from analysis.any_scores import document_table

    if result.rows.labels is None:
        return None
    return document_table(result.scores, result.rows.labels, result.rows.groups)


def _aucs_tables(result: "ScoredRows") -> list[Table | None]:
    """Return the AUCs and TPRs over rows, and over documents if there are any."""
    from analysis.settings import AnalysisSettings

    interval = f"{AnalysisSettings().confidence:.0%} intervals"
    caption = (
        f"Above 0.5: members score higher. In brackets: {interval}, which count groups, not rows. "
        "A TPR at FPR t requires at least 10 / t non-members."
    )
    documents = _documents(result)
    return [
        _aucs_table("AUC by detector", _auc_rows(result), caption),
        _aucs_table("AUC by document", documents, "The mean over the rows of each group.")
        if documents
        else None,
    ]


def _aucs_table(title: str, rows: "Sequence[AucRow]", caption: str) -> Table | None:
    from analysis.unit import AUC

    rates = [rate for rate in rows[0].tpr if any(not row.tpr[rate].reason for row in rows)]
    rate_heads = (f"TPR at {100 * rate:g}% FPR" for rate in rates)
    return listing(
        title,
        ("Detector", "Setting", "AUC", *rate_heads, "Members", "Non-members", "Remark"),
        [
            (
                *(row.detector, row.setting, AUC._replace(digits=3).brief(row.auc)),
                *(AUC.brief(row.tpr[rate]) for rate in rates),
                *(f"{row.n_members:,}", f"{row.n_nonmembers:,}", _remark(row)),
            )
            for row in rows
        ],
        caption,
    )


def _remark(row: "AucRow") -> str:
    parts = [
        row.auc.reason or row.auc.caution or "",
        f"{row.unscored} rows not scored" if row.unscored else "",
        "measured on its own rows" if row.own_rows else "",
    ]
    return "; ".join(part for part in parts if part)


def _decisions(result: "ScoredRows") -> "list[FileDecision]":
    """Return the decisions of each setting; nothing without known non-members."""
    from analysis.decisions.flagged import decide_rows

    return decide_rows(
        result.scores,
        labels=result.rows.labels,
        groups=result.rows.groups,
        calibration=result.calibration,
    )


def _decision_parts(decisions: "Sequence[FileDecision]", *, by_held_out: bool) -> "list[Part]":
    """Return the settings that flag rows, the names of the others, and what calibrated them."""
    from analysis.page.parts import Note, present
    from analysis.settings import AnalysisSettings
    from analysis.unit import PERCENT

    if not decisions:
        return []
    level = f"{AnalysisSettings().false_discovery_rate:.0%}"
    flagging = listing(
        f"Rows flagged as members at a false-discovery rate of {level}",
        ("Detector", "Setting", "Flagged", "Non-members", "Their share"),
        [
            (
                *(
                    decision.detector,
                    decision.setting,
                    f"{len(decision.flagged)} of {decision.decided}",
                ),
                *(
                    (f"{decision.nonmembers:,}", PERCENT.text(*decision.share[:3]))
                    if decision.share
                    else ("", "")
                ),
            )
            for decision in decisions
            if decision.flagged
        ],
    )
    calibrations: dict[tuple[int, int, float], list[FileDecision]] = {}
    for decision in decisions:
        own = (decision.calibration_rows, decision.calibration_groups, decision.smallest_p)
        calibrations.setdefault(own, []).append(decision)
    none = [decision for decision in decisions if not decision.flagged]
    calibration = (
        "held-out rows"
        if by_held_out
        else "a random half of the non-members, which are excluded from the decisions"
    )
    return present(
        flagging,
        [
            f"{_settings(same) if len(calibrations) > 1 else 'Every detector'}: calibrated by "
            f"{with_noun(rows, 'row')} in {with_noun(groups, 'group')}, so no p-value can be below "
            f"{smallest:.3f} (more known non-members allow smaller ones)."
            for (rows, groups, smallest), same in calibrations.items()
        ],
        f"No row is flagged by {_settings(none)} at a false-discovery rate of {level}."
        if none
        else None,
        Note(
            f"Conformal p-values, calibrated by {calibration}, and Benjamini-Hochberg, for each "
            f"detector by itself: at most {level} of the flagged are non-members on average, if "
            "known non-members come from the same distribution as those among the rows."
        ),
    )


def _settings(decisions: "Sequence[FileDecision]") -> str:
    return ", ".join(
        f"{decision.detector} {decision.setting}".rstrip(" -") for decision in decisions
    )
