"""All that is found about the factors of a study, and the table that it is stored in.

Cost: a detector takes about 5 ms an arm, seed and dataset; a study of one arm and nine detectors a
second.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from analysis.arm import Arm, Cohort, axis_names
from analysis.factors.best import compare_detectors
from analysis.factors.comparisons import Comparison, compare_arms
from analysis.factors.measured import measure_arm
from analysis.factors.regression import regress
from analysis.factors.responses import Response, axis_responses, copy_responses, row_responses
from analysis.factors.study import collect_study
from analysis.factors.table import (
    Row,
    comparison_rows,
    component_row,
    detector_rows,
    factors_table,
    regression_rows,
    response_rows,
)
from analysis.factors.variances import Component, variance_components
from analysis.selection.tuning import Choice
from analysis.settings import AnalysisSettings


@dataclass(frozen=True, kw_only=True)
class Factors:
    """What was found."""

    table: pa.Table
    """`factors.parquet` (`analysis.factors.table`)."""
    responses: tuple[Response, ...]
    comparisons: tuple[Comparison, ...]


def analyse_factors(
    arms: Sequence[Arm],
    choices: Mapping[Cohort, Sequence[Choice]],
    settings: AnalysisSettings,
    *,
    progress: Callable[[str], None] | None = None,
) -> Factors:
    """Analyse the factors of a study.

    Args:
        arms: all models of an experiment.
        choices: the settings chosen in each cohort.
        settings: which rows are compared, and the coverage of intervals.
        progress: called with the name of each detector before it is worked on.
    """
    study = collect_study(arms, choices, settings)
    responses: list[Response] = []
    comparisons: list[Comparison] = []
    components: list[Component] = []
    regressions: list[Row] = []
    axes = axis_names(arms)
    confidence = settings.confidence
    for detector in study.detectors:
        if progress is not None:
            progress(detector)
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
        responses += copy_responses(study, measured, detector, confidence=confidence)
        responses += axis_responses(study, measured, detector, confidence=confidence)
        for arm in study.arms:
            responses += row_responses(study, arm, detector, confidence=confidence)
        comparisons += compare_arms(study, measured, detector, confidence=confidence)
        components += variance_components(study, measured, detector)
        fitted = regress(study, detector, confidence=confidence)
        regressions += regression_rows(axes, detector, fitted)
    compared = [
        row
        for arm in study.arms
        for found in compare_detectors(study, arm, confidence=confidence)
        for row in detector_rows(found)
    ]
    return Factors(
        table=factors_table(
            axes,
            [
                *_rows(responses, comparisons),
                *regressions,
                *compared,
                *(component_row(one) for one in components),
            ],
        ),
        responses=tuple(responses),
        comparisons=tuple(comparisons),
    )


def _rows(responses: Sequence[Response], comparisons: Sequence[Comparison]) -> Iterator[Row]:
    for response in responses:
        yield from response_rows(response)
    for comparison in comparisons:
        yield from comparison_rows(comparison)
