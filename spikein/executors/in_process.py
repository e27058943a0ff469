"""The plain executor: one step after the other, in this process.

Steps are built in the graph's order, which follows one goal to its end before the next, so that
the first results are there early. A kill or an error loses the running step alone.
"""

from spikein.executors.graph_run import start_graph
from spikein.executors.protocol import RunReport
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.store import Store


class InProcess:
    """One step after the other, in this process."""

    def run(self, graph: Graph, store: Store, progress: Progress) -> RunReport:
        """See `spikein.executors.Executor.run`."""
        with start_graph(graph, store, progress, executor="in-process") as run:
            for step in run.needed:
                run.obtain(step)
            return run.report()
