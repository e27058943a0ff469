"""The tables of an unlearning study: a row a model, the original and the retrained one first."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from analysis.page.drawing.elements import Dot
from analysis.page.grids import copies_text
from analysis.page.table import Table, listing, p_text
from analysis.unlearning.headline import NO_NAMES, Names, method_title
from analysis.unlearning.measured import (
    BASE,
    CONDITION,
    NO_METHOD,
    RETAINED_TEXTS,
    STEPS,
    VERSUS_RETRAINED,
    MeasuredModels,
    Row,
    has_interval,
    has_value,
)

MINUS = "\N{MINUS SIGN}"


def number_with_interval(row: Row | None, *, digits: int = 2, signed: bool = False) -> str:
    """Return `0.61 [0.52, 0.69]`; the number alone where it has no interval; empty without one.

    Args:
        row: with `value`, `low` and `high`.
        digits: decimals.
        signed: write the sign of positive numbers, too.
    """
    if row is None or not has_value(row):
        return ""
    form = f"{{:{'+' if signed else ''}.{digits}f}}"
    value = form.format(row["value"])
    if has_interval(row):
        value = f"{value} [{form.format(row['low'])}, {form.format(row['high'])}]"
    return value.replace("-", MINUS)


def row_dot(row: Row, number: str, hover: str) -> Dot:
    """Return a row as a mark, beside which its number stands without the interval."""
    return Dot(row["value"], row["low"], row["high"], hover, text=number.partition(" ")[0])


def p_value(row: Row | None) -> str:
    """Return a p-value, never as zero; empty without one."""
    return "" if row is None or not has_value(row) else p_text(row["value"])


def steps_text(row: Row | None) -> str:
    """Return a number of steps, which has no interval, or that it was not reached."""
    if row is None:
        return ""
    if not has_value(row):
        return "not reached" if row["note"].startswith("not back") else ""
    return f"{row['value']:g}"


def model_text(model: str, method: str) -> str:
    """Return what a row of a table is called."""
    return f"{model} model" if method == NO_METHOD else method_title(method)


def counts_text(rows: Iterable[Row]) -> str:
    """Say how many texts, groups and seeds stand behind rows; empty for none.

    Texts are summed over the seeds; groups are different ones, over all of them.
    """
    found = [row for row in rows if row["seeds"]]
    if not found:
        return ""

    def span(name: str) -> str:
        ends = sorted({int(row[name]) for row in found if row[name]})
        return f"{ends[0]:,}" if len(ends) == 1 else f"{ends[0]:,} to {ends[-1]:,}"

    parts = []
    if any(row["forget"] for row in found):
        parts.append(f"{span('forget')} texts")
    if any(row["holdout"] for row in found):
        parts.append(f"{span('holdout')} that no model saw")
    if any(row["groups"] for row in found):
        parts.append(f"{span('groups')} different groups")
    seeds = span("seeds")
    parts.append(f"{seeds} training {'seed' if seeds == '1' else 'seeds'}")
    return f"{', '.join(parts)}{'' if seeds == '1' else '; texts are summed over seeds'}."


class _Column(NamedTuple):
    head: str
    measure: str
    written: Callable[[Row | None], str]
    by_detector: bool = False
    of: str = ""


def _signed(row: Row | None) -> str:
    return number_with_interval(row, signed=True)


def _percent(row: Row | None) -> str:
    return number_with_interval(row, digits=0)


_FORGETTING = (
    _Column("AUC", "auc", number_with_interval, True),
    _Column("Less the retrained's", "auc_difference", _signed, True),
    _Column("PrivLeak", "privleak", _percent, True),
    _Column("KS distance", "ks_distance", number_with_interval),
    _Column("KS p", "ks_p", p_value),
)
_MEMORY = (
    _Column("Exact memorisation", "exact_memorisation", number_with_interval),
    _Column("Extraction strength", "extraction_strength", number_with_interval),
    _Column("Log-probability", "forget_log_probability", number_with_interval),
)
_UTILITY = (
    _Column("Retained texts", "retain_log_probability", number_with_interval),
    _Column(
        "Less the retrained's",
        "retain_log_probability_difference",
        _signed,
        of=VERSUS_RETRAINED,
    ),
    _Column("General text", "general_log_probability", number_with_interval),
    _Column(
        "General, less the retrained's",
        "general_log_probability_difference",
        _signed,
        of=VERSUS_RETRAINED,
    ),
    _Column("Task accuracy", "task_accuracy", number_with_interval, of=RETAINED_TEXTS),
)
_HEAD = "Model"


def measure_tables(arm: MeasuredModels, name: str, names: Names = NO_NAMES) -> dict[str, Table]:
    """Return the main tables of one arm: `forgetting`, `remembered`, `relearning`, `utility`.

    Args:
        arm: its measures.
        name: of the arm; empty where there is but one.
        names: published names of detectors, by their own.
    """
    detector = names.get(arm.headline_detector or "", arm.headline_detector)
    found = {
        "forgetting": _table(
            arm,
            _titled("Forgetting", name),
            _FORGETTING,
            f"{detector} on the forget set against texts that no model saw. 0.50: it cannot tell. "
            "PrivLeak: 100 × (a \N{MINUS SIGN} r) / r, with a = 1 \N{MINUS SIGN} AUC and r that of "
            "the retrained model; 0 is best, below it the texts are still told (Shi et al. 2024). "
            "KS: the greatest distance between the distributions of log-probabilities of the "
            "forget set under the model and under the retrained one; a small p says that they "
            "differ (after Maini et al. 2024, by swaps of whole groups).",
        ),
        "remembered": _table(
            arm,
            _titled("What is still remembered of the forget set", name),
            _MEMORY,
            "Exact memorisation: share of tokens that are the most likely ones. Extraction "
            "strength: share of the text that greedy decoding gives back from the rest. "
            "Log-probability in nats a token.",
        ),
        "relearning": _table(
            arm,
            _titled("What relearning brings back", name),
            _relearning(arm),
            "Each model is trained on one part of the forget set again. The numbers are the mean "
            "log-probability of the other part, in nats a token, after so many optimiser steps. "
            "What is above the retrained model's after as many steps was still in the weights. "
            "Steps to relearn: until that part is as likely as under the original.",
        ),
        "utility": _table(
            arm,
            _titled("Utility", name),
            _UTILITY,
            "Mean log-probability in nats a token, higher is better; task accuracy: share of "
            f"right answers to questions that are retained.{_general_text(arm)}",
        ),
    }
    return {key: table for key, table in found.items() if table is not None}


def _general_text(arm: MeasuredModels) -> str:
    counts = {row["groups"] for row in arm.rows if row["measure"] == "general_log_probability"}
    documents = max(counts, default=0)
    return f" General text: {documents:,} documents, the same in all seeds." if documents else ""


def _relearning(arm: MeasuredModels) -> list[_Column]:
    """Return the columns of relearning; none where no model was trained again."""
    steps = arm.relearning_steps
    if not steps:
        return []
    measure, after = "relearned_log_probability", f"{STEPS}{steps[-1]}"
    return [
        *(
            _Column(
                f"After {step}" if step else "Before",
                measure,
                number_with_interval,
                of=f"{STEPS}{step}",
            )
            for step in steps
        ),
        _Column(
            f"After {steps[-1]}, less the retrained's",
            f"{measure}_difference",
            _signed,
            of=f"{after}:{VERSUS_RETRAINED}",
        ),
        _Column("Steps to relearn", "relearn_steps", steps_text),
    ]


def further_tables(arm: MeasuredModels, name: str, names: Names = NO_NAMES) -> dict[str, Table]:
    """Return the tables that take numbers apart: `copies`, `lasting`, `datasets`."""
    detector = arm.headline_detector
    if detector is None:
        return {}
    difference = {"measure": "auc_difference", "detector": detector}
    shown = names.get(detector, detector)
    doses = {
        copies_text(dose): {**difference, "copies": dose} for dose in arm.copies("auc_difference")
    }
    trend = {"Trend": {**difference, "measure": "auc_difference_trend"}}
    lasting = {one: {**difference, "of": f"{CONDITION}{one}"} for one in arm.conditions}
    datasets = {one: {**difference, "measure": "auc", "dataset": one} for one in arm.datasets}
    made = {
        "copies": _across(
            arm,
            _titled("By copies", name),
            {**doses, **trend} if len(doses) > 1 else {},
            f"AUC of {shown} less that of the retrained model, for forgotten texts by the "
            "number of their copies. Trend: Somers' D of what is left with copies; above 0, more "
            "copies leave more behind.",
        ),
        "lasting": _across(
            arm,
            _titled("Does forgetting last?", name),
            {"as it is": difference, **lasting} if lasting else {},
            f"AUC of {shown} less that of the retrained model under the same condition: the "
            "weights in fewer bits, or the texts paraphrased.",
        ),
        "datasets": _across(
            arm, _titled("By dataset", name), datasets, f"AUC of {shown}.", signed=False
        ),
    }
    return {key: table for key, table in made.items() if table is not None}


def _titled(title: str, name: str) -> str:
    return f"{title} ({name})" if name else title


def _table(
    arm: MeasuredModels, title: str, columns: Sequence[_Column], caption: str
) -> Table | None:
    rows, behind = [], []
    for model, method in _shown(arm):
        cells = []
        for column in columns:
            row = arm.get(
                model,
                method,
                column.measure,
                detector=arm.headline_detector if column.by_detector else None,
                of=column.of,
            )
            cells.append(column.written(row))
            # General text is counted in documents, by the caption of its table.
            behind += [row] if row is not None and cells[-1] and row["forget"] else []
        if any(cells):
            rows.append((model_text(model, method), *cells))
    heads = (_HEAD, *(column.head for column in columns))
    return listing(title, heads, rows, f"{caption} {counts_text(behind)}")


def _across(
    arm: MeasuredModels,
    title: str,
    columns: Mapping[str, dict[str, str]],
    caption: str,
    *,
    signed: bool = True,
) -> Table | None:
    """Return a table of one number taken apart, where it has at least two parts."""
    if len(columns) < 2:
        return None
    rows, behind = [], []
    for model, method in _shown(arm):
        found = [arm.get(model, method, **asked) for asked in columns.values()]
        cells = [number_with_interval(row, signed=signed) for row in found]
        if any(cells):
            rows.append((model_text(model, method), *cells))
            behind += [row for row in found if row is not None]
    return listing(title, (_HEAD, *columns), rows, f"{caption} {counts_text(behind)}")


def _shown(arm: MeasuredModels) -> Iterator[tuple[str, str]]:
    return (one for one in arm.models if one[0] != BASE)
