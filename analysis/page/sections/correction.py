"""Whether a contaminated benchmark's score can be corrected, by estimator and detector."""

from collections.abc import Sequence
from math import isfinite

import pyarrow as pa

from analysis.arm import UPPER_BOUNDS
from analysis.correction.estimators import (
    BY_SCORES,
    COMBINED,
    HARD,
    IMPUTED,
    LARGEST_GAIN,
    NAIVE,
    ORACLE,
    WEIGHTED,
)
from analysis.correction.question import ABOVE_CHANCE
from analysis.findings import Findings, Row, contaminated_cohorts, split_by_cohort
from analysis.intervals.estimate import Estimate
from analysis.page.crossed import Head, cross
from analysis.page.parts import Fold, Note, Part, Section, answer
from analysis.page.table import Table
from analysis.page.view import View, arm_suffix
from analysis.selection.ranking import highest_first
from analysis.unit import POINTS

_SHARE = 0.3
_OUTCOME = "contaminated"
_TITLES = {
    NAIVE: "no correction",
    WEIGHTED: "weighted",
    HARD: "hard",
    LARGEST_GAIN: "largest gain",
    IMPUTED: "imputed",
    COMBINED: "combined",
    ORACLE: "non-members only",
}
_TARGETS = {"twin": "the clean twin", "base": "the base model, which lacks the background"}


def correction_section(
    table: pa.Table | None, axes: Sequence[str], view: View
) -> Section | None:
    """Return the section; None if no arm has answers to correct.

    Args:
        table: the question `correction`; None in results of an older version.
        axes: the swept axes.
        view: of the run, whose arm is described if it has a correction.
    """
    own = view.best.table.cohort
    arms = sorted(
        contaminated_cohorts([] if table is None else split_by_cohort(table, axes)),
        key=lambda arm: (not _corrected(arm), arm.cohort != own),
    )
    if not arms:
        return None
    arm = arms[0]
    datasets = [_condition(arm.where(dataset=name)) for name in _corrected(arm)]
    at_chance = [row["dataset"] for row in arm.rows
                 if row["estimator"] == ABOVE_CHANCE and row["dataset"] not in _corrected(arm)]  # fmt: skip
    sentences = [_sentences(rows, view) for rows in datasets[:1]]
    if at_chance:
        sentences.append(
            f"Clean accuracy is within noise of chance on {', '.join(at_chance)}: nothing can be "
            "inflated or corrected there."
        )
    further: list[Part] = [
        Fold(_place(rows), [_sentences(rows, view), _table(rows, view)]) for rows in datasets[1:]
    ]
    return answer(
        "correction",
        "Score correction",
        "Can the benchmark's score be corrected?",
        " ".join(sentences),
        *(_table(rows, view) for rows in datasets[:1]),
        rest=[*further, Note(_HOW, "how") if datasets else None],
        others="detectors",
    )


_HOW = (
    "Answers are those of the contaminated model; `hybrid` in findings.parquet takes the target "
    "model's on non-members, and has other sizes and shares."
)


def _corrected(arm: Findings) -> list[str]:
    """Return the datasets that have a correction."""
    return list(dict.fromkeys(row["dataset"] for row in arm.rows if row["outcome"] is not None))


def _condition(rows: Findings) -> Findings:
    """Return the rows of one outcome, the largest calibration set, and the share nearest to 30 %."""
    errors = [row for row in rows.rows if row["outcome"] == _OUTCOME]
    size = max(row["calibration_items"] for row in errors)
    shares = {row["contaminated_share"] for row in errors if row["calibration_items"] == size}
    share = min(shares, key=lambda each: abs(each - _SHARE))
    condition = {"calibration_items": size, "contaminated_share": share}
    chosen = [row for row in errors if condition.items() <= row.items()]
    return Findings(chosen, rows.axes, {"dataset": chosen[0]["dataset"]})


def _place(rows: Findings) -> str:
    first = rows.rows[0]
    return (
        f"{first['dataset']}{arm_suffix(rows.cohort)}, {first['contaminated_share']:.0%} "
        f"contaminated, {first['calibration_items']} items of known membership"
    )


def _sentences(rows: Findings, view: View) -> str:
    """Return the inflation, what the best corrector removes, and whether its AUC is the best."""
    naive = rows.row(estimator=NAIVE)
    ranked = _by_rmse([row for row in rows.rows if row["estimator"] in BY_SCORES])
    if naive is None or not ranked:
        return ""
    first = f"On {_place(rows)}, the score differs from that of "
    first += f"{_TARGETS[naive['reference']]} by {_error(naive)}."
    best = ranked[0]
    name = view.title(best["detector"])
    second = f"Closest is {_TITLES[best['estimator']]} with {name}: {_error(best)}, "
    second += f"{_removal(best)}; {_others(rows)}."
    return " ".join([first, second, _by_auc(ranked, name, view)])


def _by_rmse(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of detectors that are not bounds, the least root mean square first."""
    usable = [row for row in rows if row["detector"] not in UPPER_BOUNDS and row["rmse"] is not None]
    return [usable[at] for at in highest_first([-row["rmse"] for row in usable])]


def _error(row: Row) -> str:
    cell = Estimate.of(row)
    text = POINTS.text(cell.value, cell.low, cell.high)
    return f"{text} (root mean square {100 * row['rmse']:.1f})"


def _removal(row: Row) -> str:
    if row["removed"] is None or not isfinite(row["removed"]):
        return "of an inflation within noise"
    return f"which removes {row['removed']:.0%} of the inflation"


def _others(rows: Findings) -> str:
    """Return the errors of what uses no detector."""
    named = [(rows.row(estimator=name), _TITLES[name]) for name in (IMPUTED, ORACLE)]
    return ", ".join(f"{title} {_error(row)}" for row, title in named if row is not None)


def _by_auc(ranked: Sequence[Row], name: str, view: View) -> str:
    """Return whether the best corrector is the detector with the best AUC on the dataset."""
    table, dataset = view.best.table, ranked[0]["dataset"]
    aucs = {
        row["detector"]: cell.value
        for row in ranked
        if (cell := table.reported(row["detector"], dataset=dataset)
            or table.reported(row["detector"])) is not None
    }  # fmt: skip
    if not aucs:
        return ""
    top = [*aucs][highest_first([*aucs.values()])[0]]
    if top == ranked[0]["detector"]:
        return f"{name} also has the best AUC ({aucs[top]:.2f})."
    own = next(row for row in ranked if row["detector"] == top)
    return (
        f"The best AUC is that of {view.title(top)} ({aucs[top]:.2f}), whose best correction, "
        f"{_TITLES[own['estimator']]}, has a root mean square of {100 * own['rmse']:.1f}."
    )


def _table(rows: Findings, view: View) -> Table:
    order = {name: at for at, name in enumerate(view.order)}
    by_scores = [row for row in rows.rows if row["estimator"] in BY_SCORES]
    best = _by_rmse(by_scores)[:1]
    crossed = cross(
        sorted(by_scores, key=lambda row: order.get(row["detector"], len(order))),
        lambda row: view.head(row["detector"]),
        lambda row: Head(_TITLES[row["estimator"]].capitalize()),
        unit=POINTS,
        cell=lambda row: row,
        bold=lambda row: row in best,
        counted=lambda row: "" if row["rmse"] is None else f"± {100 * row['rmse']:.1f}",
    )
    caption = f"{_place(rows)}. Points of accuracy: estimate minus target, 95 % interval, and ± root "
    caption += "mean square over draws of calibration and test set. "
    return crossed.table("Error of the corrected score", "Detector", caption)
