"""Examples at the ends of the ranking, so that a reader sees what the scores are about.

The text of a protected dataset never enters the page unless that was asked for; its id,
copies and score do.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.arm import Arm, cohorts, load_arm
from analysis.page.report import Report
from analysis.summary import Headline

_EXAMPLES_PER_KIND = 3
_MAX_LENGTH = 280


class ShownExample(NamedTuple):
    """One example in the table."""

    kind: str
    example_id: str
    dataset: str
    copies: str
    score: str
    text: str | None
    """None for a protected text."""


def extreme_examples(report: Report, best: Headline) -> list[ShownExample]:
    """Return the highest and lowest members and non-members of the headline's first seed.

    Ranked within each dataset's own scale: by the share of the dataset's other examples
    that score lower, ties by score.
    """
    arms: Sequence[Arm] = cohorts(report.arms)[best.table.cohort]
    loaded = load_arm(arms[0])
    column = next(
        column for column in loaded.grid(best.detector) if column.setting == best.cell.setting
    )
    scores = loaded.scores[:, loaded.index[column]]
    usable = loaded.test & np.isfinite(scores)
    place = np.full(len(scores), np.nan)
    for dataset in dict.fromkeys(loaded.dataset[usable]):
        here = usable & (loaded.dataset == dataset)
        place[here] = (np.searchsorted(np.sort(scores[here]), scores[here]) + 0.5) / here.sum()
    exposed = loaded.member & (loaded.copies > 0)
    kinds = (
        ("Members with the highest scores", exposed, -1),
        ("Members with the lowest scores", exposed, 1),
        ("Non-members with the highest scores", ~loaded.member, -1),
        ("Non-members with the lowest scores", ~loaded.member, 1),
    )
    shown = []
    for kind, side, direction in kinds:
        rows = np.flatnonzero(usable & side)
        order = np.lexsort((direction * scores[rows], direction * place[rows]))
        for row in rows[order[:_EXAMPLES_PER_KIND]]:
            example = loaded.examples[row]
            hidden = example.protected and not report.show_protected
            copies = str(loaded.copies[row]) if loaded.member[row] else "withheld"
            shown.append(
                ShownExample(
                    kind,
                    example.example_id,
                    example.dataset,
                    copies,
                    f"{scores[row]:.4g}",
                    None if hidden else shorten(example.text),
                )
            )
    return shown


def shorten(text: str) -> str:
    """Shorten a text to a few lines, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX_LENGTH else flat[: _MAX_LENGTH - 1].rstrip() + "…"
