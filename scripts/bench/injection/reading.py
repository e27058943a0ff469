"""Reading speed of a contaminated stream, window by window, in training order.

A corpus of random tokens is written to disk once; 100,000 copies go into it. The bytes on disk of
the arm are those of its plan: the corpus is not copied.
"""

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from inject.corpus.separators import NO_SEPARATORS
from inject.corpus.tokens import TokenReader, TokenWriter
from inject.plan.make_plan import PlanSettings, make_plan
from inject.plan.plan import read_plan, write_plan
from inject.plan.settings import Copies, Placement, Policy
from inject.stream.order import window_order
from inject.stream.view import StreamView
from scripts.bench.injection.planning import spiked

CONTEXT = 2048
VOCABULARY = 50_304
EXAMPLES, COPIES, LENGTH = 1_000, 100, 100
CHUNK = 1 << 22


class Clean:
    """A corpus on disk without documents."""

    def __init__(self, folder: Path, tokens: int) -> None:
        random = np.random.default_rng(0)
        with TokenWriter(folder, vocabulary=VOCABULARY) as writer:
            while writer.n_tokens < tokens:
                size = min(CHUNK, tokens - writer.n_tokens)
                writer.append(random.integers(0, VOCABULARY, size, dtype=np.int64))
        paths = [folder / shard.name for shard in writer.shards]
        self._reader = TokenReader(paths, writer.shards, dtype=writer.dtype.str)
        self.n_tokens = tokens
        self.doc_starts = np.zeros(1, dtype=np.int64)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the tokens start <= position < stop."""
        return self._reader.read(start, stop)


def measure(*, tokens: int = 200_000_000, policy: Policy = "splice", rounds: int = 5) -> dict:
    """Return tokens a second over the windows of one epoch, and the bytes of corpus and arm."""
    with tempfile.TemporaryDirectory(prefix="spikein-bench-") as name:
        folder, arm = Path(name, "corpus"), Path(name, "plan")
        folder.mkdir()
        arm.mkdir()
        source = Clean(folder, tokens)
        examples, texts = spiked(EXAMPLES, LENGTH, vocabulary=VOCABULARY)
        plan = make_plan(
            examples,
            texts,
            PlanSettings(
                copies=Copies(fixed=COPIES),
                placement=Placement(policy=policy),
                budget=tokens,
                context=CONTEXT,
                seed=0,
            ),
            source=source,
            separators=NO_SEPARATORS,
            vocabulary=VOCABULARY,
        )
        write_plan(arm, plan)
        view = read_plan(arm).view(source)
        order = window_order(0, 0, view.n_windows).tolist()
        rates = [_read_all(view, order) for _ in range(rounds)]
        return {
            "view_tokens_per_second": statistics.median(rates),
            "view_tokens_per_second_fastest": max(rates),
            "view_copies": EXAMPLES * COPIES,
            "view_tokens": tokens,
            "corpus_bytes": _size(folder),
            "arm_bytes": _size(arm),
            "arm_bytes_a_copy": _size(arm) / (EXAMPLES * COPIES),
        }


def _read_all(view: StreamView, order: list[int]) -> float:
    started = time.perf_counter()
    for window in order:
        view.window(window)
    return len(order) * view.context / (time.perf_counter() - started)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
