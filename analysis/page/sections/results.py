"""Which detectors tell members from non-members: the section of the results, in its order."""

from collections.abc import Collection, Mapping, Sequence

from analysis.arm import Arm, Cohort
from analysis.compared_rows import UnscoredRows
from analysis.metrics_table import Cell, CohortMetrics, contaminated_cohorts
from analysis.page.grids import (
    adjusted_tables,
    arms_tables,
    copies_tables,
    dataset_tables,
    difference,
    folded,
    in_arm,
    rates_tables,
    retrained_tables,
    variants_tables,
)
from analysis.page.inputs import PageInputs
from analysis.page.parts import Fold, Heading, Items, Note, Part, Picture, present
from analysis.page.sections.decisions import (
    columns_of,
    dataset_findings,
    flagged_parts,
    matching_rows,
)
from analysis.page.sections.leaderboard import leaderboard, left_out_listing
from analysis.page.table import Column, Entry, Table, listing, with_noun
from analysis.page.template import number_text
from analysis.results import Analysis
from analysis.summary import Headline, find_trend_arm
from analysis.tables import AUC
from detect.scores.table import score_notes

_MAX_REASONS = 4


def results_parts(
    inputs: PageInputs,
    tables: Sequence[CohortMetrics],
    best: Headline | None,
    detectors: Sequence[str],
    notes: Sequence[str],
    pictures: Mapping[str, Picture],
) -> list[Part]:
    """Return the board, all that stands behind it, and how settings were chosen.

    Args:
        inputs: of the page.
        tables: the metrics of all models.
        best: the headline; None where no detector has an AUC with an interval.
        detectors: in the order of the page.
        notes: what detectors note on their scores.
        pictures: the figures by name.
    """
    left_out = left_out_listing(inputs.left_out)
    if best is None:
        measured = present("No detector has an AUC with an interval.", left_out)
    else:
        differences = detector_differences(inputs.analysis, best)
        to_loss = {name: cells.get("loss") for name, (_, cells) in differences.items()}
        analysis, declared = inputs.analysis, inputs.detectors
        measured = present(
            leaderboard(best, tables, analysis, declared=declared, to_loss=to_loss),
            left_out,
            _arms(tables, detectors, pictures),
            unscored_parts(analysis.unscored),
            _folded(f"Notes of detectors: {len(notes)}", Items(notes) if notes else None),
            _details(analysis, tables, best, detectors, pictures),
            _part("Differences on the same examples", _differences(best, detectors, differences)),
            _part("Scores", pictures.get("scores")),
        )
    return present(
        measured,
        _part("Training", pictures.get("training")),
        _folded("Settings chosen on the tune split", _choices(inputs.analysis)),
    )


def _arms(
    tables: Sequence[CohortMetrics], detectors: Sequence[str], pictures: Mapping[str, Picture]
) -> list[Part]:
    """Return every detector in every arm."""
    tuned, default = (arms_tables(tables, detectors, one) for one in ("tuned", "default"))
    other = [table.rows for table in tuned] != [table.rows for table in default]
    return present(
        pictures.get("detectors"),
        pictures.get("heat-map"),
        [picture for name, picture in pictures.items() if name.startswith("sweep-")],
        folded(tuned),
        folded(adjusted_tables(contaminated_cohorts(tables), detectors)),
        Fold("The same with default settings", folded(default)) if other and default else None,
    )


def _details(
    analysis: Analysis,
    tables: Sequence[CohortMetrics],
    best: Headline,
    detectors: Sequence[str],
    pictures: Mapping[str, Picture],
) -> list[Part]:
    """Return the numbers taken apart: by copies, variant, dataset, rate of errors."""
    by_copies = find_trend_arm(tables, best) or best.table
    cohort = best.table.cohort
    return present(
        _part(
            "By number of copies",
            pictures.get("copies"),
            folded(copies_tables(by_copies, detectors)),
        ),
        folded(variants_tables(contaminated_cohorts(tables), detectors)),
        _part("After a perfect removal", folded(retrained_tables(tables, detectors))),
        _part("By dataset", folded(dataset_tables(best.table, detectors))),
        _part("Whole data sets", dataset_findings(analysis.datasets, cohort)),
        _part(
            "Decisions with a bound on their errors",
            flagged_parts(analysis.flagged, cohort, detectors),
        ),
        _part("At low false-positive rates", pictures.get("roc"), rates_tables(best, detectors)),
    )


def _part(title: str, *parts: Part | list[Part] | None) -> list[Part]:
    """Return parts under a heading; nothing where there are none."""
    shown = present(*parts)
    return [Heading(title), *shown] if shown else []


def _folded(title: str, part: Part | None) -> Fold | None:
    return None if part is None else Fold(title, [part])


def detector_differences(
    analysis: Analysis, best: Headline
) -> dict[str, tuple[str, dict[str, Cell]]]:
    """Return each detector's setting, and its paired AUC differences by what they are to.

    In the headline's arm, pooled, of the headline's kind of settings.
    """
    wanted = columns_of(best.table.cohort) | {"dataset": "all", "copies": "all"}
    wanted |= {"selection": best.selection, "metric": AUC}
    names = ("setting", "value", "low", "high", "n_members", "n_nonmembers", "n_seeds")
    differences: dict[str, tuple[str, dict[str, Cell]]] = {}
    for row in matching_rows(analysis.differences, wanted):
        _, cells = differences.setdefault(row["detector"], (row["setting"], {}))
        cells[row["reference"]] = Cell(**{name: row[name] for name in names})
    return differences


def _differences(
    best: Headline,
    detectors: Sequence[str],
    differences: Mapping[str, tuple[str, Mapping[str, Cell]]],
) -> Table | None:
    rows = []
    for name in detectors:
        if name in differences:
            setting, cells = differences[name]
            rows.append(
                (
                    Entry(name, notes=() if setting in ("default", "-") else (setting,)),
                    difference(cells.get("best"), "the best"),
                    difference(cells.get("loss"), "loss itself"),
                )
            )
    if not rows:
        return None
    cell = best.cell
    return Table(
        title=f"Paired AUC differences{in_arm(best.table)}",
        columns=(
            Column("Detector"),
            Column("to the best", right=True),
            Column("to loss", right=True),
        ),
        rows=tuple(rows),
        caption=f"{best.selection.capitalize()} settings, all datasets pooled, members with at "
        f"least one copy ({cell.n_members:,} + {cell.n_nonmembers:,} rows). What both detectors "
        "share cancels; bold: the interval leaves out 0. The intervals to the best hold for all "
        "detectors at once, those to loss each for itself.",
    )


def unscored_parts(unscored: Sequence[UnscoredRows]) -> list[Part]:
    """Say which settings were measured on rows of their own, and which rows left everything."""
    apart = [place for place in unscored if place.apart]
    left_out = [place for place in unscored if place.left_out]
    removed = sum(place.left_out for place in left_out)
    return present(
        _set_apart(apart),
        _folded("Where, and why", Items([_where_apart(one) for one in apart]) if apart else None),
        _folded(
            "Rows that were removed from every comparison because a detector could not score "
            f"them: {removed} of {sum(place.rows for place in unscored)} over all models, seeds "
            "and datasets",
            Items(
                [
                    f"{_place(one)}: {one.left_out} of {one.rows}. {_reasons(one)}"
                    for one in left_out
                ]
            )
            if left_out
            else None,
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


def _choices(analysis: Analysis) -> Table | None:
    """Return one row a choice; a detector whose only setting is its default had none to make."""
    return listing(
        "Chosen settings",
        ("Detector", "Model", "Default", "Tuned", "Tune AUC"),
        [
            (
                choice.detector,
                " · ".join(x for x in (made.cohort.model, made.cohort.label()) if x),
                choice.default,
                "no tune rows" if choice.tuned is None else choice.tuned,
                number_text(choice.tune_auc),
            )
            for made in analysis.choices
            for choice in made.choices
            if choice.default not in ("default", "-") or choice.tuned != choice.default
        ],
        "The choice was made by the tune AUC, which is therefore optimistic. Detectors without "
        "settings are left out.",
    )
