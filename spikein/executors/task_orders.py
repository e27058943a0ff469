"""The tasks of one run: the graph written once, and each step named to whoever builds it."""

from pathlib import Path
from typing import NamedTuple

from inject.errors import InputError
from spikein.executors.graph_file import GraphFile, write_graph
from spikein.executors.scheduling import PoolPlace
from spikein.executors.task import Task
from spikein.pipeline.graph import Step
from spikein.store.folder_check import CHANGE_STORE, writing


class TaskOrders(NamedTuple):
    """What all tasks of a run share."""

    graph: GraphFile
    run_folder: str
    store: str
    working_folder: str

    @classmethod
    def start(cls, place: PoolPlace) -> "TaskOrders":
        """Write the graph of a run for those who build its steps.

        Raises:
            InputError: the store cannot be written.
        """
        folder = place.run.status.folder
        if folder is None:
            raise InputError(
                "cannot be written, and there are steps to build",
                where=str(place.store.root),
                hint=CHANGE_STORE,
            )
        with writing(place.store.root, CHANGE_STORE, "the graph of the run"):
            file = write_graph(place.graph, folder)
        return cls(
            graph=file,
            run_folder=str(folder.resolve()),
            store=str(place.store.root.resolve()),
            working_folder=str(Path.cwd()),
        )

    def task(self, step: Step, *, attempt: int, threads: int) -> Task:
        """Return a step as a task.

        Args:
            step: of the graph.
            attempt: how often it is begun with this one.
            threads: it may use.
        """
        return Task(
            digest=step.digest,
            graph=self.graph,
            run_folder=self.run_folder,
            store=self.store,
            working_folder=self.working_folder,
            threads=threads,
            attempt=attempt,
        )
