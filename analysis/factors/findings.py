"""All that is found about the factors of a study, and the table that it is stored in.

Cost: a detector takes about 5 ms an arm, seed and dataset; a study of one arm and nine detectors a
second.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from analysis.arm import Arm, Cohort, axis_names
from analysis.factors.comparisons import Comparison, compare_arms, compare_detectors
from analysis.factors.fieller import Reach, Stretch, reach_text
from analysis.factors.responses import (
    Response,
    axis_responses,
    copy_responses,
    factor_value,
    row_responses,
)
from analysis.factors.study import Study, collect_study, measure_arm
from analysis.factors.variances import variance_components
from analysis.findings import question_table
from analysis.selection.tuning import Choice
from analysis.settings import AnalysisSettings

RESPONSE = "response"
CONTRAST = "contrast"
Row = dict[str, Any]
_BLANK: Row = {
    **dict.fromkeys(("factor", "dataset", "detector", "setting", "level", "versus", "term"), ""),
    **dict.fromkeys(("x", "value", "low", "high", "alone_low", "alone_high", "p_value"), nan),
    "n_members": 0,
    "n_seeds": 0,
    "shown": "",
    "reason": "",
}


def factors_table(axes: Sequence[str], rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table; what a row does not say is empty."""
    return question_table("factors", axes, ({**_BLANK, **row} for row in rows))


def response_rows(response: Response) -> Iterator[Row]:
    """Yield a line: its slope, where it reaches its level, whether it fits, and its points."""
    head = {
        **response.cohort.columns(),
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
    yield {
        **comparison.cohort.columns(),
        "kind": CONTRAST,
        "factor": comparison.axis,
        "dataset": comparison.dataset,
        "detector": comparison.detector,
        "setting": comparison.setting,
        "level": comparison.level,
        "versus": comparison.versus,
        "term": "difference",
        **comparison.contrast.columns(),
    }


class FactorLines(NamedTuple):
    """What is found about one detector by itself."""

    responses: list[Response]
    comparisons: list[Comparison]
    components: list[Row]


def analyse_factors(
    arms: Sequence[Arm],
    choices: Mapping[Cohort, Sequence[Choice]],
    settings: AnalysisSettings,
    *,
    copies: Iterable[Row] = (),
) -> pa.Table:
    """Analyse the factors of a study; returns the table of what was found.

    Args:
        arms: all models of an experiment.
        choices: the settings chosen in each cohort.
        settings: which rows are compared, and the coverage of intervals.
        copies: what more copies do in each arm (`PreparedCohort.copies_rows`).
    """
    study = collect_study(arms, choices, settings)
    confidence = settings.confidence
    lines = [detector_lines(study, detector, settings) for detector in study.detectors]
    return factors_table(
        axis_names(arms),
        [
            *(row for one in lines for found in one.responses for row in response_rows(found)),
            *(row for one in lines for found in one.comparisons for row in comparison_rows(found)),
            *(
                row
                for arm in study.arms
                for row in compare_detectors(study, arm, confidence=confidence)
            ),
            *(row for one in lines for row in one.components),
            *copies,
        ],
    )


def detector_lines(study: Study, detector: str, settings: AnalysisSettings) -> FactorLines:
    """Return the responses, paired differences and variances of one detector."""
    confidence = settings.confidence
    measured = [
        measure_arm(
            study,
            arm,
            detector,
            min_members=settings.min_members,
            high_copies=settings.high_copies,
        )
        for arm in study.arms
    ]
    responses = [
        *copy_responses(study, measured, detector, confidence=confidence),
        *axis_responses(study, measured, detector, confidence=confidence),
    ]
    for arm in study.arms:
        responses += row_responses(study, arm, detector, confidence=confidence)
    return FactorLines(
        responses,
        list(compare_arms(study, measured, detector, confidence=confidence)),
        list(variance_components(study, measured, detector)),
    )
