"""The first screen of a run with unlearning: where each method stands, what it cost, its verdict.

Both pictures show what the verdicts rest on and nothing else: the declared measures, each as a
position between the retrained model (0) and the original (1), and the utility that was lost against
both. A measure without an interval has no mark.
"""

import re
from collections.abc import Sequence
from math import isfinite, nan

from analysis.copy_bins import ALL
from analysis.intervals.clustered import FROM_SEEDS
from analysis.page.drawing.elements import round_limits
from analysis.page.drawing.matrix import (
    Matrix,
    MatrixAxis,
    MatrixColumn,
    MatrixRow,
    dot_ends,
)
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Badge, Badges
from analysis.page.unlearning.headline import (
    NEAR,
    UNDECIDED,
    Judged,
    best_first,
    unlearning_headline,
)
from analysis.page.unlearning.tables import NUMBER, SIGNED, counts_text, number_text
from analysis.unit import Dot
from analysis.unlearning.measured import UNLEARNED, Row, has_interval
from analysis.unlearning.verdict import MEASURES, NO_NAMES, Names, measure_name

MAX_MODELS = 12
"""In the pictures: the first that were asked for, whatever their verdicts."""
_LEFT, _RIGHT = 640.0, 500.0
_FARTHEST, _MOST_LOST = 2.0, 1.0
"""Ends of the scales: a ruined model lies far beyond, and would press all others together."""
_DETECTORS, _TEXTS = "AUC of a detector", "Text given back"


def leading_sentences(models: Sequence[Judged], measures: Sequence[Row]) -> list[str]:
    """Return the answer, then what must be known to read it.

    Args:
        models: with their verdicts.
        measures: rows of the question `unlearning`.
    """
    counted = [
        row
        for row in measures
        if (row["measure"], row["model"]) == ("auc", UNLEARNED)
        and (row["copies"], row["dataset"]) == (ALL, ALL)
    ]
    seeds = {row["seeds"] for row in counted if has_interval(row)}
    scope = "any seed" if seeds and min(seeds) >= FROM_SEEDS else ""
    scope = "these models" if seeds == {1} else scope
    about = f" Intervals speak of {scope}." if scope else ""
    return [
        unlearning_headline(models),
        "Position 0 is a model retrained without the texts, 1 the original that saw them; near: "
        "the whole interval within half the way. Each number is that of the first declared measure "
        f"that decides. {counts_text(counted)}{about}".strip(),
    ]


def position_picture(models: Sequence[Judged], names: Names = NO_NAMES) -> Picture | None:
    """Return where each method stands between the retrained model and the original.

    Args:
        models: with their verdicts.
        names: published names of detectors, by their own.
    """
    shown = best_first(models[:MAX_MODELS])
    found = _by_measure(shown, "forgetting")
    columns = [
        MatrixColumn(
            names.get(detector, detector) if measure == "auc" else measure_name(some).capitalize(),
            [_dot(model, rows.get(at), names) for at, model in enumerate(shown)],
            group=_DETECTORS if measure == "auc" else _TEXTS,
            rule=1.0,
        )
        for (measure, detector), rows in found.items()
        for some in [next(iter(rows.values()))]
    ]
    columns = [column for column in columns if any(column.dots)]
    if not columns:
        return None
    low, high = round_limits(_ends(columns, _FARTHEST), 0.5, -0.5, 1.5)
    axis = MatrixAxis(low, high, 0.0, ((0.0, "0"), (1.0, "1")), zone=(-0.5, 0.5))
    label = (
        f"Positions of {len(shown)} unlearned models between the retrained model (0) and the "
        f"original (1) by {len(columns)} measures, with 95 % intervals"
    )
    caption = (
        "0: the retrained model; dashed, 1: the original; left of 0: forgotten more than the "
        "retrained model never knew. Shaded: near the retrained. Lines: 95 % (Fieller). "
        "\N{EN DASH}: no interval, as where the measure does not tell the two models apart."
    )
    if len(models) > len(shown):
        caption += f" {len(models) - len(shown)} more models are in the tables."
    matrix = _matrix(shown, columns, axis, label)
    return picture("positions", "Where each method stands", caption, matrix, _LEFT)


def cost_picture(models: Sequence[Judged], margin: float) -> Picture | None:
    """Return what was lost of the texts that should have been kept, against both other models.

    Args:
        models: with their verdicts.
        margin: nats a token that may be lost.
    """
    shown = best_first(models[:MAX_MODELS])
    found = _by_measure(shown, "utility")
    kept = sorted(measure for measure in found if "log_probability" in measure[0])
    columns = [
        MatrixColumn(
            f"less {versus}",
            [_dot(model, found[measure, versus].get(at)) for at, model in enumerate(shown)],
            group=MEASURES[measure].capitalize(),
        )
        for measure, versus in reversed(kept)
    ]
    if not columns:
        return None
    low, high = round_limits(_ends(columns, _MOST_LOST), 0.1, -2 * margin, 2 * margin)
    axis = MatrixAxis(low, high, 0.0, ((0.0, "0"),), zone=(-margin, high))
    label = (
        f"Log-probability of texts that should be kept, {len(shown)} unlearned models less the "
        "retrained model and less the original, with 95 % intervals"
    )
    caption = (
        "Log-probability of texts that should be kept, nats a token. Shaded: no more lost than "
        f"{margin:g}. Ruined: for one kind of text both intervals lie left of it."
    )
    matrix = _matrix(shown, columns, axis, label)
    return picture("cost", "What it cost", caption, matrix, _RIGHT)


def _matrix(
    models: Sequence[Judged], columns: Sequence[MatrixColumn], axis: MatrixAxis, label: str
) -> Matrix:
    """Return a row a model."""
    return Matrix(
        rows=[MatrixRow(model.name) for model in models],
        columns=columns,
        axis=axis,
        label=label,
        row_height=min(24.0, max(16.0, 200 / len(models))),
        phone_columns=2,
    )


def verdict_badges(models: Sequence[Judged], anchor: str, names: Names = NO_NAMES) -> Badges:
    """Return a badge a model: its verdict and the number that it is told with."""
    badges = []
    for model in best_first(models[:MAX_MODELS]):
        mark = "passed" if model.verdict == NEAR else "" if model.verdict in UNDECIDED else "failed"
        row = model.decisive
        decided = [] if row is None else [measure_name(row, names), _number(row)]
        badges.append(Badge(model.name, mark, [model.verdict, *decided]))
    return Badges(badges, anchor, "Verdicts")


def _by_measure(models: Sequence[Judged], kind: str) -> dict[tuple[str, str], dict[int, Row]]:
    """Return the rows of each measure (with its detector, or the model of a difference)."""
    found: dict[tuple[str, str], dict[int, Row]] = {}
    for at, model in enumerate(models):
        for row in model.rows:
            if row["kind"] == kind:
                key = row["measure"], row["versus"] or row["detector"]
                found.setdefault(key, {})[at] = row
    return found


def _dot(model: Judged, row: Row | None, names: Names = NO_NAMES) -> Dot | None:
    """Return a number with an interval as a mark; None without one."""
    if row is None or not has_interval(row):
        return None
    number = _number(row)
    models = ("unlearned", "retrained", "original")
    raw = ", ".join(f"{one} {row[one]:.2f}" for one in models if isfinite(row.get(one, nan)))
    hover = f"{model.name}, {measure_name(row, names)}: {number}; {row['verdict']}"
    hover = f"{hover} ({raw})" if raw else hover
    value, low, high = (row[end] for end in ("value", "low", "high"))
    return Dot(value, low, high, hover, text=number.partition(" ")[0])


def _number(row: Row) -> str:
    number = number_text(row, SIGNED if row["kind"] == "utility" else NUMBER)
    return re.sub(r"[+\N{MINUS SIGN}](0\.00)\b", r"\1", number)


def _ends(columns: Sequence[MatrixColumn], farthest: float) -> list[float]:
    """Return all ends of intervals, none beyond the farthest."""
    return [max(-farthest, min(farthest, end)) for end in dot_ends(columns)]
