"""What unlearning left behind, and whether an audit would have seen it."""

from collections.abc import Mapping

from analysis.page.parts import Fold, Items, Note, Part, Picture, fold, present
from analysis.page.unlearning.audits import audits_view
from analysis.page.unlearning.view import UnlearningInputs, unlearning_view

_OPEN_VERDICTS = 3
_OPEN_ROWS = 12


def unlearning_parts(inputs: UnlearningInputs, pictures: Mapping[str, Picture]) -> list[Part]:
    """Return what is said of unlearned models: verdicts first, then what they rest on."""
    shown = unlearning_view(inputs)
    verdicts = Items(shown.verdicts)
    count = len(shown.verdicts)
    named = Fold(f"Each verdict with its numbers: {count}", [verdicts])
    notes = Fold(f"Warnings of the measures: {len(shown.notes)}", [Items(shown.notes)])
    return present(
        list(shown.summary),
        named if count > _OPEN_VERDICTS else verdicts,
        pictures.get("unlearning"),
        list(shown.tables),
        pictures.get("unlearning-measures"),
        pictures.get("unlearning-copies"),
        [fold(table) for table in shown.folded],
        notes if shown.notes else None,
    )


def audits_parts(inputs: UnlearningInputs) -> list[Part]:
    """Return what is said of audits of unlearned models; nothing where there are none."""
    shown = audits_view(inputs.audits, inputs.audit_pages)
    if shown is None:
        return []
    pages = tuple((page.name, page.path) for page in shown.pages)
    notes = Fold(f"Notes of the audits: {len(shown.notes)}", [Items(shown.notes)])
    return present(
        [
            fold(table) if at and len(table.rows) > _OPEN_ROWS else table
            for at, table in enumerate(shown.tables)
        ],
        Note("Text by text, with the closest continuation of each model:", "prose", pages)
        if pages
        else None,
        notes if shown.notes else None,
    )
