"""Texts leave room for the separators around a copy that must lie inside one window."""

import json

from inject.corpus.tokenizer import encode_texts, load_tokenizer
from inject.examples.example import read_examples
from inject.plan.plan import read_plan
from spikein.config.load import read_experiment
from spikein.executors import get_executor
from spikein.pipeline.build_graph import build_graph
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.store import Store
from tests.conftest import make_texts
from tests.spikein.tiny import write_tiny

CONTEXT = 64


def planned(folder, *overrides):
    """Return pools, plans and tokenizers as they lie in the store, one for each arm."""
    file = write_tiny(folder)
    with (folder / "rows.jsonl").open("w") as out:
        for number, text in enumerate(make_texts(60, seed=11, words=90)):
            out.write(json.dumps({"text": text[: 120 + 8 * number]}) + "\n")
    rows = (
        f'[{{dataset: rows, name: long, path: "{folder}/rows.jsonl", members: 20, nonmembers: 20}}]'
    )
    experiment = read_experiment(file, [f"contaminants={rows}", *overrides])
    experiment_graph = build_graph(experiment)
    graph = Graph(goals=tuple(node.plan for node in experiment_graph.nodes))
    report = get_executor("in-process").run(graph, Store(folder / "store"), Progress())
    return [
        (
            report.artifact(node.examples),
            read_plan(report.artifact(node.plan).path),
            load_tokenizer(str(report.artifact(node.tokenizer).path)),
        )
        for node in experiment_graph.nodes
    ]


def test_truncated_rows_fit_a_window_with_the_separators_of_every_arm(tmp_path):
    arms = planned(
        tmp_path,
        "pool.long_examples=truncate",
        "copies={fixed: 1}",
        "sweep={placement: [{policy: splice}, {policy: window, separator: end}]}",
    )
    pools = {artifact.digest for artifact, _, _ in arms}
    assert len(pools) == 1
    artifact, _, tokenizer = arms[0]
    texts = [one.text for one in read_examples(artifact.path)]
    lengths = [len(ids) for ids in encode_texts(tokenizer, texts)]
    # An end token before the copy and one behind it.
    assert max(lengths) == CONTEXT - 2
    payload = [max(plan.copies["payload_length"].to_pylist()) for _, plan, _ in arms]
    assert payload == [CONTEXT - 2, CONTEXT]


def test_copies_that_may_lie_across_windows_are_cut_to_the_whole_context(tmp_path):
    ((artifact, _, tokenizer),) = planned(
        tmp_path, "pool.long_examples=truncate", "placement={policy: document}"
    )
    texts = [one.text for one in read_examples(artifact.path)]
    assert max(len(ids) for ids in encode_texts(tokenizer, texts)) == CONTEXT
