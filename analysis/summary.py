"""The report's first sentences, made from the metrics and from nothing else.

A claim appears only where its interval supports it: words are chosen by the end of the interval
that is nearest to guessing, and where it holds 0.5 the sentence says that nothing can be told. The
headline takes the best of several detectors and arms, chosen on the `tune` rows and reported on the
others. Where there are no tune rows it is chosen on the rows that it is reported on, and says so.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from types import MappingProxyType
from typing import NamedTuple

from analysis.arm import UPPER_BOUNDS
from analysis.arm_words import arm_words
from analysis.copy_bins import copies_order, is_dose
from analysis.metrics_table import Cell, CohortMetrics, contaminated_cohorts
from analysis.selection.ranking import best_first, rank_detectors, reported_cell

_MIN_HEADLINE_MEMBERS = 30
"""An AUC over fewer members makes no headline where there is another."""
_MIN_DOSE_MEMBERS = 10
"""Fewer members with a number of copies make no sentence."""
DOUBTFUL = "not to be trusted"
"""Part of what an interval speaks of, where too little stands behind it."""
AUC_MEANS = "AUC: how often a member outscores a non-member; 0.5 is guessing."
NOTHING_MEASURED = "No detector gave an AUC with an interval, so there is nothing to conclude."
_CERTAINTY = (
    (0.95, "is nearly always told from"),
    (0.8, "is mostly told from"),
    (0.65, "is often told from"),
    (0.5, "is told somewhat better than by guessing from"),
)
"""The least lower end of the interval, and what may be said from there on."""
_MUCH = 0.1
"""Intervals that are farther apart than this differ much."""
Names = Mapping[str, str]
"""Published names of detectors, by their own."""
NO_NAMES: Names = MappingProxyType({})


class Headline(NamedTuple):
    """The best detector of the best arm, over all members with at least one copy."""

    table: CohortMetrics
    detector: str
    selection: str
    cell: Cell
    among: int
    """Arms it is the best of; in each the best detector stands."""


class Dose(NamedTuple):
    """The headline's detector on members with one number of copies."""

    label: str
    """A number of copies or a range of them, as `analysis.copy_bins` writes it."""
    cell: Cell
    table: CohortMetrics
    """The arm."""


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


def summary_sentences(tables: Sequence[CohortMetrics], names: Names = NO_NAMES) -> list[str]:
    """Return the sentences that a run says at its end and at the top of its page, in order."""
    best = find_headline(tables)
    if best is None:
        return [NOTHING_MEASURED]
    key, rest = choice_sentence(best, names)
    return [headline_sentence(tables, best), f"{key}{rest} {AUC_MEANS}", behind_sentence(best)]


def headline_sentence(tables: Sequence[CohortMetrics], best: Headline) -> str:
    """Say how well members with the most copies are told, and those with the fewest.

    Args:
        tables: the metrics of all models.
        best: the headline.
    """
    doses = find_doses(tables, best)
    place = _place(best)
    if not doses:
        return f"A spiked text{place} {_claim(best.cell)} ({auc_text(best.cell)})."
    many, few = doses[-1], doses[0]
    sentence = f"A text {copied(many.label)}{place} {_claim(many.cell)} ({auc_text(many.cell)})"
    return f"{sentence}." if few is many else f"{sentence}; {_fewer(many, few)}."


def find_doses(tables: Sequence[CohortMetrics], best: Headline) -> list[Dose]:
    """Return the numbers of copies of the headline's arm that carry a sentence, fewest first.

    Where all its members have one number, arms that differ from it in copies alone are added.
    """
    doses = _doses(best.table, best)
    if len(doses) == 1:
        others = [one for one in contaminated_cohorts(tables) if one.cohort != best.table.cohort]
        same = [one for one in others if without_copies(one) == without_copies(best.table)]
        known = {dose.label for dose in doses}
        doses += [dose for one in same for dose in _doses(one, best) if dose.label not in known]
    return sorted(doses, key=lambda dose: copies_order(dose.label))


def _doses(table: CohortMetrics, best: Headline) -> list[Dose]:
    labels = [label for label in table.values("copies") if is_dose(label) and label != "0"]
    cells = [(label, reported_cell(table, best.detector, copies=label)) for label in labels]
    return [
        Dose(label, cell, table)
        for label, cell in cells
        if cell is not None
        and cell.available
        and cell.n_members >= _MIN_DOSE_MEMBERS
        and DOUBTFUL not in cell.interval
    ]


def without_copies(table: CohortMetrics) -> tuple[tuple[str, str], ...]:
    """Return the axes of an arm that say nothing of copies."""
    return tuple(pair for pair in table.cohort.axes if pair[0].split(".")[0] != "copies")


def _place(best: Headline) -> str:
    words = arm_words(without_copies(best.table))
    if words.startswith("learning rate") and "," not in words:
        return f" at {words}"
    return f" ({words})" if words else ""


def copied(label: str) -> str:
    """Return `copied once`, `copied 8 times` or `copied 5 to 8 times`."""
    if label in ("1", "2"):
        return "copied once" if label == "1" else "copied twice"
    return f"copied {label.replace('-', ' to ')} times"


def _claim(cell: Cell) -> str:
    """Say no more than the interval holds."""
    if cell.high < 0.5:
        return "ranks below one never trained on"
    if cell.contains(0.5):
        return "cannot be told from one never trained on in these data"
    # What is shown as 0.95 is worded as 0.95.
    lower = max(round(cell.low, 2), 0.5)
    words = next(words for low, words in _CERTAINTY if lower >= low)
    return f"{words} one never trained on"


def _fewer(many: Dose, few: Dose) -> str:
    """Say how members with fewer copies compare."""
    numbers, start = f"({ends_text(few.cell)})", copied(few.label)
    if few.cell.contains(0.5):
        too = "neither can it" if many.cell.contains(0.5) else "it cannot be told"
        return f"{start}, {too} {numbers}"
    if few.cell.high < min(many.cell.low, 0.5):
        return f"{start}, it ranks below {numbers}"
    apart = many.cell.low - few.cell.high
    if apart > 0:
        return f"{start}, {'much ' if apart >= _MUCH else ''}less often {numbers}"
    if few.cell.low > many.cell.high:
        return f"{start}, more often {numbers}"
    return f"{start}, as far as these data show, no less often {numbers}"


def choice_sentence(best: Headline, names: Names = NO_NAMES) -> tuple[str, str]:
    """Say which detector was chosen, among how many, and on which rows.

    Returns:
        What names it, and the rest of the sentence.
    """
    table, name = best.table, names.get(best.detector, best.detector)
    cells = {one: reported_cell(table, one) for one in detectors_of(best)}
    compared = len(rank_detectors(cells))
    role = "an upper bound" if best.detector in UPPER_BOUNDS else "the chosen detector"
    arms = "" if best.among == 1 else f" in {best.among} arms"
    if compared == 1 and best.among == 1:
        rest = ": no other was compared."
    elif isfinite(best.cell.tune):
        rest = f": of {compared}{arms} the best on rows kept for choosing (tune split)."
    else:
        rest = (
            f": of {compared}{arms} the one with the highest lower bound, chosen on the rows that "
            "it is reported on, so read it with care."
        )
    return f"{name}, {role}", rest


def behind_sentence(best: Headline) -> str:
    """Return the AUC over all members, the rows behind it, and what its interval speaks of."""
    cell = best.cell
    return (
        f"All members with a copy: {auc_text(cell)}; {cell.n_members:,} members, "
        f"{cell.n_nonmembers:,} non-members. {seeds_sentence(cell)}"
    )


def seeds_sentence(cell: Cell) -> str:
    """Say what the intervals speak of."""
    seeds = "One seed" if cell.n_seeds == 1 else f"{cell.n_seeds} seeds"
    about, _, caution = cell.interval.partition("; ")
    of = {"this model": "this one model", "any seed": "any seed"}.get(about, "these models")
    if isfinite(cell.seed_low) and about.startswith("these"):
        seeds += f" ({cell.seed_low:.2f} and {cell.seed_high:.2f})"
    return f"{seeds}: intervals speak of {of}{f'; {caution}' if caution else ''}."


def detectors_of(best: Headline) -> list[str]:
    """Return the detectors of the headline's arm."""
    return best.table.values("detector")


def auc_text(cell: Cell) -> str:
    """Return `AUC 0.86 [0.81, 0.89]`."""
    return f"AUC {ends_text(cell)}"


def ends_text(cell: Cell) -> str:
    """Return `0.86 [0.81, 0.89]`."""
    return f"{cell.value:.2f} [{cell.low:.2f}, {cell.high:.2f}]"
