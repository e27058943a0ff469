"""The report's first sentences, made from the metrics and from nothing else.

A claim appears only where its interval supports it; otherwise the sentence says that it
does not. The headline takes the best of several detectors and arms, measured on
the rows it is chosen by: it says how many there were, since the best of many is optimistic.
"""

from collections.abc import Sequence
from typing import NamedTuple

from analysis.arm import MODEL_FREE, UPPER_BOUNDS
from analysis.copies import ALL, copies_start
from analysis.lookup import Cell, MetricsOf, contaminated
from analysis.tables import TREND

_LEAST_HEADLINE = 30
"""An AUC over fewer members makes no headline where there is another."""


class Headline(NamedTuple):
    """The best detector of the best arm."""

    table: MetricsOf
    detector: str
    selection: str
    copies: str
    cell: Cell
    among: int
    """Detectors × arms it is the best of."""


def find_headline(tables: Sequence[MetricsOf]) -> Headline | None:
    """Return the AUC with the highest lower bound, of model-based detectors and contaminated arms.

    Rows `N+` (many copies) are preferred to `all`, tuned settings to default ones. Upper bounds
    make a headline only where nothing else was scored.
    """
    arms = contaminated(tables)
    high = next(
        (label for table in arms for label in table.values("copies") if label.endswith("+")), ALL
    )
    for copies in dict.fromkeys((high, ALL)):
        found = []
        for table in arms:
            for detector in table.values("detector"):
                if detector in MODEL_FREE:
                    continue
                for selection in ("tuned", "default"):
                    cell = table.get(detector, selection=selection, copies=copies)
                    if cell is not None and cell.available:
                        found.append(Headline(table, detector, selection, copies, cell, 0))
                        break
        found = [item for item in found if item.detector not in UPPER_BOUNDS] or found
        if found:
            # The highest lower bound: a few members with a lucky AUC make no headline.
            enough = [item for item in found if item.cell.n_members >= _LEAST_HEADLINE]
            best = max(enough or found, key=lambda item: item.cell.low)
            return best._replace(among=len(enough or found))
    return None


def summary_sentences(tables: Sequence[MetricsOf]) -> list[str]:
    """Return the sentences at the top of the report, in order."""
    best = find_headline(tables)
    if best is None:
        return ["No detector gave an AUC with an interval, so there is nothing to conclude."]
    sentences = [_headline_sentence(best)]
    if best.among > 1:
        sentences.append(
            f"It has the highest lower bound of {best.among} detector-and-arm pairs, chosen on "
            "the rows it is reported on, so read it with care."
        )
    varied = varied_doses(tables, best)
    if varied is not None:
        sentences.append(_trend_sentence(varied, best))
    return sentences


def varied_doses(tables: Sequence[MetricsOf], best: Headline) -> MetricsOf | None:
    """Return the arm that shows the trend over copies, or None where no arm has several doses.

    It is the headline's own arm if that has several doses, else the one that agrees with it
    in most axes (the first of equals).
    """
    found = [table for table in contaminated(tables) if _trend(table, best) is not None]
    wanted = best.table.cohort.axes

    def agreement(table: MetricsOf) -> int:
        return sum(mine == theirs for mine, theirs in zip(table.cohort.axes, wanted, strict=True))

    return max(found, key=agreement, default=None)


def _trend(table: MetricsOf, best: Headline) -> Cell | None:
    cell = table.get(best.detector, selection=best.selection, metric=TREND)
    return cell if cell is not None and cell.available else None


def _headline_sentence(best: Headline) -> str:
    cell = best.cell
    arm = best.table.cohort.label()
    where = f" ({arm})" if arm else ""
    if best.copies != ALL:
        start = f"At {copies_start(best.copies)} or more copies{where}, the"
    else:
        start = f"In the arm {arm}, the" if arm else "The"
    setting = "" if cell.setting in ("default", "-") else f" ({cell.setting}, {best.selection})"
    numbers = f"AUC {cell.value:.2f} [{cell.low:.2f}, {cell.high:.2f}]"
    if cell.low > 0.5:
        verdict = f"tells members from non-members with {numbers}"
    elif cell.high < 0.5:
        verdict = f"ranks members below non-members, with {numbers}"
    else:
        verdict = f"does not tell members from non-members: {numbers} contains 0.5"
    seeds = "1 seed" if cell.n_seeds == 1 else f"{cell.n_seeds} seeds"
    return (
        f"{start} best likelihood detector, {best.detector}{setting}, {verdict}; "
        f"{cell.n_members:,} members, {cell.n_nonmembers:,} non-members, {seeds}."
    )


def _trend_sentence(table: MetricsOf, best: Headline) -> str:
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
