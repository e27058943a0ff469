"""Settings chosen on `tune`, so that `test` stays unseen.

For each cohort (axes and model) and detector the grid setting with the best AUC on the tune
rows wins: the members-weighted mean over datasets of the AUC within each, averaged over the
training seeds. Ties (`analysis.selection.ranking`) go to the default setting, then to the earlier
one of the grid. One ranking of all settings at once: milliseconds for 250 settings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from analysis.arm import MODEL_FREE, Cohort, DetectorColumn, LoadedArm, axis_column
from analysis.intervals.influence import Floats
from analysis.selection.ranking import highest_first
from analysis.settings import AnalysisSettings


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The setting chosen for one detector."""

    detector: str
    default: str
    tuned: str | None
    """None if the tuning rows support no choice: no member or no non-member."""
    tune_auc: float
    """AUC of the chosen setting on the tuning rows, by which the best detector is chosen.
    Optimistic, so another is reported."""
    default_tune_auc: float = float("nan")
    """The same of the default setting."""

    def tune_value(self, selection: str) -> float:
        """Return the AUC on the tuning rows of a selection's setting."""
        return self.tune_auc if selection == "tuned" else self.default_tune_auc


def choose_settings(arms: Sequence[LoadedArm], settings: AnalysisSettings) -> list[Choice]:
    """Choose one setting for each detector of a cohort (its arms, one per seed)."""
    choices = []
    for detector in dict.fromkeys(name for arm in arms for name in arm.detectors):
        holding = [arm for arm in arms if detector in arm.detectors]
        grid = [c for c in holding[0].grid(detector) if all(c in arm.index for arm in holding)]
        quality = setting_aucs(holding, grid, split="tune", max_unscored=settings.max_unscored_tune)
        default = holding[0].default(detector)
        choice = Choice(
            detector=detector, default=default.setting, tuned=None, tune_auc=float("nan")
        )
        if not np.isnan(quality).all():
            best = highest_first(quality.tolist())[0]
            choice = replace(
                choice,
                tuned=grid[best].setting,
                tune_auc=float(quality[best]),
                default_tune_auc=float(quality[grid.index(default)]),
            )
        choices.append(choice)
    return choices


def setting_aucs(
    arms: Sequence[LoadedArm],
    grid: Sequence[DetectorColumn],
    *,
    split: Literal["tune", "test"],
    max_unscored: float,
) -> Floats:
    """Return the AUC of each setting on the rows of a split that it could score.

    The members-weighted mean over datasets of the AUC within each, averaged over the seeds. NaN
    if a setting could not score more than a share of the rows.

    Args:
        arms: of one cohort, one per seed.
        grid: the settings.
        split: whose rows.
        max_unscored: the share.
    """
    by_seed = []
    unscored, rows = np.zeros(len(grid)), 0
    for arm in arms:
        chosen = arm.test if split == "test" else ~arm.test
        scores = arm.scores[:, [arm.index[column] for column in grid]]
        # A row that no setting can score, such as a shot, does not count against any of them.
        scored = np.isfinite(scores[chosen])
        counted = scored.any(axis=1)
        unscored += (~scored[counted]).sum(axis=0)
        rows += int(counted.sum())
        total, weight = np.zeros(len(grid)), np.zeros(len(grid))
        for dataset in sorted(set(arm.dataset[chosen])):
            in_dataset = chosen & (arm.dataset == dataset)
            exposed = in_dataset & arm.member & (arm.copies > 0)
            value, members = _column_aucs(scores[exposed], scores[in_dataset & ~arm.member])
            finite = np.isfinite(value)
            total += np.where(finite, value * members, 0.0)
            weight += np.where(finite, members, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            by_seed.append(total / weight)
    mean = np.mean(by_seed, axis=0)
    return np.where(unscored <= max_unscored * rows, mean, np.nan)


def _column_aucs(members: Floats, nonmembers: Floats) -> tuple[Floats, Floats]:
    """Return the AUC of every column over its own scored rows, and its scored members."""
    from scipy.stats import rankdata

    both = np.vstack([members, nonmembers])
    finite = np.isfinite(both)
    ranks = rankdata(np.where(finite, both, np.inf), axis=0)
    inside = finite[: len(members)]
    n_members = inside.sum(axis=0).astype(np.float64)
    n_nonmembers = finite[len(members) :].sum(axis=0)
    rank_sum = np.where(inside, ranks[: len(members)], 0.0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = (rank_sum - n_members * (n_members + 1) / 2) / (n_members * n_nonmembers)
    return value, n_members


def reported_columns(
    loaded: Sequence[LoadedArm], choices: Sequence[Choice]
) -> dict[DetectorColumn, tuple[str, ...]]:
    """Return the settings to report, each with the selections it stands for."""
    picked: dict[DetectorColumn, tuple[str, ...]] = {}
    for choice in choices:
        default = DetectorColumn(choice.detector, choice.default)
        picked[default] = ("default", "tuned") if choice.tuned == choice.default else ("default",)
        if choice.tuned is not None and choice.tuned != choice.default:
            picked[DetectorColumn(choice.detector, choice.tuned)] = ("tuned",)
    return {
        column: names
        for column, names in picked.items()
        if all(column in arm.index for arm in loaded)
    }


def shown_columns(picked: Mapping[DetectorColumn, Sequence[str]]) -> list[DetectorColumn]:
    """Return the setting that stands for each detector that looks at a model: tuned, else default.

    Args:
        picked: the columns that are reported, each with the selections it stands for.
    """
    column_by_detector: dict[str, DetectorColumn] = {}
    for column, selections in picked.items():
        if column.detector not in MODEL_FREE and (
            "tuned" in selections or column.detector not in column_by_detector
        ):
            column_by_detector[column.detector] = column
    return list(column_by_detector.values())


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
    loaded: LoadedArm, cohort: Cohort, picked: dict[DetectorColumn, tuple[str, ...]]
) -> pa.Table:
    """Return one arm's scores under each reported setting and selection, all splits."""
    schema = score_schema([key for key, _ in cohort.axes])
    n = len(loaded.examples)
    fixed = {**cohort.columns(), "seed": loaded.arm.seed, "model": cohort.model}
    rows = {"row": np.arange(n), "example_id": [example.example_id for example in loaded.examples]}
    parts = []
    for column, selections in picked.items():
        rows["score"] = loaded.scores[:, loaded.index[column]]
        rows["reason"] = [loaded.reasons.get((row, column)) for row in range(n)]
        for selection in selections:
            place = {**fixed, **column._asdict(), "selection": selection}
            columns = {**rows, **{name: [value] * n for name, value in place.items()}}
            parts.append(pa.table({name: columns[name] for name in schema.names}, schema=schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()
