"""The bookkeeping of a graph that is run: which steps are needed, and what became of them.

A stored artifact is taken only after its inputs: where one of them was built again and came out
otherwise, the artifact is built again, too.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from spikein.executors.protocol import Outcome, RunReport
from spikein.executors.step_build import build_step
from spikein.pipeline.graph import Graph, Step, plan
from spikein.progress import Progress
from spikein.store.artifact import require_current
from spikein.store.manifest import StoreError
from spikein.store.store import Store


@contextmanager
def start_graph(graph: Graph, store: Store, progress: Progress) -> Iterator["GraphRun"]:
    """Plan a graph, and protect the store from garbage collection while it is run."""
    with store.in_use(required=False):
        yield GraphRun(graph, store, progress)


class GraphRun:
    """A graph that is being run. Not for several threads at once."""

    def __init__(self, graph: Graph, store: Store, progress: Progress) -> None:
        self._began = time.monotonic()
        self._graph = graph
        self._store = store
        self._progress = progress
        planned = plan(graph, store)
        self._planned = {one.step.digest: one for one in planned}
        self._outcomes: dict[str, Outcome] = {}
        self._total = sum(one.to_do for one in planned)
        self._number = 0
        self.needed = tuple(one.step for one in planned if one.state != "unneeded")
        """The steps that the goals need, stored ones included, each after its inputs."""
        progress.run_started([one.step for one in planned if one.to_do])

    def obtain(self, step: Step) -> Outcome:
        """Return the artifact of a step, built now, with its inputs, unless the store has it.

        Raises:
            Exception: what a step raised, with a note that names it.
        """
        if step.digest not in self._outcomes:
            self._outcomes[step.digest] = self._stored(step) or self._built(step)
        return self._outcomes[step.digest]

    def report(self) -> RunReport:
        """Return what became of the steps so far."""
        steps = (step for step in self._graph.steps if step.digest in self._outcomes)
        return RunReport(
            outcomes=tuple(self._outcomes[step.digest] for step in steps),
            seconds=time.monotonic() - self._began,
        )

    def _stored(self, step: Step) -> Outcome | None:
        one = self._planned[step.digest]
        if one.state != "stored" or one.artifact is None:
            return None
        inputs = {
            name: self._outcomes[given.digest].artifact.manifest
            for name, given in step.inputs.items()
            if given.digest in self._outcomes
        }
        try:
            require_current(one.artifact, inputs)
        except StoreError:
            self._total += 1
            return None
        return Outcome(step=step, artifact=one.artifact, built=False, seconds=0.0)

    def _built(self, step: Step) -> Outcome:
        inputs = {name: self.obtain(given).artifact for name, given in step.inputs.items()}
        self._number += 1
        return build_step(
            step, inputs, self._store, self._progress, number=self._number, total=self._total
        )
