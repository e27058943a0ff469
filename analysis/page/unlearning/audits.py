"""The section on audits of unlearned models: what the ratio rule flags, and whether it is right."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from analysis.copy_bins import ALL, copies_order
from analysis.findings import Row
from analysis.intervals.estimate import Estimate
from analysis.page.parts import OPEN_ROWS, Note, Part, fold, fold_items, present
from analysis.page.table import Table, copies_text, listing
from analysis.page.unlearning.study import method_title, readable
from analysis.page.unlearning.tables import NUMBER, spread

_SHARES = {
    "remembered_original": "Written by the original",
    "remembered_unlearned": "Written by the unlearned",
    "flagged": "Flagged",
    "false_alarms": "False positives",
    "flagged_holdout": "Flagged of the holdout",
    "missed": "Missed of the written",
    "wrong": "Wrong of the flagged",
    "calibrated_edge": "Edge with 5 % false positives",
}
_BY_COPIES = {"flagged": "flagged", "remembered_unlearned": "still written"}


def audits_parts(audits: Sequence[Row], audit_pages: Sequence[str]) -> list[Part]:
    """Return the parts on audits of unlearned models; empty without any.

    Args:
        audits: rows of the question `unlearning_audits`.
        audit_pages: the audits' pages, relative to the run's page.
    """
    notes = dict.fromkeys(
        f"{row['quantity'].replace('_', ' ')}: {row['note']}"
        for row in audits
        if row["note"] and row["quantity"] in _SHARES
    )
    pages = tuple((PurePosixPath(path).stem, path) for path in audit_pages)
    sentence = _sentence(audits)
    return present(
        Note(sentence, "say") if sentence else None,
        *(
            fold(table) if at and len(table.rows) > OPEN_ROWS else table
            for at, table in enumerate(audit_tables(audits))
        ),
        Note("Text by text, with the closest continuation of each model:", "prose", pages)
        if pages
        else None,
        fold_items("Notes of the audits", list(notes)),
    )


def _sentence(rows: Sequence[Row]) -> str:
    """Return a sentence on the ratio rule's error rate and on the text that is still written."""
    whole = [row for row in rows if row["copies"] == ALL]
    pooled = [row for row in whole if row["seed"] is None] or whole
    alarms, written = (
        spread(Estimate.of(row) for row in pooled if row["quantity"] == quantity)
        for quantity in ("false_alarms", "remembered_unlearned")
    )
    if not alarms:
        return ""
    also = f"; the unlearned models still write {written} of the texts" if written else ""
    return f"Of unseen texts, the ratio rule flags a share of {alarms} as not forgotten{also}."


def audit_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the tables of the audits' findings.

    Args:
        rows: of the question `unlearning_audits`.
    """
    rows = [row for row in rows if row["quantity"] in _SHARES]
    if not rows:
        return []
    most = max(row["chunks"] for row in rows if row["quantity"] == "flagged")
    caption = (
        "Written: texts of which a model writes a longer run than the retrained model does of any; "
        "a lower bound, since a model need not write all that it knows. Flagged: texts whose score "
        "changed by less than the band (Shi et al. 2024 classify them as not forgotten). "
        "False positives: texts that the same rule flags on the retrained model. Missed: written "
        "and not flagged. Wrong: flagged and not written. Edge: the upper end of the band at "
        f"which false positives are as rare as required. Up to {most:,} texts per audit; means "
        "over the seeds."
    )
    pooled = [row for row in rows if row["seed"] is None]
    seeds = [row for row in rows if row["seed"] is not None and row["copies"] == ALL]
    together = [row for row in pooled if row["copies"] == ALL]
    doses = sorted({row["copies"] for row in rows} - {ALL}, key=copies_order)
    by_copies = [
        {**row, "method": f"{row['method']}, {_BY_COPIES[row['quantity']]}"}
        for row in pooled
        if row["quantity"] in _BY_COPIES
    ]
    heads = {dose: copies_text(dose) for dose in doses}
    title = "The ratio rule"
    by_copies = by_copies if len(doses) > 1 else []
    tables = [
        _table(title, together, "quantity", _SHARES, caption),
        _table("The rule, by copies", by_copies, "copies", heads, "Means over the seeds."),
        _table(f"{title} by seed" if together else title, seeds, "quantity", _SHARES, caption),
    ]
    return [table for table in tables if table is not None]


def _table(
    title: str, rows: Sequence[Row], column: str, heads: dict[str, str], caption: str
) -> Table | None:
    """Return a row per audit and a column per value of a column; a method's seeds together."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    audits: dict[str, dict[str, Row]] = {}
    for row in sorted(readable(rows, "seed"), key=lambda row: methods.index(row["method"])):
        seed = "" if row["seed"] is None else f"seed {row['seed']}"
        name = ", ".join(filter(None, (method_title(row["method"]), row["arm"], seed)))
        audits.setdefault(name, {})[row[column]] = row
    lines = [
        (name, *(NUMBER.brief(shares.get(value)) for value in heads))
        for name, shares in audits.items()
    ]
    return listing(title, ("Audit", *heads.values()), lines, caption)
