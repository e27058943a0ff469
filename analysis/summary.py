"""The report's first sentences, made from the metrics and from nothing else.

A claim appears only where its interval supports it; otherwise the sentence says that it
does not. The headline takes the best of several detectors and arms, chosen on the `tune` rows and
reported on the others. Where there are no tune rows it is chosen on the rows that it is reported
on, and says so.
"""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from analysis.arm import UPPER_BOUNDS
from analysis.copy_bins import copies_start
from analysis.metrics_table import Cell, CohortMetrics, contaminated_cohorts
from analysis.selection.ranking import best_first, rank_detectors, reported_cell
from analysis.tables import TREND

_MIN_HEADLINE_MEMBERS = 30
"""An AUC over fewer members makes no headline where there is another."""


class Headline(NamedTuple):
    """The best detector of the best arm, over all members with at least one copy."""

    table: CohortMetrics
    detector: str
    selection: str
    cell: Cell
    among: int
    """Arms it is the best of; in each the best detector stands."""


def find_headline(tables: Sequence[CohortMetrics]) -> Headline | None:
    """Return the arm whose best detector, as `analysis.selection.ranking` has it, is best.

    It is the bold cell of that arm's row in the table of detectors and arms.
    """
    found = []
    for table in contaminated_cohorts(tables):
        cells = {name: reported_cell(table, name) for name in table.values("detector")}
        for name in rank_detectors(cells)[:1]:
            cell = cells[name]
            if cell is not None:
                tuned = table.get(name, selection="tuned") is not None
                selection = "tuned" if tuned else "default"
                found.append(Headline(table, name, selection, cell, 0))
    if not found:
        return None
    # A few members with a lucky AUC make no headline.
    enough = [item for item in found if item.cell.n_members >= _MIN_HEADLINE_MEMBERS] or found
    best = best_first({at: item.cell for at, item in enumerate(enough)})[0]
    return enough[best]._replace(among=len(enough))


def summary_sentences(tables: Sequence[CohortMetrics]) -> list[str]:
    """Return the sentences at the top of the report, in order."""
    best = find_headline(tables)
    if best is None:
        return ["No detector gave an AUC with an interval, so there is nothing to conclude."]
    sentences = [_headline_sentence(best), *_many_copies(best)]
    compared = len(
        rank_detectors({name: reported_cell(best.table, name) for name in detectors_of(best)})
    )
    if compared * best.among > 1:
        sentences.append(_choice_sentence(best, compared))
    varied = find_trend_arm(tables, best)
    if varied is not None:
        sentences.append(_trend_sentence(varied, best))
    return sentences


def _choice_sentence(best: Headline, compared: int) -> str:
    """Say which rows chose the headline, and among how many."""
    arms = "this arm" if best.among == 1 else f"{best.among} arms"
    if not isfinite(best.cell.tune):
        return (
            f"It has the highest lower bound of {compared} detectors in {arms}, chosen on "
            "the rows it is reported on, so read it with care."
        )
    return (
        f"It was chosen among {compared} detectors in {arms} by its AUC on other rows, those of "
        f"the tune split: {best.cell.tune:.2f}."
    )


def detectors_of(best: Headline) -> list[str]:
    """Return the detectors of the headline's arm."""
    return best.table.values("detector")


def _many_copies(best: Headline) -> list[str]:
    """Say how the headline's detector does on members with many copies, where that is a row."""
    table = best.table
    label = next((label for label in table.values("copies") if label.endswith("+")), None)
    cell = label and table.get(best.detector, selection=best.selection, copies=label)
    # An arm in which all members have many copies has said it already.
    if not label or not cell or not cell.available or cell == best.cell:
        return []
    return [
        f"For members with {copies_start(label)} or more copies there, it has "
        f"{_numbers(cell)}; {_behind(cell)}."
    ]


def find_trend_arm(tables: Sequence[CohortMetrics], best: Headline) -> CohortMetrics | None:
    """Return the arm that shows the trend over copies, or None where no arm has several doses.

    It is the headline's own arm if that has several doses, else the one that agrees with it
    in most axes (the first of equals).
    """
    found = [table for table in contaminated_cohorts(tables) if _trend(table, best) is not None]
    wanted = best.table.cohort.axes

    def agreement(table: CohortMetrics) -> int:
        return sum(mine == theirs for mine, theirs in zip(table.cohort.axes, wanted, strict=True))

    return max(found, key=agreement, default=None)


def _trend(table: CohortMetrics, best: Headline) -> Cell | None:
    cell = table.get(best.detector, selection=best.selection, metric=TREND)
    return cell if cell is not None and cell.available else None


def _headline_sentence(best: Headline) -> str:
    cell = best.cell
    arm = best.table.cohort.label()
    start = f"In the arm {arm}, the" if arm else "The"
    setting = "" if cell.setting in ("default", "-") else f" ({cell.setting}, {best.selection})"
    kind = "upper bound" if best.detector in UPPER_BOUNDS else "likelihood detector"
    if cell.low > 0.5:
        verdict = f"tells members from non-members with {_numbers(cell)}"
    elif cell.high < 0.5:
        verdict = f"ranks members below non-members, with {_numbers(cell)}"
    else:
        verdict = f"does not tell members from non-members: {_numbers(cell)} contains 0.5"
    return f"{start} best {kind}, {best.detector}{setting}, {verdict}; {_behind(cell)}."


def _numbers(cell: Cell) -> str:
    return f"AUC {cell.value:.2f} [{cell.low:.2f}, {cell.high:.2f}]"


def _behind(cell: Cell) -> str:
    """Return the rows and seeds behind a number, and what its interval speaks of."""
    seeds = "1 seed" if cell.n_seeds == 1 else f"{cell.n_seeds} seeds"
    if cell.interval.startswith("this model"):
        seeds += ", so the interval is for this model"
    elif cell.interval.startswith("these") and isfinite(cell.seed_low):
        seeds += (
            f" ({cell.seed_low:.2f} and {cell.seed_high:.2f}): the interval is for these models"
        )
    _, _, caution = cell.interval.partition("; ")
    rows = f"{cell.n_members:,} members, {cell.n_nonmembers:,} non-members, {seeds}"
    return f"{rows}; {caution}" if caution else rows


def _trend_sentence(table: CohortMetrics, best: Headline) -> str:
    trend = _trend(table, best)
    if trend is None:
        raise LookupError(f"{table.cohort} has no trend for {best.detector}")
    numbers = f"Somers' D of score with copies {trend.value:+.2f} [{trend.low:+.2f}, "
    numbers += f"{trend.high:+.2f}]"
    if table.cohort != best.table.cohort:
        numbers = f"{table.cohort.label()}: {numbers}"
    if trend.low > 0:
        return f"Its AUC rises with the number of copies ({numbers})."
    if trend.high < 0:
        return f"Its AUC falls with the number of copies ({numbers})."
    return f"These data do not show that its AUC rises with the number of copies ({numbers})."
