"""What the page shows of unlearned models: verdicts first, then what they rest on."""

from dataclasses import dataclass

from analysis.figures.unlearning.measured import MeasuredModels, measured_models
from analysis.page.tables.listing import Listing
from analysis.page.unlearning.inputs import UnlearningInputs
from analysis.page.unlearning.tables import further_tables, measure_tables
from analysis.page.unlearning.texts import model_text


@dataclass(frozen=True, kw_only=True)
class UnlearningView:
    """The section, ready to be shown."""

    verdicts: tuple[str, ...]
    """A sentence a method, with the numbers that it rests on."""
    tables: tuple[Listing, ...]
    folded: tuple[Listing, ...]
    """Tables that take the numbers apart."""
    notes: tuple[str, ...]
    """What the measures warn of, each once with the models that it concerns."""


def unlearning_view(inputs: UnlearningInputs) -> UnlearningView:
    """Return what the page shows."""
    found = measured_models(inputs.measures)
    arms = found.arms()
    return UnlearningView(
        verdicts=tuple(row["sentence"] for row in inputs.verdicts),
        tables=tuple(table for name, arm in arms.items() for table in measure_tables(arm, name)),
        folded=tuple(table for name, arm in arms.items() for table in further_tables(arm, name)),
        notes=tuple(_notes(found)),
    )


def _notes(measured: MeasuredModels) -> list[str]:
    """Gather the notes of the rows: what stands at several of them is said once."""
    models: dict[str, dict[str, None]] = {}
    for row in measured.rows:
        if row["note"]:
            models.setdefault(row["note"], {})[model_text(row["model"], row["method"])] = None
    said = []
    for note, names in models.items():
        listed = ", ".join(list(names)[:_MAX_NAMED])
        more = len(names) - _MAX_NAMED
        said.append(f"{listed}{f' and {more} more' if more > 0 else ''}: {note}")
    return said


_MAX_NAMED = 6
