"""Small graphs over a user's models, built in the store of the user's cache folder.

Scoring a file of texts or auditing a model takes a few steps on existing models. They are built
like the steps of an experiment: a killed command resumes where it stopped, nothing is built twice,
every executor can build them.

    with open_store(None) as store:
        model = given_model("my/model")
        [folder] = build_steps([scores], store, executor="local", progress=progress)
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from inject.files import cache_folder
from inject.step import Step
from spikein.executors.protocol import run_graph
from spikein.executors.registry import get_executor
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.filesystem import STORE_OPTION, check_writable
from spikein.store.store import Store
from train.models.model_node import ModelNode, pretrained_node


@contextmanager
def open_store(folder: str | os.PathLike[str] | None) -> Iterator[Store]:
    """Open a store, by default in the user's cache folder; while open, nothing is removed from it.

    Raises:
        InputError: when the folder cannot be written.
    """
    root = cache_folder() / "store" if folder is None else Path(folder).expanduser()
    check_writable(root, STORE_OPTION)
    store = Store(root)
    with store.in_use():
        yield store


def given_model(
    path_or_id: str, *, revision: str | None = None, trust_remote_code: bool = False
) -> ModelNode:
    """Return a causal language model by its folder or hub id, identified by its content.

    Raises:
        InputError: when it does not exist, or is not causal.
    """
    from train.models.pretrained import code_options, find_model
    from train.models.weight_check import check_causal

    model = find_model(path_or_id, revision=revision, trust_remote_code=trust_remote_code)
    code = code_options(model, path_or_id, trust_remote_code=trust_remote_code)
    check_causal(model.path, path_or_id, code)
    return pretrained_node(path_or_id, revision=revision, trust_remote_code=trust_remote_code)


def build_steps(
    goals: Sequence[Step],
    store: Store,
    *,
    executor: str | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Return the folders of steps, in their order; build what the store lacks.

    Args:
        goals: the steps to return.
        store: of `open_store`.
        executor: where steps are built, by name; in this process when None.
        progress: receives the events of the run.

    Raises:
        InputError: for an unknown executor, or as a step raises.
    """
    graph = Graph(goals=tuple(goals))
    report = run_graph(get_executor(executor or "in-process"), graph, store, progress or Progress())
    return [report.artifact(goal).path for goal in goals]
