"""What the page shows of unlearned models: verdicts first, then a section a question."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.copy_bins import ALL
from analysis.page.parts import (
    Columns,
    Note,
    Part,
    Section,
    fold,
    fold_items,
    present,
)
from analysis.page.table import Table, listing
from analysis.page.unlearning.answers import (
    audits_sentence,
    copies_sentence,
    cost_sentence,
    forgot_sentence,
    lasting_sentence,
)
from analysis.page.unlearning.audits import audits_parts
from analysis.page.unlearning.first_screen import cost_picture, position_picture, verdict_badges
from analysis.page.unlearning.headline import Judged, method_title
from analysis.page.unlearning.methods import UnlearningMethod
from analysis.page.unlearning.pictures import copies_panels, detectors_picture
from analysis.page.unlearning.tables import (
    SIGNED,
    further_tables,
    measure_tables,
    model_text,
    number_text,
)
from analysis.unlearning.measured import (
    MeasuredModels,
    Row,
    measured_models,
)
from analysis.unlearning.verdict import ALL as WHOLE
from analysis.unlearning.verdict import NO_NAMES, Names, measure_name

FORGOT = "forgot"
"""Anchor of the section on the verdicts."""


@dataclass(frozen=True, kw_only=True)
class UnlearningInputs:
    """The tables of an unlearning study, and the methods behind them."""

    measures: Sequence[Row]
    """Rows of the question `unlearning`."""
    verdicts: Sequence[Row]
    """Rows of the question `verdict`."""
    methods: Sequence[UnlearningMethod] = ()
    margin: float = 0.1
    """Nats a token that may be lost of texts that should be kept."""
    audits: Sequence[Row] = ()
    """Rows of the question `unlearning_audits`; empty if no model was audited."""
    audit_pages: Sequence[str] = ()
    """The audits' pages, relative to the run's page; empty if they do not lie beside it."""


def lead_parts(inputs: UnlearningInputs, models: Sequence[Judged], names: Names) -> list[Part]:
    """Return what the first screen shows below the headline, but for the checks."""
    pictures = present(position_picture(models, names), cost_picture(models, inputs.margin))
    columns = Columns(pictures, "pictures" if len(pictures) > 1 else "") if pictures else None
    return present(columns, verdict_badges(models, FORGOT, names))


def unlearning_sections(
    inputs: UnlearningInputs,
    models: Sequence[Judged],
    names: Names,
) -> list[Section]:
    """Return a section a question: a sentence, a picture, a table, the rest folded.

    Args:
        inputs: the tables of the study.
        models: with their verdicts.
        names: published names of detectors, by their own.
    """
    found = measured_models(inputs.measures)
    arms = found.arms()
    first, *others = arms.items() or [("", found)]

    def tables_of(name: str, arm: MeasuredModels) -> dict[str, Table]:
        return {**measure_tables(arm, name, names), **further_tables(arm, name, names)}

    tables = tables_of(*first)
    elsewhere = [pair for other in others for pair in tables_of(*other).items()]

    def folded(*keys: str, besides: Sequence[str] = ()) -> list[Part]:
        mine = [tables.get(key) for key in keys]
        more = [table for key, table in elsewhere if key in (*keys, *besides)]
        return [fold(table) for table in (*mine, *more) if table is not None]

    sections = (
        Section(
            FORGOT,
            "Forgot",
            "Which methods forgot?",
            present(
                _say(forgot_sentence(first[1], names)),
                detectors_picture(first[1], names),
                tables.get("forgetting"),
                _verdicts(inputs, found, names),
                folded("remembered", "datasets", besides=["forgetting"]),
            ),
        ),
        Section(
            "left",
            "Copies",
            "Do more copies leave more behind?",
            present(
                _say(copies_sentence(first[1])),
                copies_panels(first[1], names),
                folded("copies"),
            ),
        ),
        Section(
            "kept",
            "Cost",
            "What did forgetting cost?",
            present(
                _say(cost_sentence(models, inputs.margin)),
                tables.get("utility"),
                folded(besides=["utility"]),
            ),
        ),
        Section(
            "lasting",
            "Lasting",
            "Does it last?",
            present(
                _say(lasting_sentence(first[1])),
                tables.get("relearning") or tables.get("lasting"),
                folded("lasting" if "relearning" in tables else "", besides=["relearning"]),
            ),
        ),
        Section(
            "unlearning-audits",
            "Audits",
            "Would an audit have seen it?",
            present(
                _say(audits_sentence(inputs.audits)),
                audits_parts(inputs.audits, inputs.audit_pages),
            ),
        ),
    )
    return [section for section in sections if section.parts]


def _say(sentence: str | None) -> Note | None:
    return Note(sentence, "say") if sentence else None


def _verdicts(inputs: UnlearningInputs, found: MeasuredModels, names: Names) -> list[Part]:
    """Return, folded, what each verdict rests on, and the measures' warnings."""
    verdicts = measured_models(inputs.verdicts, first="method")
    rests = [verdict_table(arm.rows, name, names) for name, arm in verdicts.arms().items()]
    notes = unlearning_notes(found)
    return present(
        [fold(table) for table in rests if table is not None],
        fold_items("Warnings of the measures", notes),
    )


def verdict_table(rows: Sequence[Row], name: str, names: Names = NO_NAMES) -> Table | None:
    """Return the table of one arm.

    Args:
        rows: of the question `verdict`.
        name: of the arm; empty where there is but one.
        names: published names of detectors, by their own.
    """
    return listing(
        "What the verdicts rest on" + (f" ({name})" if name else ""),
        ("Method", "Measure", "Position", "Difference", "Verdict"),
        [
            (
                method_title(row["method"]),
                _measure(row, names),
                number_text(row) if row["kind"] == _FORGETTING else "",
                "" if row["kind"] == _FORGETTING else number_text(row, SIGNED),
                row["verdict"],
            )
            for row in rows
            if row["kind"] != WHOLE
        ],
        "Position: (unlearned \N{MINUS SIGN} retrained) / (original \N{MINUS SIGN} retrained) of "
        "a measure: 0 at the retrained model, 1 at the original, below 0 beyond the retrained "
        "one. Its interval is Fieller's. Difference: utility less that of the retrained model, "
        "or of the original. A model that lost some against both is ruined.",
    )


def _measure(row: Row, names: Names) -> str:
    words = measure_name(row, names)
    return f"{words}, against the {row['versus']}" if row["versus"] else words


def unlearning_notes(measured: MeasuredModels) -> list[str]:
    """Gather the warnings of what is shown first: each once, with the measures that it concerns.

    What every interval speaks of (`any seed`, `this model`) is no warning. Rows of a dose or of a
    dataset have theirs in the table.
    """
    concerned: dict[str, dict[str, dict[str, None]]] = {}
    for row in measured.rows:
        if row["dataset"] != ALL or row["copies"] != ALL:
            continue
        for part in str(row["note"]).split("; "):
            if part and not _SCOPE.fullmatch(part):
                measures = concerned.setdefault(part, {})
                name = str(row["measure"]).replace("_", " ")
                measures.setdefault(name, {})[model_text(row["model"], row["method"])] = None
    said = []
    for warning, measures in concerned.items():
        models = list(dict.fromkeys(one for found in measures.values() for one in found))
        said.append(f"{warning} ({_listed(list(measures))}; {_listed(models)})")
    return said


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


_FORGETTING = "forgetting"
_MAX_NAMED = 6
_SCOPE = re.compile(
    r"any seed|this model|these (\d+ )?models|a p-value, which has no interval|[\d,]+ documents"
)
