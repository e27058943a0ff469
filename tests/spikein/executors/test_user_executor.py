"""A whole experiment by an executor in a file outside the repository, and by one that cheats."""

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

import spikein
from inject.errors import InputError
from spikein.executors import InProcess, RunReport, run_graph
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.artifact import open_artifact
from spikein.store.store import Store
from tests.command_line import invoke
from tests.spikein.step_functions import step
from tests.spikein.tiny import run, write_tiny

LISTED = '''
"""An executor that writes down what it runs."""

import time
from pathlib import Path

from spikein.executors import RunReport, build_step


class Listed:
    """Every step in the order of the graph, with a line for each in `order.txt`."""

    def run(self, graph, store, progress):
        began, outcomes = time.monotonic(), {}
        progress.run_started(graph.steps)
        with store.in_use(required=False), Path("order.txt").open("a") as order:
            for number, step in enumerate(graph.steps, start=1):
                inputs = {
                    name: outcomes[given.digest].artifact for name, given in step.inputs.items()
                }
                outcomes[step.digest] = build_step(
                    step, inputs, store, progress, number=number, total=len(graph.steps)
                )
                order.write(f"{step.name}\\n")
        return RunReport(
            outcomes=tuple(outcomes.values()), seconds=time.monotonic() - began
        )
'''
CHOSEN = ("--executor", "mine.py:Listed")
SMALL = (
    "corpus.tokens=14000", "train.checkpoints={steps: [2]}", "base=null", "train.mode=pretrain",
    "detect.detectors=[loss, dc_pdd, blind]", "analysis.task_accuracy=false",
)  # fmt: skip


def contents(store: Path) -> dict[str, str]:
    records = [open_artifact(path.parent).manifest for path in store.glob("[!.]*/*/manifest.json")]
    return {f"{record.kind} {record.digest}": record.content for record in records}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_executors_build_the_same_artifacts_also_one_in_a_users_file(tmp_path, monkeypatch):
    from tests.train.killable import one_thread

    # Sums depend on the number of threads, of which workers have their share.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    write_tiny(tmp_path)
    (tmp_path / "mine.py").write_text(textwrap.dedent(LISTED))
    monkeypatch.chdir(tmp_path)
    with one_thread():
        invoke("run", "tiny.yaml", *SMALL, *CHOSEN, code=0)
    order = (tmp_path / "order.txt").read_text().splitlines()
    built = [path.name for path in (tmp_path / "store").glob("[!.]*/*")]
    assert len(order) == len(built)
    assert any(line.startswith("results ") for line in order)
    # Our executor finds all steps that the user's built: digests depend on neither name nor source.
    metrics = (tmp_path / "runs/tiny/latest/findings.parquet").read_bytes()
    again = run(tmp_path, *SMALL)
    assert (again.built, again.stored) == (0, len(built))
    assert (tmp_path / "runs/tiny/latest/findings.parquet").read_bytes() == metrics
    spikein.run(
        tmp_path / "tiny.yaml",
        overrides=(*SMALL, "executor={kind: local, workers: 1}"),
        store=tmp_path / "local",
        runs=tmp_path / "others",
        progress=False,
    )
    assert contents(tmp_path / "local") == contents(tmp_path / "store")


class Cheat:
    """Runs the graph, and then returns something else."""

    def __init__(self, change) -> None:
        self.change = change

    def run(self, graph, store, progress):
        return self.change(InProcess().run(graph, store, progress))


def of_another_step(report: RunReport) -> RunReport:
    first, second = report.outcomes
    return replace(report, outcomes=(first, replace(second, artifact=first.artifact)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda report: None, "run returned NoneType, not a RunReport"),
        (lambda report: replace(report, outcomes=report.outcomes[:1]), "no outcome for the step"),
        (of_another_step, "which has another digest"),
    ],
)
def test_an_executor_that_does_not_make_the_goals_is_refused(tmp_path, change, words):
    graph = Graph(goals=(step("one", "write"), step("two", "write")))
    with pytest.raises(InputError, match=words) as refused:
        run_graph(Cheat(change), graph, Store(tmp_path / "store"), Progress())
    assert "executor Cheat" in str(refused.value)


def test_an_artifact_of_another_store_is_refused(tmp_path):
    graph = Graph(goals=(step("one", "write"),))
    other = InProcess().run(graph, Store(tmp_path / "other"), Progress())
    with pytest.raises(InputError, match="not in the store"):
        run_graph(Cheat(lambda _: other), graph, Store(tmp_path / "store"), Progress())
