"""The tables of an unlearning study: a row per model, the original and the retrained one first."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import isfinite
from typing import NamedTuple

from analysis.findings import Row
from analysis.intervals.estimate import Estimate
from analysis.page.table import Table, copies_text, listing, p_text
from analysis.page.unlearning import study
from analysis.page.unlearning.study import UnlearningArm
from analysis.unit import Unit
from analysis.unlearning.verdict import ALL, NO_NAMES, Names, measure_name

NUMBER, SIGNED, WHOLE = Unit("", 2), Unit("", 2, signed=True), Unit("", 0)
LESS = "Minus the retrained's"
_FORGETTING = "forgetting"
_MODELS = (study.UNLEARNED, study.RETRAINED, study.ORIGINAL)


def number_unit(row: Row) -> Unit:
    """Return the unit of a verdict's row: of a position, or of a difference to another model."""
    return SIGNED if row["kind"] == "utility" else NUMBER


def steps_text(row: Row | None) -> str:
    """Return a number of steps, which has no interval, or that it was not reached."""
    if row is None or isfinite(row["value"]):
        return "" if row is None else f"{row['value']:g}"
    return "not reached" if row["note"].startswith("not back") else ""


def counts_text(rows: Iterable[Row]) -> str:
    """Return the counts of texts, groups and seeds of rows; empty for none.

    Texts are summed over the seeds; groups are different ones, over all of them.
    """
    counted = [row for row in rows if row["seeds"]]
    nouns = {
        "forget": "texts",
        "holdout": "that no model saw",
        "groups": "different groups",
        "seeds": "training seeds",
    }
    spans = {}
    for name in nouns:
        ends = sorted({int(row[name]) for row in counted if row[name]})
        spans[name] = " to ".join(f"{end:,}" for end in dict.fromkeys((*ends[:1], *ends[-1:])))
    counts = ", ".join(f"{span} {nouns[name]}" for name, span in spans.items() if span)
    if spans["seeds"] == "1":
        return f"{counts.removesuffix('s')}."
    return f"{counts}; texts are summed over seeds." if counts else ""


def spread(cells: Iterable[Estimate]) -> str:
    """Return one number with its interval, or the span of several and what holds their intervals.

    Those without an interval are left out.
    """
    available = sorted(cell for cell in cells if cell.available)
    if len(available) < 2:
        return NUMBER.brief(available[0]) if available else ""
    ends = NUMBER.ends(min(cell.low for cell in available), max(cell.high for cell in available))
    span = dict.fromkeys(NUMBER.number(cell.value) for cell in (available[0], available[-1]))
    return f"{' to '.join(span)} (intervals within {ends})"


class _Column(NamedTuple):
    """A number of each model."""

    head: str
    measure: str
    place: Mapping[str, str] = {}
    written: Callable[[Row | None], str] = NUMBER.brief


def study_tables(arm: UnlearningArm) -> dict[str, Table]:
    """Return the tables of one arm by their names, those that have a number."""
    all_tables = {**_main_tables(arm), **(_further_tables(arm) if arm.detector else {})}
    return {name: table for name, table in all_tables.items() if table is not None}


def _main_tables(arm: UnlearningArm) -> dict[str, Table | None]:
    auc = {"detector": arm.detector}
    versus = {"of": study.VERSUS_RETRAINED}
    retained, general = "retain_log_probability", "general_log_probability"
    groups = (row["groups"] for row in arm.found.rows if row["measure"] == general)
    documents = max(groups, default=0)
    counted = f" General text: {documents:,} documents, the same in all seeds." if documents else ""
    return {
        _FORGETTING: _table(
            arm,
            "Forgetting",
            f"{arm.title(arm.detector) or 'No detector'} on the forget set "
            "against unseen texts. 0.50: guessing. "
            "PrivLeak: 100 × (a \N{MINUS SIGN} r) / r, with a = 1 \N{MINUS SIGN} AUC and r that of "
            "the retrained model; 0 is best, below it the texts are still detectable (Shi et al. "
            "2024). KS: the greatest distance between the distributions of log-probabilities of "
            "the forget set under the model and under the retrained one; a small p shows "
            "that they differ (after Maini et al. 2024, by swaps of whole groups).",
            _Column("AUC", "auc", auc),
            _Column(LESS, "auc_difference", auc, SIGNED.brief),
            _Column("PrivLeak", "privleak", auc, WHOLE.brief),
            _Column("KS distance", "ks_distance"),
            _Column("KS p", "ks_p", {}, lambda row: p_text(row["value"]) if row else ""),
        ),
        "remembered": _table(
            arm,
            "Memorisation of the forget set",
            "Exact memorisation: share of tokens that are the most likely "
            "ones. Extraction strength: share of the text that greedy decoding reproduces from "
            "the rest. Log-probability in nats per token.",
            _Column("Exact memorisation", "exact_memorisation"),
            _Column("Extraction strength", "extraction_strength"),
            _Column("Log-probability", "forget_log_probability"),
        ),
        "relearning": _table(
            arm,
            "Effect of relearning",
            "Each model is trained on one part of the forget set again. The numbers are the "
            "mean log-probability of the other part, in nats per token, after so many optimiser "
            "steps. An excess over the retrained model's after as many steps was still in the "
            "weights. Steps to relearn: until that part is as likely as under the original.",
            *_relearning(arm),
        ),
        "utility": _table(
            arm,
            "Utility",
            "Mean log-probability in nats per token, higher is better; "
            f"task accuracy: on questions that are retained.{counted}",
            _Column("Retained texts", retained),
            _Column(LESS, f"{retained}_difference", versus, SIGNED.brief),
            _Column("General text", general),
            _Column(f"General, {LESS.lower()}", f"{general}_difference", versus, SIGNED.brief),
            _Column("Task accuracy", "task_accuracy", {"of": study.RETAINED_TEXTS}),
        ),
    }


def _relearning(arm: UnlearningArm) -> list[_Column]:
    """Return the columns of relearning; none if no model was trained again."""
    if not arm.steps:
        return []
    measure, last = "relearned_log_probability", arm.steps[-1]
    versus = {"of": f"{study.STEPS}{last}:{study.VERSUS_RETRAINED}"}
    return [
        *(
            _Column(f"After {step}" if step else "Before", measure, {"of": f"{study.STEPS}{step}"})
            for step in arm.steps
        ),
        _Column(f"After {last}, {LESS.lower()}", f"{measure}_difference", versus, SIGNED.brief),
        _Column("Steps to relearn", "relearn_steps", {}, steps_text),
    ]


def _further_tables(arm: UnlearningArm) -> dict[str, Table | None]:
    """Return the tables that take numbers apart, into two parts or more."""
    auc, left = {"detector": arm.detector}, "auc_difference"
    gap = partial(_Column, measure=left, written=SIGNED.brief)
    copies = [gap(copies_text(dose), place={**auc, "copies": dose}) for dose in arm.copies(left)]
    trend = _Column("Trend", f"{left}_trend", auc, SIGNED.brief)
    conditions = [
        gap(name, place={**auc, "of": f"{study.CONDITION}{name}"})
        for name in arm.qualifiers(study.CONDITION)
    ]
    names = [name for name in arm.found.values("dataset") if name != ALL]
    datasets = [_Column(name, "auc", {**auc, "dataset": name}) for name in names]
    title = arm.title(arm.detector)
    return {
        "copies": _table(
            arm,
            "By copies",
            f"AUC of {title} minus that of the retrained model, for forgotten "
            "texts by their number of copies. Trend: Somers' D of the residual with copies; "
            "above 0, more copies leave more.",
            *([*copies, trend] if len(copies) > 1 else []),
        ),
        "lasting": _table(
            arm,
            "Does forgetting last?",
            f"AUC of {title} minus that of the retrained model under the same condition: the "
            "weights in fewer bits, or the texts paraphrased.",
            *([gap("as it is", place=auc), *conditions] if conditions else []),
        ),
        "datasets": _table(
            arm, "By dataset", f"AUC of {title}.", *(datasets if len(datasets) > 1 else [])
        ),
    }


def _table(arm: UnlearningArm, title: str, caption: str, *columns: _Column) -> Table | None:
    """Return a row per model and a column per number; None without any."""
    rows, counted_rows = [], []
    for model, method in arm.models:
        own = arm.found.where(model=model, method=method)
        measured_rows = [own.row(measure=column.measure, **column.place) for column in columns]
        cells = [column.written(row) for column, row in zip(columns, measured_rows, strict=True)]
        if any(cells):
            rows.append((study.model_text(model, method), *cells))
            # General text is counted in documents, by the caption of its table.
            counted_rows += [row for row, cell in zip(measured_rows, cells, strict=True)
                       if row is not None and cell and row["forget"]]  # fmt: skip
    heads = ("Model", *(column.head for column in columns))
    title = f"{title} ({arm.name})" if arm.name else title
    return listing(title, heads, rows, f"{caption} {counts_text(counted_rows)}")


def _format_models(row: Row) -> str:
    values = (row.get(name) for name in _MODELS)
    return ", ".join(NUMBER.number(cell) for cell in values if cell is not None and isfinite(cell))


def verdict_table(rows: Sequence[Row], arm: str, names: Names = NO_NAMES) -> Table | None:
    """Return the basis of the verdicts of one arm.

    Args:
        rows: of the question `verdict`.
        arm: its name; empty if there is one.
        names: published names of detectors, by their own.
    """
    return listing(
        "Basis of the verdicts" + (f" ({arm})" if arm else ""),
        ("Method", "Measure", "Position", "Difference", "Verdict", ", ".join(_MODELS).capitalize()),
        [
            (
                study.method_title(row["method"]),
                measure_name(row, names)
                + (f", against the {row['versus']}" if row["versus"] else ""),
                NUMBER.brief(row) if row["kind"] == _FORGETTING else "",
                "" if row["kind"] == _FORGETTING else SIGNED.brief(row),
                row["verdict"],
                _format_models(row),
            )
            for row in rows
            if row["kind"] != ALL
        ],
        "Position: (unlearned \N{MINUS SIGN} retrained) / (original \N{MINUS SIGN} retrained) of "
        "a measure: 0 at the retrained model, 1 at the original, below 0 beyond the retrained "
        "one. Its interval is Fieller's. Difference: utility minus that of the retrained model, "
        "or of the original. A model that lost utility against both is ruined.",
    )
