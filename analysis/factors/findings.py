"""All that is found about the factors of a study, and the table that it is stored in.

Cost: a detector takes about 5 ms an arm, seed and dataset; a study of one arm and nine detectors a
second.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan

import pyarrow as pa

from analysis.arm import Arm, Cohort, axis_names
from analysis.factors.contrasts import Row, compare_arms, compare_detectors
from analysis.factors.doses import find_responses, measure_arms
from analysis.factors.power import variance_components
from analysis.factors.study import Study, collect_study
from analysis.findings import question_table
from analysis.selection.tuning import Choice
from analysis.settings import AnalysisSettings

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
    return factors_table(axis_names(arms), [*study_rows(study, settings), *copies])


def study_rows(study: Study, settings: AnalysisSettings) -> Iterator[Row]:
    """Yield the lines, then the differences between arms and detectors, then the variances."""
    confidence = settings.confidence
    measured = {name: measure_arms(study, name, settings) for name in study.detectors}
    for name, arms in measured.items():
        for response in find_responses(study, arms, name, confidence=confidence):
            yield from response.rows()
    every = {name: [arm.every for arm in arms] for name, arms in measured.items()}
    for name, numbers in every.items():
        yield from compare_arms(study, numbers, name, confidence=confidence)
    for k, arm in enumerate(study.arms):
        of_arm = {name: numbers[k] for name, numbers in every.items()}
        yield from compare_detectors(study, arm, of_arm, confidence=confidence)
    for name, numbers in every.items():
        yield from variance_components(study, numbers, name)
