"""The settings that are reported, and their scores of every example as one table."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from analysis.arm import Cohort, Column, LoadedArm, axis_column
from analysis.selection.tuning import Choice


def reported_columns(
    loaded: Sequence[LoadedArm], choices: Sequence[Choice]
) -> dict[Column, tuple[str, ...]]:
    """Return the settings to report, each with the selections it stands for."""
    picked: dict[Column, tuple[str, ...]] = {}
    for choice in choices:
        default = Column(choice.detector, choice.default)
        picked[default] = ("default", "tuned") if choice.tuned == choice.default else ("default",)
        if choice.tuned is not None and choice.tuned != choice.default:
            picked[Column(choice.detector, choice.tuned)] = ("tuned",)
    return {
        column: names
        for column, names in picked.items()
        if all(column in arm.index for arm in loaded)
    }


def score_schema(axes: Sequence[str]) -> pa.Schema:
    """Return the columns of the run's scores.parquet."""
    return pa.schema(
        [(axis_column(axis), pa.string()) for axis in axes]
        + [("seed", pa.int64()), ("model", pa.string())]
        + [("row", pa.int64()), ("example_id", pa.string())]
        + [(name, pa.string()) for name in ("detector", "setting", "selection")]
        + [("score", pa.float64()), ("reason", pa.string())]
    )


def score_table(
    loaded: LoadedArm, cohort: Cohort, picked: dict[Column, tuple[str, ...]]
) -> pa.Table:
    """Return one arm's scores under each reported setting and selection, all splits."""
    schema = score_schema([key for key, _ in cohort.axes])
    n = len(loaded.examples)
    ids = pa.array([example.example_id for example in loaded.examples], pa.string())
    parts = []
    for column, selections in picked.items():
        score = loaded.scores[:, loaded.index[column]]
        reason = pa.array([loaded.reasons.get((row, column)) for row in range(n)], pa.string())
        for selection in selections:
            texts = (column.detector, column.setting, selection)
            parts.append(
                pa.Table.from_arrays(
                    [pa.array([value] * n, pa.string()) for _, value in cohort.axes]
                    + [pa.array([loaded.arm.seed] * n, pa.int64())]
                    + [pa.array([cohort.model] * n, pa.string())]
                    + [pa.array(np.arange(n), pa.int64()), ids]
                    + [pa.array([text] * n, pa.string()) for text in texts]
                    + [pa.array(score, pa.float64()), reason],
                    schema=schema,
                )
            )
    return pa.concat_tables(parts) if parts else schema.empty_table()
