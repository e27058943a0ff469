"""The section on audits of unlearned models: what the ratio rule flags, and whether it is right."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from analysis.copy_bins import ALL, copies_order
from analysis.figures.unlearning.measured import Row, arm_text
from analysis.page.table import Table, listing
from analysis.page.unlearning.texts import number_with_interval

_RULE = {
    "flagged": "Flagged",
    "false_alarms": "False alarms",
    "flagged_holdout": "Flagged of the holdout",
    "missed": "Missed of the remembered",
    "wrong": "Wrong of the flagged",
}
_REMEMBERED = {
    "remembered_original": "By the original",
    "remembered_unlearned": "By the unlearned",
}
_CALIBRATED = {
    "calibrated_edge": "Upper edge",
    "calibrated_false_alarms": "False alarms",
    "calibrated_flagged": "Flagged",
    "calibrated_missed": "Missed of the remembered",
}
_SEED = "seed"
_DOSES = (
    (
        "flagged",
        "Flagged, by copies",
        "Share of the forgotten texts that the rule flags, by the number of their copies; means "
        "over the seeds.",
    ),
    (
        "remembered_unlearned",
        "Still written, by copies",
        "Share of the forgotten texts of which the unlearned model writes a longer run than the "
        "retrained model does of any, by the number of their copies; means over the seeds.",
    ),
)


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
    """A page a model, with the closest continuation beside each text; empty where the files do not
    lie beside the run's page."""


def audits_view(rows: Sequence[Row], pages: Sequence[str]) -> AuditsView | None:
    """Return what the page shows; None without audits.

    Args:
        rows: of `unlearning_audits.parquet`.
        pages: of the audits, relative to the run's page.
    """
    if not rows:
        return None
    axes = tuple(name for name in list(rows[0])[: list(rows[0]).index(_SEED)])
    audits = _audits([row for row in rows if row[_SEED] is not None], axes)
    pooled = _audits([row for row in rows if row[_SEED] is None and row["copies"] == ALL], axes)
    counts = sorted({int(found["flagged"]["chunks"]) for found in audits.values()})
    texts = f"{counts[0]:,} to {counts[-1]:,}" if len(counts) > 1 else f"{counts[0]:,}"
    rule = (
        "Share of the forgotten texts whose score changed by less than the band (Shi et al. 2024 "
        "take them for not forgotten). False alarms: what the same rule flags on the retrained "
        "model, which never saw them. Missed: of the texts that the model still writes, the share "
        "that is not flagged. Wrong: of those that are flagged, the share that it does not write. "
        f"{texts} texts an audit."
    )
    by_seed = " by seed" if pooled else ""
    tables = [
        _table("The ratio rule", pooled, _RULE, f"{rule} Means over the seeds that have a value."),
        *(_by_copies(rows, axes, *one) for one in _DOSES),
        _table(f"The ratio rule{by_seed}", audits, _RULE, rule),
        _table(
            "Truly remembered" + by_seed,
            audits,
            _REMEMBERED,
            "Share of the texts of which a model writes a longer run than the retrained model does "
            "of any; a lower bound, since a model need not write what it knows. The original is "
            "the positive control: where it writes none, misses cannot be measured.",
        ),
        _table(
            "The threshold that would have been right",
            audits,
            _CALIBRATED,
            "The upper edge of the ratio at which the retrained model has the false alarms that "
            "were allowed, and what the rule then flags and misses.",
        ),
    ]
    notes = dict.fromkeys(
        f"{row['quantity'].replace('_', ' ')}: {row['note']}" for row in rows if row["note"]
    )
    return AuditsView(
        tables=tuple(table for table in tables if table is not None),
        notes=tuple(notes),
        pages=tuple(AuditPage(PurePosixPath(path).stem, path) for path in pages),
    )


def _audits(rows: Sequence[Row], axes: Sequence[str]) -> dict[str, dict[str, Row]]:
    """Return the rows of each audit by their quantity; the seeds of one method stand together."""
    found: dict[str, dict[str, Row]] = {}
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for row in sorted(rows, key=lambda row: methods.index(row["method"])):
        seed = "" if row[_SEED] is None else f"seed {row[_SEED]}"
        name = ", ".join(part for part in (row["method"], arm_text(row, axes), seed) if part)
        found.setdefault(name, {})[row["quantity"]] = row
    return found


def _by_copies(
    rows: Sequence[Row], axes: Sequence[str], quantity: str, title: str, caption: str
) -> Table | None:
    """Return one share by copies; None where every text was fed as often."""
    asked = [row for row in rows if row[_SEED] is None and row["quantity"] == quantity]
    doses = sorted({row["copies"] for row in asked} - {ALL}, key=copies_order)
    if len(doses) < 2:
        return None
    # A method stands here as it does above, with each of its doses for a column.
    found = _audits([{**row, "quantity": row["copies"]} for row in asked], axes)
    heads = {dose: f"{dose} {'copy' if dose == '1' else 'copies'}" for dose in doses}
    return _table(title, found, heads, caption)


def _table(
    title: str, audits: dict[str, dict[str, Row]], columns: dict[str, str], caption: str
) -> Table | None:
    rows = [
        (name, *(number_with_interval(found.get(quantity)) for quantity in columns))
        for name, found in audits.items()
    ]
    return listing(title, ("Audit", *columns.values()), rows, caption)
