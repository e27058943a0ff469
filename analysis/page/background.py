"""What the audit of the background's text found, as the page shows it."""

from dataclasses import dataclass

from inject.overlap.filter import OverlapFacts
from inject.overlap.index import Overlap, Unchecked

MAX_ROWS = 30
MAX_UNCHECKED = 200


@dataclass(frozen=True, kw_only=True)
class BackgroundAudit:
    """The audit of one background."""

    facts: OverlapFacts
    sentence: str
    rows: tuple[Overlap, ...]
    """The longest."""
    more: int
    """Offences that are not shown."""
    unchecked: tuple[Unchecked, ...]
    """Rows with too few words to be searched for, the first of them."""
    unchecked_more: int
    """Those that are not shown."""


def background_audit(found: list[Overlap], facts: OverlapFacts) -> BackgroundAudit:
    """Return what to show of an audit: the counts in a sentence, the longest overlaps first."""
    ranked = sorted(found, key=lambda one: (-one.words, one.place, one.example_id))
    if not facts.offending:
        outcome = "No document overlaps with a row."
    elif facts.dropped:
        outcome = f"{facts.dropped:,} documents overlap and were left out of the corpus."
    else:
        outcome = f"{facts.offending:,} documents overlap and were kept, as the experiment asks."
    few = len(facts.unchecked)
    unchecked = (
        f" {few:,} of the rows {'has' if few == 1 else 'have'} too few words to be "
        "searched for: whether the background contains them is not known. They are listed below."
        if few
        else ""
    )
    return BackgroundAudit(
        facts=facts,
        sentence=f"{facts.documents:,} documents ({facts.bytes / 1e6:,.1f} MB) were compared with "
        f"{facts.examples:,} rows of the datasets, by the rule: {facts.rules}. "
        f"{outcome}{unchecked}",
        rows=tuple(ranked[:MAX_ROWS]),
        more=max(len(ranked) - MAX_ROWS, 0),
        unchecked=facts.unchecked[:MAX_UNCHECKED],
        unchecked_more=max(few - MAX_UNCHECKED, 0),
    )
