"""The report's first sentences, made only from the metrics.

A claim appears only if its interval supports it: words are chosen by the end of the interval
that is nearest to guessing, and if it contains 0.5 the sentence reports no detectable difference.
The headline takes the best of several detectors and arms, chosen on the `tune` rows and reported on
the others. Without tuning rows, it is chosen on the rows that it is reported on, and the sentence
reports that.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from types import MappingProxyType
from typing import NamedTuple

from analysis.arm import UPPER_BOUNDS, Cohort
from analysis.arm_labels import arm_words
from analysis.copy_bins import copies_order, is_dose
from analysis.findings import Findings, contaminated_cohorts
from analysis.intervals.estimate import Estimate
from analysis.selection.ranking import best_first, ranked, tune_auc
from analysis.unit import AUC, DOUBTFUL

_MIN_HEADLINE_MEMBERS = 30
"""An AUC over fewer members makes no headline if there is another."""
_MIN_DOSE_MEMBERS = 10
"""Fewer members with a number of copies make no sentence."""
AUC_MEANS = "AUC: how often a member outscores a non-member; 0.5 is guessing."
NOTHING_MEASURED = "No detector gave an AUC with an interval, so there is nothing to conclude."
_CERTAINTY = (
    (0.95, "is almost always distinguished from"),
    (0.8, "is usually distinguished from"),
    (0.65, "is often distinguished from"),
    (0.5, "is weakly distinguishable from"),
)
"""The least lower end of the interval, and the claim that it supports."""
_MUCH = 0.1
"""Intervals that are farther apart than this differ much."""
Names = Mapping[str, str]
"""Published names of detectors, by their own."""
NO_NAMES: Names = MappingProxyType({})


class Headline(NamedTuple):
    """The best detector of the best arm, over all members with at least one copy."""

    table: Findings
    detector: str
    selection: str
    cell: Estimate
    among: int
    """Number of arms it is the best of; each arm enters with its best detector."""
    arm: str = ""
    """The name that the experiment file gives to the arm; empty in a sweep."""

    @property
    def tune(self) -> float:
        """The AUC that it was chosen by; NaN without tuning rows."""
        return tune_auc(self.table, self.detector)

    @property
    def setting(self) -> str:
        """The detector's setting."""
        row = self.table.reported_row(self.detector)
        return "" if row is None else str(row["setting"])


class Dose(NamedTuple):
    """The headline's detector on members with one number of copies."""

    label: str
    """A number of copies or a range of them, as `analysis.copy_bins` writes it."""
    cell: Estimate


def find_headline(
    tables: Sequence[Findings], arm_name: Callable[[Cohort], str] = lambda _: ""
) -> Headline | None:
    """Return the arm whose best detector, as `analysis.selection.ranking` has it, is best.

    It is the bold cell of that arm's row in the table of detectors and arms.

    Args:
        tables: the metrics of all models.
        arm_name: the name that the experiment file gives to an arm; empty in a sweep.
    """
    headlines = []
    for table in contaminated_cohorts(tables):
        for name in ranked(table)[:1]:
            row = table.reported_row(name)
            if row is not None:
                cell, arm = Estimate.of(row), arm_name(table.cohort)
                headlines.append(Headline(table, name, row["selection"], cell, 0, arm))
    if not headlines:
        return None
    # A few members with a lucky AUC make no headline.
    enough = [item for item in headlines if item.cell.members >= _MIN_HEADLINE_MEMBERS] or headlines
    cells = {at: item.cell for at, item in enumerate(enough)}
    best = best_first(cells, {at: item.tune for at, item in enumerate(enough)})
    return enough[best[0]]._replace(among=len(enough))


def summary_sentences(
    tables: Sequence[Findings], best: Headline | None, names: Names = NO_NAMES
) -> list[str]:
    """Return the sentences at the end of a run and at the top of its page, in order."""
    if best is None:
        return [NOTHING_MEASURED]
    key, qualifier = choice_sentence(best, names)
    return [headline_sentence(tables, best), f"{key}{qualifier} {AUC_MEANS}", behind_sentence(best)]


def headline_sentence(tables: Sequence[Findings], best: Headline) -> str:
    """Return the sentence on how detectable the most- and the least-copied members are.

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
    return f"{sentence}." if few is many else f"{sentence}; {_fewer_copies_clause(many, few)}."


def find_doses(tables: Sequence[Findings], best: Headline) -> list[Dose]:
    """Return the numbers of copies of the headline's arm that carry a sentence, fewest first.

    If all its members have one number, arms that differ from it only in copies are added.
    """
    doses = _doses(best.table, best)
    if len(doses) == 1:
        others = [arm for arm in contaminated_cohorts(tables) if arm.cohort != best.table.cohort]
        similar_arms = [arm for arm in others if without_copies(arm) == without_copies(best.table)]
        labels = {dose.label for dose in doses}
        doses += [
            dose for arm in similar_arms for dose in _doses(arm, best) if dose.label not in labels
        ]
    return sorted(doses, key=lambda dose: copies_order(dose.label))


def _doses(table: Findings, best: Headline) -> list[Dose]:
    labels = [label for label in table.values("copies") if is_dose(label) and label != "0"]
    cells = [(label, table.reported(best.detector, copies=label)) for label in labels]
    return [
        Dose(label, cell)
        for label, cell in cells
        if cell is not None
        and cell.available
        and cell.members >= _MIN_DOSE_MEMBERS
        and DOUBTFUL not in cell.about
    ]


def without_copies(table: Findings) -> tuple[tuple[str, str], ...]:
    """Return the axes of an arm that do not concern copies."""
    return tuple(pair for pair in table.cohort.axes if pair[0].split(".")[0] != "copies")


def _place(best: Headline) -> str:
    words = best.arm or arm_words(without_copies(best.table))
    if words.startswith("learning rate") and "," not in words:
        return f" at {words}"
    return f" ({words})" if words else ""


def copied(label: str) -> str:
    """Return `copied once`, `copied 8 times` or `copied 5 to 8 times`."""
    if label in ("1", "2"):
        return "copied once" if label == "1" else "copied twice"
    return f"copied {label.replace('-', ' to ')} times"


def _claim(cell: Estimate) -> str:
    """Claim no more than the interval supports."""
    if cell.high < 0.5:
        return "ranks below unseen text"
    if cell.contains(0.5):
        return "shows no detectable difference from unseen text"
    # What is shown as 0.95 is worded as 0.95.
    lower = max(round(cell.low, 2), 0.5)
    words = next(words for low, words in _CERTAINTY if lower >= low)
    return f"{words} unseen text"


def _fewer_copies_clause(many: Dose, few: Dose) -> str:
    """Return the comparison of members with fewer copies, as a clause."""
    numbers, start = f"({AUC.brief(few.cell)})", copied(few.label)
    if few.cell.contains(0.5):
        if many.cell.contains(0.5):
            return f"{start}, neither does it {numbers}"
        return f"{start}, it shows no detectable difference {numbers}"
    if few.cell.high < min(many.cell.low, 0.5):
        return f"{start}, it ranks below {numbers}"
    apart = many.cell.low - few.cell.high
    if apart > 0:
        return f"{start}, {'much ' if apart >= _MUCH else ''}less often {numbers}"
    if few.cell.low > many.cell.high:
        return f"{start}, more often {numbers}"
    return f"{start}, as far as these data show, no less often {numbers}"


def choice_sentence(best: Headline, names: Names = NO_NAMES) -> tuple[str, str]:
    """Return which detector was chosen, among how many, and on which rows.

    Returns:
        The words that name it, and the rest of the sentence.
    """
    table, name = best.table, names.get(best.detector, best.detector)
    compared = len(ranked(table))
    role = "an upper bound" if best.detector in UPPER_BOUNDS else "the chosen detector"
    arms = "" if best.among == 1 else f" in {best.among} arms"
    if compared == 1 and best.among == 1:
        qualifier = ": no other was compared."
    elif isfinite(best.tune):
        qualifier = f": the best of {compared}{arms} on the tuning split."
    else:
        qualifier = (
            f": the one of {compared}{arms} with the highest lower bound, chosen on the rows that "
            "it is reported on, so interpret it with care."
        )
    return f"{name}, {role}", qualifier


def behind_sentence(best: Headline) -> str:
    """Return the AUC over all members, its row counts, and the scope of its interval."""
    cell = best.cell
    return (
        f"All members with a copy: {auc_text(cell)}; {cell.members:,} members, "
        f"{cell.nonmembers:,} non-members. {seeds_sentence(cell)}"
    )


def seeds_sentence(cell: Estimate) -> str:
    """Return the scope of the intervals as a sentence."""
    seeds = "One seed" if cell.seeds == 1 else f"{cell.seeds} seeds"
    about, _, caution = cell.about.partition("; ")
    of = {"this model": "this one model", "any seed": "any seed"}.get(about, "these models")
    if isfinite(cell.seed_low) and about.startswith("these"):
        seeds += f" ({cell.seed_low:.2f} and {cell.seed_high:.2f})"
    return f"{seeds}: intervals apply to {of}{f'; {caution}' if caution else ''}."


def auc_text(cell: Estimate) -> str:
    """Return `AUC 0.86 [0.81, 0.89]`."""
    return f"AUC {AUC.brief(cell, no_interval='(no interval)')}"
