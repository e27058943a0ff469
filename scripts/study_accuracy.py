"""Tables of a run's task accuracy and corrected scores, for `scripts.study_results`."""

from collections.abc import Sequence

import pandas as pd

from analysis.arm import UPPER_BOUNDS
from analysis.correction.estimators import BY_SCORES, IMPUTED, NAIVE, ORACLE
from analysis.correction.question import ABOVE_CHANCE
from scripts.study_cells import arm_name, interval, markdown, sides_per_seed

_ESTIMATORS = (NAIVE, IMPUTED, *BY_SCORES, ORACLE)
_MOMENTS = ("before", "after")


def task_accuracy(accuracy: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Return the accuracy on the benchmarks' tasks before and after, and what members gained more.

    Args:
        accuracy: the run's findings about task accuracy.
        axes: its columns of swept values.
    """
    lines = []
    mean = accuracy[accuracy["dataset"] == "mean"]
    for values, part in mean.groupby([*axes, "scoring"], sort=False):
        *arm, scoring = (str(value) for value in values)
        cells = {
            (row["quantity"], row["side"], row["phase"]): interval(row)
            for _, row in part.iterrows()
        }
        columns = [
            cells.get(("accuracy", side, moment), "–")
            for side in ("nonmember", "member")
            for moment in _MOMENTS
        ]
        excess = part[part["quantity"] == "excess"]
        more = "–" if excess.empty else interval(excess.iloc[0], sign="+")
        counts = part[["n_members", "n_nonmembers", "n_seeds"]].max()
        lines.append(
            [
                *(arm_name(arm, "contaminated"), scoring),
                sides_per_seed(counts),
                *(f"{counts['n_seeds']:.0f}", *columns, more),
            ]
        )
    head = [", ".join(axes) or "model", "scoring", "members / non-members per seed", "seeds"]
    head += [f"{side}, {moment}" for side in ("non-members", "members") for moment in _MOMENTS]
    return [
        "## Task accuracy, mean over the datasets",
        "Accuracy of the model before (the base model) and after; the last column is how much more "
        "the members gained than the non-members.",
        markdown([*head, "members' gain less non-members'"], lines),
    ]


def score_correction(correction: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Return the clean accuracies, and the errors of corrected scores by copies and detector.

    Args:
        correction: the run's findings about score correction.
        axes: its columns of swept values.
    """
    margins = correction[correction["estimator"] == ABOVE_CHANCE]
    accuracies = [
        [
            *(str(row[name]) for name in (*axes, "dataset")),
            *(f"{row['target']:.3f}", interval(row, sign="+", digits=3)),
        ]
        for _, row in margins.iterrows()
    ]
    errors_of_answers = correction[
        (correction["outcome"] == "contaminated")
        & (correction["contaminated_share"] == 0.3)
        & ~correction["detector"].isin(UPPER_BOUNDS)
    ]
    place = [*axes, "dataset", "copies", "calibration_items"]
    lines = []
    for key, rows in errors_of_answers.groupby(place, sort=False, dropna=False):
        free = rows[rows["detector"].isna()]
        members, others = rows[["n_members", "n_nonmembers"]].max()
        *arm, size = key
        labels = [*map(str, arm), f"{size:.0f}"]
        for detector, own in rows.groupby("detector", sort=False):
            errors = pd.concat([free, own]).set_index("estimator")
            errors[["value", "low", "high"]] *= 100
            cells = [interval(errors.loc[name], sign="+", digits=1) for name in _ESTIMATORS]
            lines.append([*labels, str(detector), f"{members:.0f} / {others:.0f}", *cells])
    if not lines:
        return []
    head = [*place[:-1], "known items", "detector", "members / non-members"]
    head += [name.replace("_", " ") for name in _ESTIMATORS]
    return [
        "## Accuracy without contamination",
        "The target, and how far it is above chance.",
        markdown([*axes, "dataset", "accuracy", "above chance"], accuracies),
        "## Error of the corrected score",
        "Points of accuracy, estimate minus target; 30 % of the corrected items contaminated.",
        markdown(head, lines),
    ]
