"""The section on audits of unlearned models: what the ratio rule flags, and whether it is right."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from analysis.copy_bins import ALL, copies_order
from analysis.page.parts import Note, Part, fold, fold_items, present
from analysis.page.table import Table, copies_text, listing
from analysis.page.unlearning.headline import method_title
from analysis.page.unlearning.tables import number_text
from analysis.unlearning.measured import Row, arm_text

_SHARES = {
    "remembered_original": "Written by the original",
    "remembered_unlearned": "Written by the unlearned",
    "flagged": "Flagged",
    "false_alarms": "False alarms",
    "flagged_holdout": "Flagged of the holdout",
    "missed": "Missed of the written",
    "wrong": "Wrong of the flagged",
    "calibrated_edge": "Edge with 5 % false alarms",
}
_DOSES = {"flagged": "flagged", "remembered_unlearned": "still written"}
_SEED = "seed"
_OPEN_ROWS = 12
"""A longer table behind the first is folded."""


def audits_parts(audits: Sequence[Row], audit_pages: Sequence[str]) -> list[Part]:
    """Return what is said of audits of unlearned models; nothing where there are none.

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
    return present(
        [
            fold(table) if at and len(table.rows) > _OPEN_ROWS else table
            for at, table in enumerate(audit_tables(audits))
        ],
        Note("Text by text, with the closest continuation of each model:", "prose", pages)
        if pages
        else None,
        fold_items("Notes of the audits", list(notes)),
    )


def audit_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the tables of the audits' findings.

    Args:
        rows: of the question `unlearning_audits`.
    """
    rows = [row for row in rows if row["quantity"] in _SHARES]
    if not rows:
        return []
    axes = list(rows[0])[: list(rows[0]).index(_SEED)]
    counts = sorted({row["chunks"] for row in rows if row["quantity"] == "flagged"})
    caption = (
        "Written: texts of which a model writes a longer run than the retrained model does of any; "
        "a lower bound, since a model need not write what it knows. Flagged: texts whose score "
        "changed by less than the band (Shi et al. 2024 take them for not forgotten). False "
        "alarms: what the same rule flags on the retrained model. Missed: written and not flagged. "
        "Wrong: flagged and not written. Edge: the upper end of the band at which false alarms are "
        f"as rare as was asked. Up to {counts[-1]:,} texts an audit; means over the seeds."
    )
    whole = [row for row in rows if row["copies"] == ALL]
    pooled = _audits([row for row in whole if row[_SEED] is None], axes, "quantity")
    seeds = _audits([row for row in whole if row[_SEED] is not None], axes, "quantity")
    doses = sorted({row["copies"] for row in rows} - {ALL}, key=copies_order)
    tables = [
        _table("The ratio rule", pooled, _SHARES, caption),
        _table("The ratio rule by seed" if pooled else "The ratio rule", seeds, _SHARES, caption),
    ]
    if len(doses) > 1:
        by_dose = [{**row, "method": f"{row['method']}, {_DOSES[row['quantity']]}"} for row in rows
                   if row["quantity"] in _DOSES and row[_SEED] is None]  # fmt: skip
        heads = {dose: copies_text(dose) for dose in doses}
        found = _audits(by_dose, axes, "copies")
        tables.insert(1, _table("The rule, by copies", found, heads, "Means over the seeds."))
    return [table for table in tables if table is not None]


def _audits(rows: Sequence[Row], axes: Sequence[str], column: str) -> dict[str, dict[str, Row]]:
    """Return the rows of each audit by a column; the seeds of one method stand together."""
    found: dict[str, dict[str, Row]] = {}
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for row in sorted(rows, key=lambda row: methods.index(row["method"])):
        seed = "" if row[_SEED] is None else f"seed {row[_SEED]}"
        name = ", ".join(
            part for part in (method_title(row["method"]), arm_text(row, axes), seed) if part
        )
        found.setdefault(name, {})[row[column]] = row
    return found


def _table(
    title: str,
    audits: Mapping[str, Mapping[str, Row]],
    columns: Mapping[str, str],
    caption: str,
) -> Table | None:
    rows = [
        (name, *(number_text(found.get(quantity)) for quantity in columns))
        for name, found in audits.items()
    ]
    return listing(title, ("Audit", *columns.values()), rows, caption)
