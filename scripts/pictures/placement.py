"""Draws `docs/images/placement.png`: one small corpus under each placement policy.

Run as `python -m scripts.pictures.placement`. The tokens are those that the views read; no part is
drawn by hand.
"""

from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from analysis.page.drawing.elements import both_sizes, element, path, text
from analysis.page.drawing.picture import png_bytes, svg_file
from inject.corpus.separators import end_separators, separators_for
from inject.examples.example import Example
from inject.plan.make_plan import PlanSettings, make_plan
from inject.plan.settings import Copies, Placement
from inject.stream.view import StreamView, clean_view

OUT = Path("docs/images/placement.png")
CONTEXT, WINDOWS, END = 24, 6, 0
DOCUMENTS = (0, 17, 40, 61, 75, 96, 118, 131)
ROWS = (
    ("clean twin", None),
    ("splice", Placement(policy="splice")),
    ("splice, straddle: forbid", Placement(policy="splice", straddle="forbid")),
    ("window", Placement(policy="window")),
    ("window, between: [0, 0.5]", Placement(policy="window", between=(0, 0.5))),
    ("document", Placement(policy="document")),
)
WIDTH, LEFT, ROW = 720.0, 176.0, 46.0
SHADES = ("#cccccc", "#ededed")
COLOURS = ("#d1495b", "#edae49", "#66a182")


class Toy:
    """A clean corpus whose tokens identify their document."""

    n_tokens = CONTEXT * WINDOWS + 40
    doc_starts = np.array(DOCUMENTS, dtype=np.int64)

    def read(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return the number of each token's document, from 1."""
        return np.searchsorted(self.doc_starts, np.arange(start, stop), side="right")


def main() -> None:
    """Draw the picture."""
    label = "One small corpus under each placement policy"
    OUT.write_bytes(png_bytes(svg_file(both_sizes(_draw, WIDTH, label))))


def _draw(width: float, _: bool) -> tuple[Markup, float]:
    across = (width - LEFT) / (CONTEXT * WINDOWS + 1)
    title = "Three examples, two copies each (coloured), in six windows (lines); shades are "
    marks = [text(width / 2, 12, f"{title}background documents", anchor="middle")]
    for row, (name, placement) in enumerate(ROWS):
        top = 34.0 + ROW * row
        marks.append(text(LEFT - 10, top + 18, name, anchor="end"))
        view, copies = _view(placement)
        owner = np.full(view.n_tokens, -1)
        for copy, start in enumerate(view.payload_starts().tolist()):
            owner[start : start + int(view.insertions.length[copy])] = copies[copy]
        shades = [
            COLOURS[owned] if owned >= 0 else SHADES[token % 2]
            for owned, token in zip(
                owner.tolist(), view.read(0, view.n_tokens).tolist(), strict=True
            )
        ]
        position = 0
        for shade, same in groupby(shades):
            length = len(list(same))
            marks.append(
                element("rect", x=LEFT + position * across, y=top, width=length * across,
                        height=0.62 * ROW, fill=shade)
            )  # fmt: skip
            position += length
        for window in range(WINDOWS + 1):
            x = LEFT + window * CONTEXT * across
            marks.append(path([(x, top - 5), (x, top + 0.62 * ROW + 5)], "ch"))
    return Markup("").join(marks), 34.0 + ROW * len(ROWS)


def _view(placement: Placement | None) -> tuple[StreamView, list[int]]:
    """Return the stream of a placement, and the example of each copy."""
    budget = CONTEXT * WINDOWS
    if placement is None:
        return clean_view(Toy(), tokens=budget, context=CONTEXT), []
    examples = [
        Example(
            example_id=str(index),
            dataset="toy",
            source_id=str(index),
            group=str(index),
            text=str(index),
            side="member",
        )
        for index in range(3)
    ]
    plan = make_plan(
        examples,
        {str(index): np.full(length, 100 + index) for index, length in enumerate((6, 8, 5))},
        PlanSettings(
            copies=Copies(fixed=2), placement=placement, budget=budget, context=CONTEXT, seed=4
        ),
        source=Toy(),
        separators=end_separators(END, document=True)
        if placement.policy == "document"
        else separators_for(placement.separation, None),
        vocabulary=1000,
    )
    return plan.view(Toy()), [int(name.example_id) for name in plan.names()]


if __name__ == "__main__":
    main()
