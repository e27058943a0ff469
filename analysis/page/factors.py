"""What the page shows of the factors: sentences and tables, from `factors.parquet` alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import pyarrow as pa

from analysis.arm import Cohort, axis_column, short_axis
from analysis.factors.responses import COPIES, LENGTH, SINCE
from analysis.factors.table import BEST, CONTRAST, GAP, REGRESSION, RESPONSE, STABILITY
from analysis.page.tables.listing import Listing, listing
from analysis.tables import POOLED

Row = Mapping[str, Any]
_MISFIT = 0.05


@dataclass(frozen=True, kw_only=True)
class FactorsView:
    """The factors of a study, ready to be shown."""

    sentences: tuple[str, ...]
    responses: tuple[Listing, ...]
    """A table a factor."""
    contrasts: Listing | None
    regression: Listing | None
    best: Listing | None
    """Of each arm and dataset: the detectors that cannot be told from the best."""
    gaps: Listing | None
    """To the upper bounds, all datasets pooled."""
    stability: Listing | None
    """Whether seeds agree on single texts."""


def factors_view(
    table: pa.Table, axes: Sequence[str], detectors: Sequence[str]
) -> FactorsView | None:
    """Return what the page shows; None where the study varies nothing.

    Args:
        table: `factors.parquet`.
        axes: the swept axes.
        detectors: in the page's order, the best first.
    """
    rows = [row for row in table.to_pylist() if row["dataset"] == POOLED]
    if not rows or not detectors:
        return None
    order = {name: k for k, name in enumerate(detectors)}
    rows.sort(key=lambda row: order.get(row["detector"], len(order)))
    factors = list(dict.fromkeys(row["factor"] for row in rows if row["kind"] == RESPONSE))
    factors.sort(key=lambda name: name != COPIES)
    return FactorsView(
        sentences=tuple(_sentences(rows, axes, factors, detectors[0])),
        responses=tuple(
            found for factor in factors if (found := _responses(rows, axes, factor)) is not None
        ),
        contrasts=_contrasts(rows, axes),
        regression=_regression(rows),
        best=_best(table.to_pylist(), axes),
        gaps=_gaps(rows, axes),
        stability=_stability(rows, axes),
    )


def _sentences(
    rows: Sequence[Row], axes: Sequence[str], factors: Sequence[str], best: str
) -> list[str]:
    mine = [row for row in rows if row["detector"] == best]
    found = []
    for factor in factors:
        slopes = [row for row in mine if (row["factor"], row["term"]) == (factor, "slope")]
        if factor in (LENGTH, SINCE):
            found += _counted(slopes, factor, best)
        else:
            found += [_slope_sentence(row, mine, axes, factor, best) for row in slopes[:3]]
    differences = [row for row in mine if row["kind"] == CONTRAST and isfinite(row["low"])]
    if differences:
        sure = [row for row in differences if row["low"] > 0 or row["high"] < 0]
        found.append(
            f"Of {len(differences)} paired differences between arms under {best}, {len(sure)} "
            f"{'is' if len(sure) == 1 else 'are'} told from zero, corrected for their number."
        )
    return found


def _slope_sentence(
    row: Row, mine: Sequence[Row], axes: Sequence[str], factor: str, best: str
) -> str:
    """Say what one line shows; where it reaches AUC 0.75 only if it goes up or down at all."""
    where = _arm(row, axes)
    where = f"{where}: under" if where else "Under"
    if row["reason"]:
        return f"{where} {best}, {_noun(factor)}: no line, since {row['reason']}."
    verdict = "does not show a change of the AUC"
    if row["low"] > 0:
        verdict = "shows that the AUC rises"
    elif row["high"] < 0:
        verdict = "shows that the AUC falls"
    sentence = (
        f"{where} {best}, the study {verdict} with {_noun(factor)}: its probit changes by "
        f"{row['value']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}] for each doubling"
    )
    reach = next((r["shown"] for r in mine if r["term"] == "reach" and _same(r, row, axes)), "")
    if row["low"] <= 0 <= row["high"] or not reach:
        return f"{sentence}."
    return f"{sentence}; AUC 0.75 is reached at {reach}."


def _counted(slopes: Sequence[Row], factor: str, best: str) -> list[str]:
    """Say in how many arms a property of the rows shows an effect, each arm for itself."""
    lines = [row for row in slopes if not row["reason"]]
    if not lines:
        return []
    up = sum(row["low"] > 0 for row in lines)
    down = sum(row["high"] < 0 for row in lines)
    shown = " and ".join(
        f"{'rises' if rises else 'falls'} in {number} of {len(lines)}"
        for rises, number in ((True, up), (False, down))
        if number
    )
    arms = "arm" if len(lines) == 1 else "arms"
    return [
        f"Under {best}, with {_noun(factor)} the AUC "
        + (f"{shown} {arms}" if shown else f"shows no change in any of {len(lines)} {arms}")
        + " (each interval for itself)."
    ]


def _responses(rows: Sequence[Row], axes: Sequence[str], factor: str) -> Listing | None:
    slopes = [row for row in rows if (row["factor"], row["term"]) == (factor, "slope")]
    lines = []
    for row in slopes:
        if row["reason"]:
            continue
        rest = {
            r["term"]: r
            for r in rows
            if r["kind"] == RESPONSE and r["detector"] == row["detector"] and _same(r, row, axes)
        }
        misfit = rest["misfit"]["p_value"]
        lines.append(
            (
                row["detector"],
                _arm(row, axes),
                f"{row['value']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]",
                _p_text(row["p_value"]),
                rest["reach"]["shown"],
                "no line" if misfit < _MISFIT else "",
                f"{row['n_members']:,}",
                f"{row['n_seeds']}",
            )
        )
    return listing(
        f"Response to {_noun(factor)}",
        ("Detector", "Arm", "Slope", "p", "AUC 0.75 at", "Shape", "Members", "Seeds"),
        lines,
        "Slope: change of the probit of AUC for each doubling"
        + (" of 1 + copies" if factor == COPIES else "")
        + ", with its 95 % interval. AUC 0.75: where the line reaches it, with Fieller's interval; "
        "> or < and a number: beyond what was measured; any: the data leave out nothing. Shape: "
        "where a test refuses a line (p under 0.05), its numbers are a summary at best.",
    )


def _contrasts(rows: Sequence[Row], axes: Sequence[str]) -> Listing | None:
    return listing(
        "Paired differences between arms",
        ("Detector", "Axis", "Arm", "Less", "All else", "Difference", "Band", "p", "Seeds"),
        [
            (
                row["detector"],
                short_axis(row["factor"]),
                row["level"],
                row["versus"],
                _arm(row, axes),
                f"{row['value']:+.3f}",
                f"{row['low']:+.3f} to {row['high']:+.3f}"
                if isfinite(row["low"])
                else f"none: {row['reason']}",
                _p_text(row["p_value"]),
                f"{row['n_seeds']}",
            )
            for row in rows
            if row["kind"] == CONTRAST
        ],
        "AUC of an arm less that of the first value of its axis, on the same rows and seeds. The "
        "band holds all differences of a detector at once (max-t); p is corrected alike.",
    )


def _regression(rows: Sequence[Row]) -> Listing | None:
    return listing(
        "All factors at once",
        ("Detector", "Factor", "Coefficient", "p", "Members", "Seeds"),
        [
            (
                row["detector"],
                _noun(row["factor"]),
                f"not in it: {row['reason']}"
                if row["reason"]
                else f"{row['value']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]",
                _p_text(row["p_value"]),
                f"{row['n_members']:,}" if row["n_members"] else "",
                f"{row['n_seeds']}" if row["n_seeds"] else "",
            )
            for row in rows
            if row["kind"] == REGRESSION
        ],
        "Probit regression of each member's placement (share of non-members below it): what one "
        "more doubling of a factor does where the others stay as they are; × is a product, "
        "which says whether copies do more at one end of an axis. Intervals count groups of "
        "rows on both sides, and seeds; each holds for itself.",
    )


def _best(rows: Sequence[Row], axes: Sequence[str]) -> Listing | None:
    places: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["kind"] == BEST:
            places.setdefault((_arm(row, axes), row["dataset"]), []).append(row)
    return listing(
        "Which detector is best where",
        ("Dataset", "Arm", "May be the best", "Out", "Members", "Seeds"),
        [
            (
                "all datasets" if dataset == POOLED else dataset,
                arm,
                ", ".join(f"{row['detector']} {row['value']:.2f}" for row in found if row["shown"]),
                f"{sum(not row['shown'] for row in found)}",
                f"{found[0]['n_members']:,}",
                f"{found[0]['n_seeds']}",
            )
            for (arm, dataset), found in places.items()
        ],
        "The set holds the truly best detector with 95 % confidence, however many are compared "
        "(comparisons with the best, Hsu 1984); behind each its AUC. Out: how many are told from "
        "the best.",
    )


def _gaps(rows: Sequence[Row], axes: Sequence[str]) -> Listing | None:
    return listing(
        "Gap to the upper bound",
        ("Detector", "Bound", "Arm", "Gap", "Band", "Seeds"),
        [
            (
                row["detector"],
                row["versus"],
                _arm(row, axes),
                f"{row['value']:+.3f}",
                f"{row['low']:+.3f} to {row['high']:+.3f}"
                if isfinite(row["low"])
                else f"none: {row['reason']}",
                f"{row['n_seeds']}",
            )
            for row in rows
            if row["kind"] == GAP
        ],
        "AUC of a detector that knows a model without the copies (reference) or shadow models "
        "(lira, rmia), less that of each detector, on the same rows. The band "
        "holds all of one arm.",
    )


def _stability(rows: Sequence[Row], axes: Sequence[str]) -> Listing | None:
    mine = [row for row in rows if row["kind"] == STABILITY]
    lines = []
    for row in (row for row in mine if row["term"] == "kappa" and not row["reason"]):
        rest = {
            r["term"]: r["value"]
            for r in mine
            if r["detector"] == row["detector"] and _same(r, row, axes)
        }
        lines.append(
            (
                row["detector"],
                _arm(row, axes),
                f"{100 * rest['agreement']:.0f} %",
                f"{100 * rest['chance']:.0f} %",
                f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]",
                f"{row['n_members']:,}",
                f"{row['n_seeds']}",
            )
        )
    return listing(
        "Do seeds agree on single texts?",
        ("Detector", "Arm", "Agreement", "By chance", "Kappa", "Texts", "Seeds"),
        lines,
        "Decisions at a false-positive rate of 10 % on texts that are members in two seeds, over "
        "all pairs of seeds. Kappa: the part of the way from chance (0) to certainty (1), with "
        "its 95 % interval, for these models.",
    )


def _same(one: Row, other: Row, axes: Sequence[str]) -> bool:
    return bool(
        one["factor"] == other["factor"]
        and all(one[axis_column(axis)] == other[axis_column(axis)] for axis in axes)
    )


def _arm(row: Row, axes: Sequence[str]) -> str:
    return Cohort(tuple((axis, row[axis_column(axis)]) for axis in axes), "").label()


def _noun(factor: str) -> str:
    return "the length of the text" if factor == "length" else factor


def _p_text(value: float) -> str:
    if not isfinite(value):
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
