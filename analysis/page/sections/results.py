"""The results in full, on a separate page: every AUC, adjusted AUCs, settings, SURP.

Every AUC of a run is one table that a reader sorts, and filters by arm, dataset and copies: plain
escaped HTML, so that it is read, searched and printed without any script. Cost: some 500 bytes a
row, hence `MAX_ROWS`; omitted rows are counted on the page and are in findings.parquet.

SURP over its two thresholds is drawn as coloured cells: figure 4 of Zhang and Wu (2024). Every cell
is on the test rows that its setting could score, so a cell is not a contestant of the tables: there
all detectors share their rows. A setting that could not score more than the usual share of the rows
stays blank.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from analysis.adjusted import ADJUSTED_AUC
from analysis.arm import Cohort, DetectorColumn
from analysis.arm_labels import arm_words
from analysis.copy_bins import ALL
from analysis.findings import Findings, Row, contaminated_cohorts
from analysis.intervals.estimate import Estimate
from analysis.page.crossed import auc_tables
from analysis.page.drawing.matrix import Grid
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Explorer, Section, answer
from analysis.page.sections.copies import COUNTS_NOTE, collapsed
from analysis.page.sections.factor_tables import factor_tables
from analysis.page.table import Table, listing, numbers, texts, with_noun
from analysis.page.view import ReportView
from analysis.results import Analysis
from analysis.selection.tuning import setting_aucs
from analysis.summary import NO_NAMES, Names
from analysis.tables import AUC as AUC_METRIC
from analysis.tables import POOLED
from analysis.unit import AUC, NOTHING, Entry

MAX_ROWS = 5_000
_EVERY_COPY = "all (1 or more)"
_TPR = "tpr@"
_DIVIDED = ("dataset", "detector", "copies", "variant")
_COUNTS = ("Members", "Non-members", "Seeds")
_FILTERED = ("Arm", "Dataset", "Detector", "Selection", "Copies", "Variant")
_NONE = Entry(NOTHING)
_SURP = "surp"
_Place = tuple[float, float]
"""Entropy threshold and percentile."""


def results_sections(view: ReportView) -> list[Section | None]:
    """Return further results, one section each."""
    trained = contaminated_cohorts(view.tables)
    adjusted = collapsed(adjusted_tables(trained, view.order, view.names))
    choices = [_choices(view.inputs.analysis, view.names), surp_picture(view)]
    return [
        answer(anchor, title, title, "", extra=parts)
        for anchor, title, parts in (
            ("adjusted", "Adjusted by the base model", adjusted),
            ("settings", "Chosen settings", choices),
            ("factors-in-full", "All factor estimates", factor_tables(view)),
        )
    ]


def all_results(tables: Sequence[Findings], names: Names = NO_NAMES) -> Explorer | None:
    """Return the table of all AUCs; None if there is none.

    Args:
        tables: the metrics of all models.
        names: published names of detectors.
    """
    results = [result for table in tables for result in _results(table)]
    if not results:
        return None
    visible, left_out = _limit_results(results, MAX_ROWS)
    rates = sorted({rate for result in visible for rate in result.rates})
    columns = [
        *texts("Arm", "Dataset", "Detector", "Setting", "Selection", "Copies", "Variant"),
        *numbers("AUC", "95 % interval", *(f"TPR at {rate * 100:g} % FPR" for rate in rates)),
        *numbers(*_COUNTS),
        *texts("Interval applies to"),
    ]
    rows = [_row(result, rates, names) for result in visible]
    values = [list(dict.fromkeys(row[at].text for row in rows)) for at in range(len(columns))]
    # Values that all rows share appear once; result columns stay, since readers look for them.
    used_columns = [
        at
        for at, column in enumerate(columns)
        if len(values[at]) > 1 or (column.right and (column.title not in _COUNTS or len(rows) < 3))
    ]
    common = [
        f"{columns[at].title} in all rows: {values[at][0]}."
        for at in range(len(columns))
        if at not in used_columns and values[at][0] not in ("", NOTHING, "any")
    ]
    caption = (
        "AUCs on the test split, with the true-positive rates that the number "
        f"of non-members supports. {' '.join(common)} {left_out} Click a head to sort; intervals "
        "sort by their lower end."
    )
    table = Table(
        title="All results",
        columns=tuple(columns[at] for at in used_columns),
        rows=tuple(tuple(row[at] for at in used_columns) for row in rows),
        caption=" ".join(caption.split()),
        style="stack listing",
    )
    return Explorer(
        f"Every AUC of this run: {len(rows):,} rows",
        table,
        [
            (position, columns[at].title, values[at])
            for position, at in enumerate(used_columns)
            if columns[at].title in _FILTERED
        ],
    )


class _Result(NamedTuple):
    arm: str
    row: Row
    selection: str
    rates: dict[float, float]


def _results(table: Findings) -> list[_Result]:
    """Return the AUCs of one cohort; a tuned setting that is the default one is one row."""
    # With one dataset the pooled rows would repeat its rows.
    single = len(set(table.values("dataset")) - {POOLED}) == 1
    metrics = [name for name in table.values("metric") if name.startswith(_TPR)]
    results: dict[tuple[str, ...], _Result] = {}
    for row in table.where(metric=AUC_METRIC).rows:
        if not isfinite(row["value"]) or (single and row["dataset"] == POOLED):
            continue
        place = tuple(row[name] for name in (*_DIVIDED, "setting"))
        if place in results:
            results[place] = results[place]._replace(selection="default, tuned")
            continue
        own = {name: row[name] for name in (*_DIVIDED, "selection")}
        rates = {
            float(metric.removeprefix(_TPR)): rate.value
            for metric in metrics
            if (rate := table.get(**own, metric=metric)) is not None and isfinite(rate.value)
        }
        selection = row["selection"] if row["selection"] in ("default", "tuned") else "control"
        results[place] = _Result(_model(table.cohort), row, selection, rates)
    return list(results.values())


def _row(result: _Result, rates: Sequence[float], names: Names) -> tuple[Entry, ...]:
    auc, row = Estimate.of(result.row), result.row
    ends = _number(auc.low, f"{auc.low:.3f}–{auc.high:.3f}") if auc.available else _NONE
    return (
        Entry(result.arm),
        Entry("all pooled" if row["dataset"] == POOLED else row["dataset"]),
        Entry(names.get(row["detector"], row["detector"])),
        Entry(NOTHING if row["setting"] == "-" else row["setting"]),
        Entry(result.selection),
        Entry(_EVERY_COPY if row["copies"] == ALL else row["copies"]),
        Entry("any" if row["variant"] == ALL else row["variant"]),
        _number(auc.value),
        ends,
        *(_number(result.rates[rate]) if rate in result.rates else _NONE for rate in rates),
        _number(auc.members, f"{auc.members:,}"),
        _number(auc.nonmembers, f"{auc.nonmembers:,}"),
        _number(auc.seeds, str(auc.seeds)),
        Entry(auc.about),
    )


def _number(value: float, text: str = "") -> Entry:
    return Entry(text or f"{value:.3f}", sorted_by=f"{value:.6g}")


def _limit_results(results: list[_Result], most: int) -> tuple[list[_Result], str]:
    """Return at most `most` rows, dropping the finest divisions first, and what was dropped."""
    tuned = {
        (result.arm, result.row["detector"]) for result in results if result.selection == "tuned"
    }
    steps: tuple[tuple[str, Callable[[_Result], bool]], ...] = (
        (
            "single datasets at single numbers of copies",
            lambda result: result.row["dataset"] == POOLED or result.row["copies"] == ALL,
        ),
        (
            "default settings if another was chosen",
            lambda result: (
                result.selection != "default" or (result.arm, result.row["detector"]) not in tuned
            ),
        ),
        ("single numbers of copies", lambda result: result.row["copies"] == ALL),
        ("single datasets", lambda result: result.row["dataset"] == POOLED),
    )
    visible, reasons = results, []
    for reason, keep in steps:
        if len(visible) <= most:
            break
        visible = [result for result in visible if keep(result)]
        reasons.append(reason)
    if len(visible) > most:
        reasons.append(f"whatever comes after the first {most:,}")
        visible = visible[:most]
    if not reasons:
        return visible, ""
    return visible, (
        f"{len(results) - len(visible):,} of {len(results):,} rows are not on this page, "
        f"which would be too large: {', '.join(reasons)}. findings.parquet has them all."
    )


def _model(cohort: Cohort) -> str:
    return " · ".join(filter(None, (cohort.model, arm_words(cohort.axes))))


def adjusted_tables(
    tables: Sequence[Findings], detectors: Sequence[str], names: Names = NO_NAMES
) -> list[Table]:
    """Return all trained arms with the luck of the pool taken out; none without a base model."""
    arms = {
        arm_words(table.cohort.axes) or "all members": {
            name: table.reported_row(name, metric=ADJUSTED_AUC) for name in detectors
        }
        for table in tables
    }
    return auc_tables(
        "Detectors and arms, adjusted by the base model",
        detectors,
        {head: rows for head, rows in arms.items() if any(rows.values())},
        "AUC adjusted for sampling luck, with its interval; tuned settings, all "
        "datasets pooled, members with at least one copy. Some "
        "texts score higher under any model, and members were drawn at random. The base "
        "model saw no member, so the difference of its AUC from 0.5 on the "
        "same rows is that luck. A share of it is subtracted, chosen to minimise the variance "
        "(adjusted = AUC − weight × (base AUC − 0.5); findings.parquet has base AUC and weight). "
        "A true difference between the sides is also removed as luck: see the checks first. "
        f"{COUNTS_NOTE}",
        names=names,
    )


def _choices(analysis: Analysis, names: Names) -> Table | None:
    """Return one row per choice; a detector whose only setting is its default has none."""
    return listing(
        "Chosen settings",
        ("Detector", "Model", "Default", "Tuned", "Tune AUC"),
        [
            (
                names.get(choice.detector, choice.detector),
                _model(cohort),
                choice.default,
                "no tuning rows" if choice.tuned is None else choice.tuned,
                AUC.number(choice.tune_auc),
            )
            for cohort, choices in analysis.choices.items()
            for choice in choices
            if choice.default not in ("default", "-") or choice.tuned != choice.default
        ],
        "Settings were chosen by the tune AUC, which is therefore optimistic. "
        "Detectors without settings are omitted.",
    )


def surp_picture(view: ReportView) -> Picture | None:
    """Return SURP's grid in the headline's arm; None if SURP ran without one."""
    settings = view.inputs.analysis_settings
    holding = [arm for arm in view.loaded if _SURP in arm.detectors]
    choice = next((candidate for candidate in view.choices if candidate.detector == _SURP), None)
    if not holding or choice is None:
        return None
    places = {
        column.setting: place
        for column in holding[0].grid(_SURP)
        if (place := _thresholds(column.setting)) and all(column in arm.index for arm in holding)
    }
    columns = [DetectorColumn(_SURP, setting) for setting in places]
    entropies = sorted({entropy for entropy, _ in places.values()})
    percents = sorted({percent for _, percent in places.values()}, reverse=True)
    aucs = setting_aucs(holding, columns, split="test", max_unscored=settings.max_unscored)
    grid = dict(zip(places.values(), aucs.tolist(), strict=True))
    if min(len(entropies), len(percents)) < 2 or not np.isfinite(aucs).any():
        return None
    settings_of = {"chosen": choice.tuned, "default": choice.default}
    marked = {word: places[name] for word, name in settings_of.items() if name in places}
    texts = {word: _place_text(grid, place) for word, place in marked.items()}
    members = sum(int((arm.test & arm.member & (arm.copies > 0)).sum()) for arm in holding)
    others = sum(int((arm.test & ~arm.member).sum()) for arm in holding)
    drawing = Grid(
        rows=[f"{percent:g}" for percent in percents],
        columns=[f"{entropy:g}" for entropy in entropies],
        cells={(f"{k:g}", f"{e:g}"): auc for (e, k), auc in grid.items()},
        frames={
            (f"{k:g}", f"{e:g}"): "fr da" if word == "default" else "fr"
            for word, (e, k) in reversed(marked.items())
        },
        row_label="percentile k",
        column_label="entropy threshold ε (nats)",
        label=f"Heat map of the AUC of surp, {len(entropies)} entropy thresholds by "
        f"{len(percents)} percentiles: {_extremes(grid)}"
        + "".join(f"; {word} {text}" for word, text in texts.items()),
    )
    notes = [
        f"Framed: chosen on the tuning split, {texts['chosen']}. " if "chosen" in texts else "",
        "" if choice.tuned else "The tuning split supports no choice. ",
        f"Dashed: the paper's default, {texts['default']}. " if "default" in texts else "",
    ]
    caption = (
        "AUC on the test split for every entropy threshold ε and percentile k"
        f"{f', {view.arm}' if view.arm else ''}, over the rows that each setting could score: of "
        f"{members:,} members with at least one copy and {others:,} non-members, "
        f"{with_noun(len(holding), 'training seed')}. {''.join(notes)}Grey: "
        "above 0.5, blue: below. Blank: no score for more than "
        f"{settings.max_unscored:.0%} of the rows. The highest cell is picked from "
        "test results and is therefore optimistic."
    )
    rows = [
        {"entropy": entropy, "k": percent, "auc": grid.get((entropy, percent), np.nan)}
        for percent in reversed(percents)
        for entropy in entropies
    ]
    width = min(1180.0, max(320.0, 40 + 46.0 * len(entropies)))
    return picture("surp-grid", "SURP over its two thresholds", caption, drawing, width, rows)


def _thresholds(setting: str) -> _Place | None:
    """Return ε and k of a setting that differs from the default in nothing else."""
    parts = dict(part.partition("=")[::2] for part in setting.split(":"))
    differs_otherwise = parts.keys() != {"entropy", "k"}
    return None if differs_otherwise else (float(parts["entropy"]), float(parts["k"]))


def _place_text(grid: Mapping[_Place, float], place: _Place) -> str:
    value = grid.get(place, np.nan)
    value_text = "no AUC" if np.isnan(value) else f"AUC {value:.2f}"
    return f"ε = {place[0]:g}, k = {place[1]:g} ({value_text})"


def _extremes(grid: Mapping[_Place, float]) -> str:
    """Return a sentence on the highest and lowest AUC; ties go to the lowest thresholds."""
    finite = sorted((place for place in grid if np.isfinite(grid[place])), key=lambda at: at[::-1])
    highest, lowest = max(finite, key=grid.__getitem__), min(finite, key=grid.__getitem__)
    return f"highest at {_place_text(grid, highest)}; lowest at {_place_text(grid, lowest)}"
