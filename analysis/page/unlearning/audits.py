"""The section on audits of unlearned models: what the ratio rule flags, and whether it is right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from analysis.copy_bins import ALL, copies_order
from analysis.figures.unlearning.measured import Row, arm_text
from analysis.page.table import Table, listing
from analysis.page.unlearning.texts import number_with_interval

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


class AuditPage(NamedTuple):
    """The page of one audit."""

    name: str
    path: str
    """Relative to the run's page."""


@dataclass(frozen=True, kw_only=True)
class AuditsView:
    """The section, ready to be shown."""

    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    pages: tuple[AuditPage, ...]
    """A page a model, text by text; empty where the files do not lie beside the run's page."""


def audits_view(rows: Sequence[Row], pages: Sequence[str]) -> AuditsView | None:
    """Return what the page shows; None without audits.

    Args:
        rows: of the question `unlearning_audits`.
        pages: of the audits, relative to the run's page.
    """
    rows = [row for row in rows if row["quantity"] in _SHARES]
    if not rows:
        return None
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
        heads = {dose: f"{dose} {'copy' if dose == '1' else 'copies'}" for dose in doses}
        found = _audits(by_dose, axes, "copies")
        tables.insert(1, _table("The rule, by copies", found, heads, "Means over the seeds."))
    notes = dict.fromkeys(
        f"{row['quantity'].replace('_', ' ')}: {row['note']}" for row in rows if row["note"]
    )
    return AuditsView(
        tables=tuple(table for table in tables if table is not None),
        notes=tuple(notes),
        pages=tuple(AuditPage(PurePosixPath(path).stem, path) for path in pages),
    )


def _audits(rows: Sequence[Row], axes: Sequence[str], column: str) -> dict[str, dict[str, Row]]:
    """Return the rows of each audit by a column; the seeds of one method stand together."""
    found: dict[str, dict[str, Row]] = {}
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for row in sorted(rows, key=lambda row: methods.index(row["method"])):
        seed = "" if row[_SEED] is None else f"seed {row[_SEED]}"
        name = ", ".join(part for part in (row["method"], arm_text(row, axes), seed) if part)
        found.setdefault(name, {})[row[column]] = row
    return found


def _table(
    title: str,
    audits: Mapping[str, Mapping[str, Row]],
    columns: Mapping[str, str],
    caption: str,
) -> Table | None:
    rows = [
        (name, *(number_with_interval(found.get(quantity)) for quantity in columns))
        for name, found in audits.items()
    ]
    return listing(title, ("Audit", *columns.values()), rows, caption)
