"""The verdict on each claim that was fixed before the run."""

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from analysis.findings import Row
from analysis.page.crossed import AxisHeading, cross
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Section, answer
from analysis.page.table import Table, copies_text, numbers, texts, with_noun
from analysis.summary import Names
from analysis.unit import DIFFERENCE, POINTS, Entry, Unit

_DEVIATION = Unit("", 3)
MEASURES = {
    "auc": "AUC",
    "probit": "AUC at 0.70",
    "dose75": "log2(copies) at AUC 0.75",
    "deviation": "deviation of AUC over seeds",
}
_CAPTION = (
    "Default settings, all datasets pooled unless a comparison names one. Comparisons are made "
    "within each seed; intervals are Student's t over seeds and hold together (Bonferroni over all "
    "comparisons of this table). Moves AUC: the interval excludes 0. Does not matter here: it is "
    "within ± margin. A deviation over seeds has a χ² interval of its own. Rows: members + "
    "non-members of the seed and arm with the fewest."
)


def claims_section(table: pa.Table | None, digest: str, names: Names) -> Section | None:
    """Return the section; None for a run without claims.

    Args:
        table: the question `claims`; None without claims.
        digest: of the claims and their design.
        names: the published names of detectors.
    """
    rows = [] if table is None else table.to_pylist()
    if not rows:
        return None
    counted = Counter(row["verdict"] for row in rows)
    verdicts = ", ".join(f"{verdict} {counted[verdict]}" for verdict in counted)
    sentence = (
        f"{len(rows)} verdicts on claims that were fixed before the run (digest {digest[:12]}): "
        f"{verdicts}."
    )
    return answer(
        "claims",
        "Claims",
        "Do the claims hold?",
        sentence,
        effects_picture(rows, names),
        extra=[_table(rows, names)],
    )


def effects_picture(rows: Sequence[Row], names: Names) -> Picture | None:
    """Return the effects on AUC, a row per claim and a column per detector; None without any."""

    def claimed(row: Row) -> AxisHeading:
        copies = "" if row["copies"] == "all" else f", {copies_text(row['copies'])}"
        label = f"{row['claim']}{copies}"
        return AxisHeading(label, said=f"{label} ({row['comparison']})", name=label)

    crossed = cross(
        (row for row in rows if row["measure"] in ("auc", "probit")),
        claimed,
        lambda row: AxisHeading(names.get(row["detector"], row["detector"]), name=row["detector"]),
        unit=POINTS,
        cell=lambda row: {
            **row,
            "n_members": row["members_per_seed"],
            "n_nonmembers": row["nonmembers_per_seed"],
        },
        bold=lambda row: row["low"] > 0 or row["high"] < 0,
    )
    return picture(
        "claims",
        "Effect of each claim on AUC",
        "In points of AUC (hundredths) with simultaneous 95 % intervals, Student's t over seeds "
        "(Bonferroni); bold: the interval excludes 0. Margins: the table.",
        crossed.matrix(row_height=26.0),
        560,
        crossed.records("claim", "detector"),
    )


def _table(rows: list[Row], names: Names) -> Table:
    return Table(
        title="Claims and verdicts",
        columns=(
            *texts("Claim", "Detector", "Verdict", "Comparison"),
            *numbers("Effect"),
        ),
        rows=tuple(
            (
                Entry(row["claim"], notes=(row["hypothesis"],)),
                names.get(row["detector"], row["detector"]),
                Entry(row["verdict"], notes=tuple(filter(None, [row["note"]]))),
                Entry(row["comparison"], notes=(_measure(row),)),
                _effect(row),
            )
            for row in rows
        ),
        caption=_CAPTION,
    )


def _measure(row: Row) -> str:
    copies = "" if row["copies"] == "all" else f", copies {row['copies'].replace('-', '–')}"
    return f"{MEASURES[row['measure']]}{copies}"


def _effect(row: Row) -> Entry:
    unit = _DEVIATION if row["measure"] == "deviation" else DIFFERENCE
    rows = f"{row['members_per_seed']:,} + {row['nonmembers_per_seed']:,} rows each"
    notes = f"margin {row['margin']:.3g}", f"{with_noun(row['n_seeds'], 'seed')}, {rows}"
    return unit.place(row["value"], row["low"], row["high"], *notes)
