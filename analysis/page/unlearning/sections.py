"""The page's sections on unlearned models: verdicts first, then a section per question.

A sentence names a method if its whole interval supports the claim; the others are counted, not
judged.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from analysis.findings import Row
from analysis.intervals.estimate import Estimate
from analysis.page.parts import Columns, Part, Section, answer, fold, fold_items, present
from analysis.page.unlearning import study
from analysis.page.unlearning.audits import audits_parts
from analysis.page.unlearning.methods import MethodEntry
from analysis.page.unlearning.pictures import (
    copies_panels,
    cost_picture,
    detectors_picture,
    position_picture,
)
from analysis.page.unlearning.study import UnlearningArm
from analysis.page.unlearning.tables import NUMBER, spread, study_tables, verdict_table
from analysis.page.unlearning.verdicts import ModelVerdict, listed, verdict_badges
from analysis.unlearning.verdict import KEPT, LOST, MEASURES, Names

FORGOT = "forgot"
"""Anchor of the section on the verdicts."""
_MAX_NAMED = 6
_SCOPE = re.compile(
    r"any seed|this model|these (\d+ )?models|a p-value, which has no interval|[\d,]+ documents"
)
"""The scope of every interval, which is not a warning."""


@dataclass(frozen=True, kw_only=True)
class UnlearningInputs:
    """The tables of an unlearning study, and its methods."""

    measures: Sequence[Row]
    """Rows of the question `unlearning`."""
    verdicts: Sequence[Row]
    """Rows of the question `verdict`."""
    methods: Sequence[MethodEntry] = ()
    margin: float = 0.1
    """Nats a token that may be lost of texts that should be kept."""
    audits: Sequence[Row] = ()
    """Rows of the question `unlearning_audits`; empty if no model was audited."""
    audit_pages: Sequence[str] = ()
    """The audits' pages, relative to the run's page; empty if they are not next to it."""


def lead_parts(
    inputs: UnlearningInputs, models: Sequence[ModelVerdict], names: Names
) -> list[Part]:
    """Return the parts of the first screen below the headline, except the checks."""
    pictures = present(position_picture(models, names), cost_picture(models, inputs.margin))
    columns = Columns(pictures, "pictures" if len(pictures) > 1 else "") if pictures else None
    return present(columns, verdict_badges(models, FORGOT, names))


def unlearning_sections(
    inputs: UnlearningInputs, models: Sequence[ModelVerdict], names: Names
) -> list[Section]:
    """Return a section per question: a sentence, a picture, a table, the rest folded.

    Args:
        inputs: the tables of the study.
        models: with their verdicts.
        names: published names of detectors, by their own.
    """
    arms = [
        UnlearningArm(name=name, found=findings, names=names)
        for name, findings in study.by_arm(inputs.measures).items()
    ]
    first, tables, elsewhere = arms[0], study_tables(arms[0]), list(map(study_tables, arms[1:]))

    def folded(*names: str, besides: str = "") -> list[Part]:
        """Return tables of the first arm, and the same of the others with one more."""
        first_tables = [tables[name] for name in names if name in tables]
        table_names = {*names, besides}
        more = [table for arm in elsewhere for name, table in arm.items() if name in table_names]
        return present(*map(fold, (*first_tables, *more)))

    again = "relearning" in tables
    sections = (
        answer(
            FORGOT,
            "Forgot",
            "Which methods forgot?",
            _forgetting_sentence(first),
            extra=present(
                detectors_picture(first),
                tables.get("forgetting"),
                _verdicts(inputs, names),
                folded("remembered", "datasets", besides="forgetting"),
            ),
        ),
        answer(
            "left",
            "Copies",
            "Do more copies leave more behind?",
            _copies_sentence(first),
            extra=present(copies_panels(first), folded("copies")),
        ),
        answer(
            "kept",
            "Cost",
            "What did forgetting cost?",
            _cost_sentence(models, inputs.margin),
            extra=present(tables.get("utility"), folded(besides="utility")),
        ),
        answer(
            "lasting",
            "Lasting",
            "Does forgetting last?",
            _lasting_sentence(first),
            extra=present(
                tables.get("relearning" if again else "lasting"),
                folded("lasting" if again else "", besides="relearning"),
            ),
        ),
        answer(
            "unlearning-audits",
            "Audits",
            "Would an audit have detected it?",
            "",
            extra=audits_parts(inputs.audits, inputs.audit_pages),
        ),
    )
    return [section for section in sections if section]


def _verdicts(inputs: UnlearningInputs, names: Names) -> list[Part]:
    """Return, folded, the basis of each verdict, and the measures' warnings."""
    arms = study.by_arm(inputs.verdicts, "method")
    rests = [verdict_table(findings.rows, arm, names) for arm, findings in arms.items()]
    notes = fold_items("Warnings of the measures", unlearning_notes(inputs.measures))
    return present(*map(fold, rests), notes)


def unlearning_notes(measures: Sequence[Row]) -> list[str]:
    """Gather the warnings of what is shown first: each once, with the measures that it concerns.

    Rows of a dose or of a dataset have theirs in the table.
    """
    concerned: dict[str, dict[str, dict[str, None]]] = {}
    for row in filter(study.whole, measures):
        for part in str(row["note"]).split("; "):
            if part and not _SCOPE.fullmatch(part):
                name = str(row["measure"]).replace("_", " ")
                models = concerned.setdefault(part, {}).setdefault(name, {})
                models[study.model_text(row["model"], row["method"])] = None
    return [
        f"{warning} ({_list_names(by_measure)}; {_list_names(chain(*by_measure.values()))})"
        for warning, by_measure in concerned.items()
    ]


def _list_names(names: Iterable[str]) -> str:
    distinct_names = list(dict.fromkeys(names))
    more = len(distinct_names) - _MAX_NAMED
    return ", ".join(distinct_names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _forgetting_sentence(arm: UnlearningArm) -> str:
    """Return a sentence on detection of the forgotten texts, before and after unlearning."""
    auc = {"measure": "auc", "detector": arm.detector}
    cells = {model: arm.get(model=model, **auc) for model in (study.ORIGINAL, study.RETRAINED)}
    before = [
        f"{NUMBER.brief(cell)} under the {model} model"
        for model, cell in cells.items()
        if cell is not None and cell.available
    ]
    after = spread(arm.by_method(**auc).values())
    if not before or not after:
        return ""
    return (
        f"{arm.title(arm.detector)} distinguishes the forgotten texts from unseen ones with AUC "
        f"{' and '.join(before)}; after unlearning with {after}."
    )


def _copies_sentence(arm: UnlearningArm) -> str:
    """Return a sentence on methods after which more copies leave more memorisation."""
    return _name_methods(
        arm.by_method("auc_difference_trend", detector=arm.detector),
        "More copies leave more behind after {}, by Somers' D of the residual with copies",
        "For no method do these data show that more copies leave more behind.",
    )


def _lasting_sentence(arm: UnlearningArm) -> str:
    """Return a sentence on methods whose relearning recovers more than the retrained model."""
    if not arm.steps:
        return ""
    of = f"{study.STEPS}{arm.steps[-1]}:{study.VERSUS_RETRAINED}"
    after = f"After {arm.steps[-1]} steps of training on a part of the forgotten texts"
    return _name_methods(
        arm.by_method("relearned_log_probability_difference", of=of),
        f"{after} the others are likelier than under the retrained model for {{}}, in nats per "
        "token",
        f"{after} no method's model is shown to reproduce more of the others than "
        "the retrained model does.",
    )


def _name_methods(cells: Mapping[str, Estimate], some: str, none: str) -> str:
    """Name the methods whose interval is above 0, with the span of their intervals."""
    measured = {method: cell for method, cell in cells.items() if cell.value == cell.value}
    sure = {method: cell for method, cell in measured.items() if cell.available and cell.low > 0}
    if not sure:
        return none if measured else ""
    n_undecided = len(measured) - len(sure)
    also = f"; not shown for {n_undecided} more" if n_undecided else ""
    methods = listed(list(map(study.method_title, sure)))
    return f"{some.format(methods)}: {spread(sure.values())}{also}."


def _cost_sentence(models: Sequence[ModelVerdict], margin: float) -> str:
    """Return a sentence on methods that lost utility, and on those that kept all of it.

    Args:
        models: with their verdicts.
        margin: nats per token that may be lost.
    """
    verdicts: dict[str, dict[str, set[str]]] = {}
    for model in models:
        for row in model.rows:
            if row["kind"] == "utility":
                measures = verdicts.setdefault(model.name, {})
                measures.setdefault(row["measure"], set()).add(row["verdict"])
    if not verdicts:
        return ""
    all_measures = dict.fromkeys(measure for measures in verdicts.values() for measure in measures)
    lost = {
        measure: [name for name, measures in verdicts.items() if measures.get(measure) == {LOST}]
        for measure in all_measures
    }
    safe = [name for name, own in verdicts.items() if set().union(*own.values()) == {KEPT}]
    undecided = len(verdicts.keys() - {*safe, *(name for names in lost.values() for name in names)})
    parts = [
        f"{listed(names)} surely lost {MEASURES.get(measure, measure)}"
        for measure, names in lost.items()
        if names
    ]
    parts += [f"{listed(safe)} kept all measured utility"] if safe else []
    parts += [f"{undecided} {'is' if undecided == 1 else 'are'} undecided"] if undecided else []
    return (
        f"{'; '.join(parts)}. Lost: more than the margin ({margin:g} nats per token) below both "
        "the retrained model and the original."
    )
