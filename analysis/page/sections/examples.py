"""Examples at the ends of the ranking, so that a reader sees what the scores are about.

The text of a protected dataset never enters the page unless that was asked for; its id,
copies and score do.
"""

from collections.abc import Sequence

import numpy as np

from analysis.arm import Arm, LoadedArm, cohorts, load_arm
from analysis.page.parts import Heading, Part
from analysis.page.table import PROTECTED, Column, Entry, Table, numbers
from analysis.page.view import View

_EXAMPLES_PER_KIND = 3
_MAX_LENGTH = 280


def examples_parts(arms: Sequence[Arm], view: View, *, show_protected: bool) -> list[Part]:
    """Return the highest and lowest members and non-members of the headline's first seed.

    Ranked within each dataset's own scale: by the share of the dataset's other examples
    that score lower, ties by score.
    """
    best, label = view.best, view.arm
    loaded = load_arm(cohorts(arms)[best.table.cohort][0])
    setting = best.setting
    column = next(one for one in loaded.grid(best.detector) if one.setting == setting)
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
    parts: list[Part] = [
        f"By {view.name}{'' if setting in ('default', '-') else f' ({setting})'}"
        f"{f', {label}' if label else ''}, first seed, ranked within each dataset."
    ]
    columns = (Column("Example"), *numbers("Score", "Copies"), Column("Text", long=True))
    for kind, side, direction in kinds:
        rows = np.flatnonzero(usable & side)
        order = np.lexsort((direction * scores[rows], direction * place[rows]))
        shown = [
            _example(loaded, int(row), scores[row], show_protected)
            for row in rows[order[:_EXAMPLES_PER_KIND]]
        ]
        if shown:
            table = Table(columns=columns, rows=tuple(shown), style="stack examples")
            parts += [Heading(kind), table]
    return parts


def _example(
    loaded: LoadedArm, row: int, score: float, show_protected: bool
) -> tuple[str | Entry, ...]:
    example = loaded.examples[row]
    return (
        Entry(example.dataset, notes=(example.example_id,)),
        f"{score:.4g}",
        str(loaded.copies[row]) if loaded.member[row] else "withheld",
        PROTECTED if example.protected and not show_protected else shorten(example.text),
    )


def shorten(text: str) -> str:
    """Shorten a text to a few lines, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX_LENGTH else flat[: _MAX_LENGTH - 1].rstrip() + "…"
