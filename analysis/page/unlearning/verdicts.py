"""What a verdict rests on: where each measure puts a model, and what it cost."""

from collections.abc import Sequence

from analysis.figures.unlearning.measured import NO_DETECTOR, Row
from analysis.page.tables.listing import Listing, listing
from analysis.page.unlearning.texts import number_with_interval

_FORGETTING = "forgetting"
_WHOLE = "all"


def verdict_table(rows: Sequence[Row], name: str) -> Listing | None:
    """Return the table of one arm.

    Args:
        rows: of `verdict.parquet`.
        name: of the arm; empty where there is but one.
    """
    return listing(
        "What the verdicts rest on" + (f" ({name})" if name else ""),
        ("Method", "Measure", "Position", "Difference", "Verdict"),
        [
            (
                row["method"],
                _measure(row),
                number_with_interval(row) if row["kind"] == _FORGETTING else "",
                "" if row["kind"] == _FORGETTING else number_with_interval(row, signed=True),
                row["verdict"],
            )
            for row in rows
            if row["kind"] != _WHOLE
        ],
        "Position: (unlearned \N{MINUS SIGN} retrained) / (original \N{MINUS SIGN} retrained) of "
        "a measure: 0 at the retrained model, 1 at the original, below 0 beyond the retrained "
        "one. Its interval is Fieller's. Difference: utility less that of the retrained model, "
        "or of the original. A model that lost some against both is ruined.",
    )


def _measure(row: Row) -> str:
    words = str(row["measure"]).removesuffix("_difference").replace("_", " ")
    if row["versus"]:
        return f"{words}, against the {row['versus']}"
    return words if row["detector"] == NO_DETECTOR else f"{words} of {row['detector']}"
