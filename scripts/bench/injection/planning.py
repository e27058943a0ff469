"""Cost of planning a million copies over a corpus of 10**12 tokens that is never read.

Measured in a separate process, whose peak of resident memory is the plan's. A sample of windows
is then composed by brute force from the plan's table and compared with what the view reads.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from inject.corpus.separators import NO_SEPARATORS
from inject.examples.example import Example
from inject.plan.make_plan import PlanSettings, make_plan
from inject.plan.plan import Plan
from inject.plan.settings import Copies, Placement
from inject.stream.view import StreamView
from scripts.bench.injection.memory import peak_mib

CONTEXT = 2048
VOCABULARY = 50_304
TOKENS = 10**12
EXAMPLES, COPIES, LENGTH = 10_000, 100, 100
SAMPLE = 200
PLACEMENTS = {
    "plan": Placement(),
    "plan_window": Placement(policy="window"),
    "plan_window_late": Placement(policy="window", between=(0.8, 1)),
}


class Described:
    """A corpus of which only the length is known; its tokens are made up on request."""

    n_tokens = TOKENS
    doc_starts = np.zeros(1, dtype=np.int64)

    def read(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return made-up tokens that depend only on their position."""
        return np.arange(start, stop, dtype=np.int64) * 2654435761 % VOCABULARY


def spiked(
    count: int, length: int, *, vocabulary: int
) -> tuple[list[Example], dict[str, npt.NDArray[np.int64]]]:
    """Return made-up members and their tokens."""
    random = np.random.default_rng(1)
    examples = [
        Example(
            example_id=f"{index:016x}",
            dataset="made-up",
            source_id=str(index),
            group=str(index),
            text=str(index),
            side="member",
        )
        for index in range(count)
    ]
    return examples, {
        example.example_id: random.integers(0, vocabulary, length) for example in examples
    }


def measure() -> dict:
    """Return seconds and MiB of the planning, and how many sampled windows agreed."""
    done = subprocess.run(
        [sys.executable, "-m", "scripts.bench.injection.planning"],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Plan, print one JSON object."""
    figures: dict[str, float] = {}
    for name, placement in PLACEMENTS.items():
        examples, texts = spiked(EXAMPLES, LENGTH, vocabulary=VOCABULARY)
        started = time.perf_counter()
        plan = make_plan(
            examples,
            texts,
            PlanSettings(
                copies=Copies(fixed=COPIES),
                placement=placement,
                budget=TOKENS,
                context=CONTEXT,
                seed=0,
            ),
            source=Described(),
            separators=NO_SEPARATORS,
            vocabulary=VOCABULARY,
        )
        figures[f"{name}_seconds"] = time.perf_counter() - started
        figures[f"{name}_peak_mib"] = peak_mib()
        figures[f"{name}_windows_agreeing"] = agreeing(plan)
    print(json.dumps({**figures, "plan_copies": EXAMPLES * COPIES, "plan_windows_sampled": SAMPLE}))


def agreeing(plan: Plan) -> int:
    """Return the number of windows around sampled copies that brute force composes alike."""
    view = plan.view(Described())
    random = np.random.default_rng(2)
    starts = view.text_starts()
    windows = starts[random.integers(0, len(starts), SAMPLE)] // CONTEXT
    return sum(
        np.array_equal(view.window(int(window)), _naive(plan, view, int(window)))
        for window in windows
    )


def _naive(plan: Plan, view: StreamView, window: int) -> npt.NDArray[np.int64]:
    """Compose one window token by token from the plan's table."""
    insertions = plan.insertions()
    first = window * CONTEXT
    low = first
    if view.layout == "flow":
        # All copies before an anchor shift it; the window's own tokens are below `first`.
        low = max(first - int(insertions.length.sum()), 0)
    near = np.flatnonzero((insertions.anchor >= low) & (insertions.anchor <= first + CONTEXT))
    order = sorted(near, key=lambda copy: (insertions.anchor[copy], insertions.tiebreak[copy]))
    if view.layout == "flow":
        shift = int(insertions.length[insertions.anchor < low].sum())
        stream, limit = low + shift, first + CONTEXT
    else:
        stream, limit = first, first + CONTEXT
    out: dict[int, int] = {}
    clean = low
    for copy in order:
        stream, clean = _copy_clean(out, stream, clean, int(insertions.anchor[copy]), first, limit)
        payload = plan.payload[insertions.offset[copy] :][: insertions.length[copy]]
        for token in payload.tolist():
            if first <= stream < limit:
                out[stream] = token
            stream += 1
    _copy_clean(out, stream, clean, clean + limit - stream, first, limit)
    return np.array([out[position] for position in range(first, limit)], dtype=np.int64)


def _copy_clean(
    out: dict[int, int], stream: int, clean: int, until: int, first: int, limit: int
) -> tuple[int, int]:
    """Write clean tokens up to `until` at their place in the window; return both positions."""
    skipped = min(max(first - stream, 0), max(until - clean, 0))
    stream, clean = stream + skipped, clean + skipped
    stop = min(until, clean + max(limit - stream, 0))
    _write(out, stream, Described().read(clean, stop).tolist() if clean < stop else [])
    return stream + max(until - clean, 0), max(until, clean)


def _write(out: dict[int, int], stream: int, tokens: Iterable[int]) -> None:
    for place, token in enumerate(tokens):
        out[stream + place] = token


if __name__ == "__main__":
    main()
