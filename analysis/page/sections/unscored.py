"""What could not be scored, why, and what became of those rows; what detectors note themselves."""

from collections.abc import Collection, Sequence

from analysis.arm import Arm, Cohort
from analysis.compared_rows import UnscoredRows
from analysis.page.parts import Fold, Items, Note, Part, present
from analysis.page.table import with_noun
from detect.scores.table import score_notes

_MAX_REASONS = 4


def unscored_parts(unscored: Sequence[UnscoredRows]) -> list[Part]:
    """Say which settings were measured on rows of their own, and which rows left everything."""
    apart = [place for place in unscored if place.apart]
    left_out = [place for place in unscored if place.left_out]
    removed = sum(place.left_out for place in left_out)
    return present(
        _set_apart(apart),
        _folded("Where, and why", [_where_apart(one) for one in apart]),
        _folded(
            "Rows that were removed from every comparison because a detector could not score "
            f"them: {removed} of {sum(place.rows for place in unscored)} over all models, seeds "
            "and datasets",
            [f"{_place(one)}: {one.left_out} of {one.rows}. {_reasons(one)}" for one in left_out],
        ),
    )


def _set_apart(places: Sequence[UnscoredRows]) -> list[Part]:
    """Sum up, by setting, the rows and the pools on which it was set apart."""
    sums: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for place in places:
        for column, failed in place.apart:
            sums.setdefault(column, []).append((failed, place.rows))
    return [
        Note(
            f"{detector} ({setting}) could not score {sum(failed for failed, _ in found):,} of "
            f"{sum(rows for _, rows in found):,} test rows in {with_noun(len(found), 'pool')} "
            "(model × dataset × seed), and is measured there on its own rows.",
            "note loud",
        )
        for (detector, setting), found in sums.items()
    ]


def _where_apart(place: UnscoredRows) -> str:
    settings = "".join(
        f"{column.detector} ({column.setting}) {failed} of {place.rows}. "
        for column, failed in place.apart
    )
    return f"{_place(place)}: {settings}{_reasons(place)}"


def _place(place: UnscoredRows) -> str:
    parts = (place.cohort.model, place.cohort.label(), f"seed {place.seed}", place.dataset)
    return " · ".join(part for part in parts if part)


def _reasons(place: UnscoredRows) -> str:
    named = (f"{one.detector}: {one.reason} ({one.rows})" for one in place.reasons[:_MAX_REASONS])
    return f"{'; '.join(named)}."


def detector_notes(arms: Sequence[Arm], *, besides: Collection[str]) -> list[str]:
    """Return what detectors note on the scores of the models, each note once.

    Args:
        arms: the scored models.
        besides: notes that the page shows elsewhere.
    """
    noted: dict[str, list[str]] = {}
    for arm in arms:
        label = Cohort(tuple(arm.axes.items()), arm.model).label()
        model = " · ".join(part for part in (arm.model, label, f"seed {arm.seed}") if part)
        for note in score_notes(arm.scores):
            if note not in besides:
                noted.setdefault(note, []).append(model)
    return [
        note if len(models) == len(arms) else f"{note} ({'; '.join(models)})"
        for note, models in noted.items()
    ]


def _folded(title: str, sentences: Sequence[str]) -> Fold | None:
    return Fold(title, [Items(sentences)]) if sentences else None
