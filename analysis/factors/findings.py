"""All that is found about the factors of a study, and the table that it is stored in.

Cost: a detector takes about 5 ms an arm, seed and dataset; a study of one arm and nine detectors a
second.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from analysis.arm import Arm, Cohort, axis_names
from analysis.factors.best import compare_detectors
from analysis.factors.comparisons import Comparison, compare_arms
from analysis.factors.measured import measure_arm
from analysis.factors.regression import regress
from analysis.factors.responses import Response, axis_responses, copy_responses, row_responses
from analysis.factors.study import Study, collect_study
from analysis.factors.table import (
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


class FactorLines(NamedTuple):
    """What is found about one detector by itself."""

    responses: list[Response]
    comparisons: list[Comparison]
    components: list[Component]


def analyse_factors(
    arms: Sequence[Arm], choices: Mapping[Cohort, Sequence[Choice]], settings: AnalysisSettings
) -> pa.Table:
    """Analyse the factors of a study; returns `factors.parquet` (`analysis.factors.table`).

    Args:
        arms: all models of an experiment.
        choices: the settings chosen in each cohort.
        settings: which rows are compared, and the coverage of intervals.
    """
    study = collect_study(arms, choices, settings)
    axes = axis_names(arms)
    confidence = settings.confidence
    lines = [detector_lines(study, detector, settings) for detector in study.detectors]
    return factors_table(
        axes,
        [
            *(row for one in lines for found in one.responses for row in response_rows(found)),
            *(row for one in lines for found in one.comparisons for row in comparison_rows(found)),
            *(
                row
                for detector in study.detectors
                for fitted in [regress(study, detector, confidence=confidence)]
                for row in regression_rows(axes, detector, fitted)
            ),
            *(
                row
                for arm in study.arms
                for found in compare_detectors(study, arm, confidence=confidence)
                for row in detector_rows(found)
            ),
            *(component_row(found) for one in lines for found in one.components),
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
