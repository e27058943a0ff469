"""The tables of an unlearning study: a row a model, the original and the retrained one first."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import nan
from typing import NamedTuple

from analysis.copy_bins import ALL
from analysis.page.table import Table, copies_text, listing, p_text
from analysis.page.unlearning.headline import method_title
from analysis.unit import Unit
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
from analysis.unlearning.verdict import NO_NAMES, Names

NUMBER = Unit("", 2)
SIGNED = Unit("", 2, signed=True)
"""Of differences."""
PER_CENT = Unit("", 0)


def number_text(row: Row | None, unit: Unit = NUMBER) -> str:
    """Return `0.61 [0.52, 0.69]`; the number alone where it has no interval; empty without one."""
    if row is None or not has_value(row):
        return ""
    low, high = (row[end] if has_interval(row) else nan for end in ("low", "high"))
    place = unit.place(row["value"], low, high)
    return " ".join(filter(None, (place.text, place.ends)))


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
    """A number of each model."""

    head: str
    measure: str
    written: Callable[[Row | None], str] = number_text
    by_detector: bool = False
    """Whether it is the headline's detector's."""
    of: str = ""
    copies: str = ALL
    dataset: str = ALL

    def row(self, arm: MeasuredModels, model: str, method: str) -> Row | None:
        """Return the row of a model."""
        return arm.get(
            model,
            method,
            self.measure,
            detector=arm.headline_detector if self.by_detector else None,
            copies=self.copies,
            dataset=self.dataset,
            of=self.of,
        )


_signed = partial(number_text, unit=SIGNED)
_AUC = _Column("AUC", "auc", by_detector=True)
_LEFT = _Column("Less the retrained's", "auc_difference", _signed, True)
_FORGETTING = (
    _AUC,
    _LEFT,
    _Column("PrivLeak", "privleak", partial(number_text, unit=PER_CENT), True),
    _Column("KS distance", "ks_distance"),
    _Column("KS p", "ks_p", p_value),
)
_MEMORY = (
    _Column("Exact memorisation", "exact_memorisation"),
    _Column("Extraction strength", "extraction_strength"),
    _Column("Log-probability", "forget_log_probability"),
)
_RETAINED, _GENERAL = "retain_log_probability", "general_log_probability"
_UTILITY = (
    _Column("Retained texts", _RETAINED),
    _Column("Less the retrained's", f"{_RETAINED}_difference", _signed, of=VERSUS_RETRAINED),
    _Column("General text", _GENERAL),
    _Column(
        "General, less the retrained's", f"{_GENERAL}_difference", _signed, of=VERSUS_RETRAINED
    ),
    _Column("Task accuracy", "task_accuracy", of=RETAINED_TEXTS),
)


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
    measure, last = "relearned_log_probability", steps[-1]
    versus = f"{STEPS}{last}:{VERSUS_RETRAINED}"
    return [
        *(
            _Column(f"After {step}" if step else "Before", measure, of=f"{STEPS}{step}")
            for step in steps
        ),
        _Column(f"After {last}, less the retrained's", f"{measure}_difference", _signed, of=versus),
        _Column("Steps to relearn", "relearn_steps", steps_text),
    ]


def further_tables(arm: MeasuredModels, name: str, names: Names = NO_NAMES) -> dict[str, Table]:
    """Return the tables that take numbers apart, into two parts or more: `copies`, `lasting`,
    `datasets`.
    """
    detector = arm.headline_detector
    if detector is None:
        return {}
    shown = names.get(detector, detector)
    doses = [
        _LEFT._replace(head=copies_text(dose), copies=dose) for dose in arm.copies(_LEFT.measure)
    ]
    trend = _LEFT._replace(head="Trend", measure=f"{_LEFT.measure}_trend")
    lasting = [_LEFT._replace(head=one, of=f"{CONDITION}{one}") for one in arm.conditions]
    datasets = [_AUC._replace(head=one, dataset=one) for one in arm.datasets]
    made = {
        "copies": _table(
            arm,
            _titled("By copies", name),
            [*doses, trend] if len(doses) > 1 else [],
            f"AUC of {shown} less that of the retrained model, for forgotten texts by the "
            "number of their copies. Trend: Somers' D of what is left with copies; above 0, more "
            "copies leave more behind.",
        ),
        "lasting": _table(
            arm,
            _titled("Does forgetting last?", name),
            [_LEFT._replace(head="as it is"), *lasting] if lasting else [],
            f"AUC of {shown} less that of the retrained model under the same condition: the "
            "weights in fewer bits, or the texts paraphrased.",
        ),
        "datasets": _table(
            arm,
            _titled("By dataset", name),
            datasets if len(datasets) > 1 else [],
            f"AUC of {shown}.",
        ),
    }
    return {key: table for key, table in made.items() if table is not None}


def _titled(title: str, name: str) -> str:
    return f"{title} ({name})" if name else title


def _table(
    arm: MeasuredModels, title: str, columns: Sequence[_Column], caption: str
) -> Table | None:
    """Return a row a model and a column a number; None without any."""
    rows, behind = [], []
    for model, method in arm.models:
        if model == BASE:
            continue
        found = [column.row(arm, model, method) for column in columns]
        cells = [column.written(row) for column, row in zip(columns, found, strict=True)]
        if any(cells):
            rows.append((model_text(model, method), *cells))
            # General text is counted in documents, by the caption of its table.
            behind += [row for row, cell in zip(found, cells, strict=True)
                       if row is not None and cell and row["forget"]]  # fmt: skip
    heads = ("Model", *(column.head for column in columns))
    return listing(title, heads, rows, f"{caption} {counts_text(behind)}")
