"""What unlearning left behind, and whether an audit would have seen it."""

from collections.abc import Mapping

from analysis.page.parts import Fold, Items, Note, Picture, Section, fold, present
from analysis.page.unlearning.audits import AuditsView
from analysis.page.unlearning.view import UnlearningView

_OPEN_VERDICTS = 3
_OPEN_ROWS = 12


def unlearning_section(shown: UnlearningView, pictures: Mapping[str, Picture]) -> Section:
    """Return the section on unlearned models: verdicts first, then what they rest on."""
    verdicts = Items(shown.verdicts)
    count = len(shown.verdicts)
    named = Fold(f"Each verdict with its numbers: {count}", [verdicts])
    notes = Fold(f"Warnings of the measures: {len(shown.notes)}", [Items(shown.notes)])
    return Section(
        anchor="unlearning",
        short="Unlearning",
        title="What did unlearning leave behind?",
        parts=present(
            list(shown.summary),
            named if count > _OPEN_VERDICTS else verdicts,
            pictures.get("unlearning"),
            list(shown.tables),
            pictures.get("unlearning-measures"),
            pictures.get("unlearning-copies"),
            [fold(table) for table in shown.folded],
            notes if shown.notes else None,
        ),
    )


def audits_section(shown: AuditsView) -> Section:
    """Return the section on audits of unlearned models."""
    pages = tuple((page.name, page.path) for page in shown.pages)
    notes = Fold(f"Notes of the audits: {len(shown.notes)}", [Items(shown.notes)])
    return Section(
        anchor="unlearning-audits",
        short="Audits of unlearning",
        title="Would an audit have seen it?",
        parts=present(
            [
                fold(table) if at and len(table.rows) > _OPEN_ROWS else table
                for at, table in enumerate(shown.tables)
            ],
            Note("Text by text, with the closest continuation of each model:", "prose", pages)
            if pages
            else None,
            notes if shown.notes else None,
        ),
    )
