"""Executors: their protocol, and the registry of their names.

An executor of your own imports everything it needs from here: `start_graph`, `build_step`,
`Outcome` and `RunReport`. Choose it by `spikein run FILE --executor FILE.py:NAME`, or by its name
if an installed package offers it under the entry point group `spikein.executors`.
"""

from inject.step import Step
from spikein.executors.graph_run import GraphRun, InProcess, build_step, start_graph
from spikein.executors.protocol import (
    Executor,
    Outcome,
    RunReport,
    StepFailure,
    StepsFailed,
    run_graph,
)
from spikein.executors.registry import (
    ExecutorRow,
    executor_of,
    get_executor,
    list_executors,
)
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.store import Store

__all__ = [
    "Executor",
    "ExecutorRow",
    "Graph",
    "GraphRun",
    "InProcess",
    "Outcome",
    "Progress",
    "RunReport",
    "Step",
    "StepFailure",
    "StepsFailed",
    "Store",
    "build_step",
    "executor_of",
    "get_executor",
    "list_executors",
    "run_graph",
    "start_graph",
]
