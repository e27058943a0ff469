"""Executors: their protocol, and the registry of their names.

An executor of your own imports everything it needs from here: `start_graph`, `build_step`,
`Outcome` and `RunReport`. Choose it by `spikein run FILE --executor FILE.py:NAME`, or by its name
if an installed package offers it under the entry point group `spikein.executors`.
"""

from inject.step import Step as Step
from spikein.executors.graph_run import GraphRun as GraphRun
from spikein.executors.graph_run import InProcess as InProcess
from spikein.executors.graph_run import build_step as build_step
from spikein.executors.graph_run import start_graph as start_graph
from spikein.executors.protocol import Executor as Executor
from spikein.executors.protocol import Outcome as Outcome
from spikein.executors.protocol import RunReport as RunReport
from spikein.executors.protocol import StepFailure as StepFailure
from spikein.executors.protocol import StepsFailed as StepsFailed
from spikein.executors.protocol import run_graph as run_graph
from spikein.executors.registry import ExecutorRow as ExecutorRow
from spikein.executors.registry import executor_of as executor_of
from spikein.executors.registry import get_executor as get_executor
from spikein.executors.registry import list_executors as list_executors
from spikein.pipeline.graph import Graph as Graph
from spikein.progress import Progress as Progress
from spikein.store.store import Store as Store
