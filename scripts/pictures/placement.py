"""Draws `docs/images/placement.png`: one small corpus under each placement policy.

Run as `python -m scripts.pictures.placement`. The tokens are those that the views read; nothing is
drawn by hand.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from inject.corpus.separators import end_separators, separators_for
from inject.examples.example import Example
from inject.plan.make_plan import PlanSettings, make_plan
from inject.plan.settings import Copies, Placement
from inject.stream.view import View, clean_view

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
COLOURS = ("#d1495b", "#edae49", "#66a182")


class Toy:
    """A clean corpus whose token says which document it belongs to."""

    n_tokens = CONTEXT * WINDOWS + 40
    doc_starts = np.array(DOCUMENTS, dtype=np.int64)

    def read(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return the number of each token's document, from 1."""
        return np.searchsorted(self.doc_starts, np.arange(start, stop), side="right")


def main() -> None:
    """Draw the picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    figure, axes = plt.subplots(figsize=(11, 4.4), layout="constrained")
    for row, (label, placement) in enumerate(ROWS):
        view, copies = _view(placement)
        tokens = view.read(0, view.n_tokens)
        owner = np.full(view.n_tokens, -1)
        for copy, start in enumerate(view.payload_starts().tolist()):
            owner[start : start + int(view.insertions.length[copy])] = copies[copy]
        for position, token in enumerate(tokens.tolist()):
            shade = 0.93 if token % 2 else 0.8
            colour = COLOURS[owner[position]] if owner[position] >= 0 else str(shade)
            axes.add_patch(Rectangle((position, -row), 1, 0.62, facecolor=colour, linewidth=0))
        for window in range(WINDOWS + 1):
            axes.plot([window * CONTEXT] * 2, [-row - 0.08, -row + 0.7], color="black", lw=0.8)
        axes.text(-1.5, -row + 0.3, label, ha="right", va="center")
    axes.set_xlim(-1, CONTEXT * WINDOWS + 1)
    axes.set_ylim(-len(ROWS) + 0.7, 1)
    axes.set_axis_off()
    axes.set_title(
        "Three examples, two copies each (coloured), in six windows (lines); "
        "shades are background documents",
        fontsize=10,
    )
    figure.savefig(OUT, dpi=130)


def _view(placement: Placement | None) -> tuple[View, list[int]]:
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
