"""The columns of a study's design: what its arms set, and numbers that follow from it.

Claims name such columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import log2
from typing import Any

from analysis.studies.design import INTERCEPT, design, is_positive_number
from inject.errors import InputError, unknown_name
from spikein.config.schema import Experiment
from spikein.config.sweep import ArmExperiment
from spikein.config.yaml_document import KeyPath
from train.models.model_sizes import known_sizes
from train.models.shapes import parameter_count
from train.schedule import total_steps

Rows = Mapping[str, Mapping[str, Any]]
"""Values of the columns by arm."""


def design_rows(arms: Sequence[ArmExperiment]) -> dict[str, dict[str, Any]]:
    """Return the value of each column by arm; the seeds of an arm share one row.

    Args:
        arms: of an experiment; those of a sweep go by their labels.
    """
    rows: dict[str, dict[str, Any]] = {}
    for arm in arms:
        axes = {key: _number_or_label(arm, key) for key in arm.axes}
        rows.setdefault(arm.cohort, {**axes, **_derived(arm.experiment)})
    return rows


def log_columns(rows: Rows) -> dict[str, dict[str, float]]:
    """Return log2 of the columns that are positive numbers, by arm."""
    return {
        arm: {name: log2(value) for name, value in row.items() if is_positive_number(value)}
        for arm, row in rows.items()
    }


def matrix_columns(claim: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that a claim fits a line in, and its arms; all arms if empty."""
    effect = getattr(claim, "effect", claim)
    return tuple(getattr(effect, "columns", ())), tuple(getattr(effect, "arms", ()))


def column_problems(
    claims: Mapping[str, Any], arms: Sequence[ArmExperiment]
) -> Iterator[tuple[KeyPath, InputError]]:
    """Yield a problem for each claim with an unknown column, or more than its arms can separate.

    Args:
        claims: by name; those of an effect have `columns`.
        arms: of the experiment.
    """
    for name, claim in claims.items():
        columns, named = matrix_columns(claim)
        if columns:
            rows = {arm: row for arm, row in design_rows(arms).items() if arm in (named or (arm,))}
            if problem := _column_problem(f"claims.{name}", columns, rows):
                yield ("claims", name), problem


def _column_problem(place: str, columns: Sequence[str], rows: Rows) -> InputError | None:
    known_columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    for column in columns:
        if rows and column not in known_columns:
            problem = f"{place}: no column is called {column!r}"
            return unknown_name(problem, column, known_columns)
        for arm, row in rows.items():
            if not is_positive_number(row.get(column)):
                return InputError(
                    f"{place}: {column} is {row.get(column, 'unknown')} in {arm}",
                    allowed="columns that are positive numbers in all arms of the claim",
                )
    result = design(list(rows.values()), columns) if rows else None
    if result is None or not result.aliased:
        return None
    column, others = next(iter(result.aliased.items()))
    return InputError(
        f"{place}: the arms have rank {result.rank} for {result.size} columns ({INTERCEPT}, "
        f"{', '.join(columns)}): {column} is a combination of {', '.join(others)}",
        hint=f"Leave {column} or one of these out of columns, or add arms that separate them.",
    )


def _number_or_label(arm: ArmExperiment, axis: str) -> Any:
    value = arm.axes[axis]
    return value if type(value) in (int, float) else arm.labels[axis]


def _derived(experiment: Experiment) -> dict[str, int]:
    """Return the columns that follow from an arm's settings."""
    train, corpus, model = experiment.train, experiment.corpus, experiment.model
    windows = corpus.tokens // train.context
    _, end = experiment.placement.shares(windows, train.context)
    sizes = None if model.shape is None else known_sizes(model)
    columns = {
        "steps": total_steps(train, corpus.tokens),
        "batch": train.batch_tokens,
        "tail": (windows - int(end * windows)) * train.context,
        "unique": corpus.unique_tokens,
        "members": sum(contaminant.members for contaminant in experiment.contaminants),
    }
    if sizes is not None:
        columns["parameters"] = parameter_count(sizes.shape, sizes.vocabulary)
    return columns
