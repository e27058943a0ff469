"""`factors.parquet`: what was found about the factors, one number a row."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf, nan
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.arm import Cohort, axis_column
from analysis.factors.best import BestSet, Gap
from analysis.factors.comparisons import Comparison
from analysis.factors.contrasts import Contrast
from analysis.factors.fieller import Reach, Stretch, reach_text
from analysis.factors.regression import Regression
from analysis.factors.responses import Response, factor_value
from analysis.factors.variances import Component
from analysis.tables import POOLED

RESPONSE = "response"
CONTRAST = "contrast"
VARIANCE = "variance"
REGRESSION = "regression"
BEST = "best"
GAP = "gap"
_TEXTS = ("kind", "factor", "dataset", "detector", "setting", "level", "versus", "term")
_NUMBERS = ("x", "value", "low", "high", "alone_low", "alone_high", "p_value")
Row = dict[str, Any]


def factors_schema(axes: Sequence[str]) -> pa.Schema:
    """Return the columns of factors.parquet, in order."""
    return pa.schema(
        [(axis_column(axis), pa.string()) for axis in axes]
        + [(name, pa.string()) for name in _TEXTS]
        + [(name, pa.float64()) for name in _NUMBERS]
        + [("n_members", pa.int64()), ("n_seeds", pa.int64())]
        + [("shown", pa.string()), ("reason", pa.string())]
    )


def factors_table(axes: Sequence[str], rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table; what a row does not say is empty."""
    blank = {
        **dict.fromkeys(_TEXTS, ""),
        **dict.fromkeys(_NUMBERS, nan),
        "n_members": 0,
        "n_seeds": 0,
        "shown": "",
        "reason": "",
    }
    return pa.Table.from_pylist([{**blank, **row} for row in rows], schema=factors_schema(axes))


def cohort_columns(cohort: Cohort) -> dict[str, str]:
    """Return an arm's axes as columns."""
    return {axis_column(name): value for name, value in cohort.axes}


def response_rows(response: Response) -> Iterator[Row]:
    """Yield a line: its slope, where it reaches its level, whether it fits, and its points."""
    head = {
        **cohort_columns(response.cohort),
        "kind": RESPONSE,
        "factor": response.factor,
        "dataset": response.dataset,
        "detector": response.detector,
        "setting": response.setting,
    }
    line = response.line
    if line is None:
        yield {**head, "term": "slope", "reason": response.reason}
        return
    counts = {"n_members": int(line.points.members.sum()), "n_seeds": line.seeds}
    yield {
        **head,
        **counts,
        "term": "slope",
        "value": line.slope,
        "low": line.low,
        "high": line.high,
        "p_value": line.p_value,
    }
    yield {**head, **counts, "term": "intercept", "value": line.intercept}
    yield {**head, **counts, "term": "misfit", "p_value": line.misfit_p}
    ends = [end for stretch in line.reach.places for end in stretch]
    yield {
        **head,
        **counts,
        "term": "reach",
        "value": factor_value(response.factor, line.reach.value),
        "low": factor_value(response.factor, min(ends, default=inf)),
        "high": factor_value(response.factor, max(ends, default=inf)),
        "shown": shown_reach(response),
    }
    for k in np.argsort(line.points.x, kind="stable"):
        yield {
            **head,
            "term": "point",
            "x": factor_value(response.factor, float(line.points.x[k])),
            "value": float(line.points.auc[k]),
            "low": float(line.points.low[k]),
            "high": float(line.points.high[k]),
            "n_members": int(line.points.members[k]),
            "n_seeds": line.seeds,
        }


def shown_reach(response: Response) -> str:
    """Return where the line reaches its level, as the page says it."""
    line = response.line
    if line is None:
        return ""

    def moved(place: float) -> float:
        return factor_value(response.factor, place)

    reach = Reach(
        moved(line.reach.value),
        tuple(Stretch(moved(low), moved(high)) for low, high in line.reach.places),
    )
    x = line.points.x
    return reach_text(
        reach, smallest=moved(float(x.min())), largest=moved(float(x.max())), written=short_number
    )


def short_number(value: float) -> str:
    """Return a number of copies, tokens or a rate, as short as it can be read."""
    if value >= 10_000:
        return f"{value:,.0f}" if value < 1e6 else f"{value:.3g}"
    return f"{value:.0f}" if value >= 20 or value == round(value) else f"{value:.2g}"


def comparison_rows(comparison: Comparison) -> Iterator[Row]:
    """Yield one difference of two arms."""
    found = comparison.contrast
    yield {
        **cohort_columns(comparison.cohort),
        "kind": CONTRAST,
        "factor": comparison.axis,
        "dataset": comparison.dataset,
        "detector": comparison.detector,
        "setting": comparison.setting,
        "level": comparison.level,
        "versus": comparison.versus,
        "term": "difference",
        **_contrast_fields(found),
    }


def component_row(found: Component) -> Row:
    """Return one estimate of a variance."""
    return {
        **cohort_columns(found.cohort),
        "kind": VARIANCE,
        "factor": found.axis,
        "dataset": POOLED,
        "detector": found.detector,
        "term": found.term,
        "value": found.value,
        "n_members": found.members,
        "n_seeds": found.seeds,
    }


def regression_rows(axes: Sequence[str], detector: str, found: Regression | str) -> Iterator[Row]:
    """Yield the coefficients of one detector over the whole study, or why there are none.

    Args:
        axes: the swept axes; the regression goes over all of them.
        detector: which.
        found: the regression, or a reason.
    """
    head = {
        **dict.fromkeys((axis_column(axis) for axis in axes), ""),
        "kind": REGRESSION,
        "dataset": POOLED,
        "detector": detector,
    }
    if isinstance(found, str):
        yield {**head, "term": "coefficient", "reason": found}
        return
    counts = {"n_members": found.members, "n_seeds": found.seeds}
    for one in found.coefficients:
        yield {
            **head,
            **counts,
            "factor": one.term,
            "term": "coefficient",
            "value": one.value,
            "low": one.low,
            "high": one.high,
            "p_value": one.p_value,
        }
    for text in found.left_out:
        name, _, reason = text.partition(": ")
        yield {**head, "factor": name, "term": "coefficient", "reason": reason}


def detector_rows(found: BestSet | Gap) -> Iterator[Row]:
    """Yield the contestants of one arm and dataset, or one gap to an upper bound."""
    head = {**cohort_columns(found.cohort), "dataset": found.dataset}
    if isinstance(found, Gap):
        yield {
            **head,
            "kind": GAP,
            "detector": found.detector,
            "versus": found.bound,
            "term": "difference",
            **_contrast_fields(found.contrast),
        }
        return
    for name, value in found.aucs.items():
        yield {
            **head,
            "kind": BEST,
            "detector": name,
            "term": "auc",
            "value": value,
            "n_members": found.rows,
            "n_seeds": found.seeds,
            "shown": "may be the best" if name in found.members else "",
        }


def _contrast_fields(found: Contrast) -> Row:
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "alone_low": found.alone_low,
        "alone_high": found.alone_high,
        "p_value": found.p_value,
        "n_members": found.members,
        "n_seeds": found.seeds,
        "reason": found.reason,
    }
