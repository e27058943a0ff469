"""One finished tiny experiment with unlearned models, one of them by a method of a user's file."""

from pathlib import Path
from typing import NamedTuple

import pytest

from inject.step import Step
from spikein.pipeline.arm_nodes import ArmNodes
from spikein.pipeline.build_graph import ExperimentGraph
from spikein.store.store import Store
from tests.spikein.tiny import graph_of, run, write_tiny

METHOD = '''
"""Somebody's own method: the forget texts become less likely, the retain texts stay."""


def push_away(batch):
    return -batch.forget.loss + batch.retain.loss
'''


AUDIT = "{detector: loss, samples: 3, max_tokens: 24}"


class Finished(NamedTuple):
    """A run that ended."""

    root: Path
    overrides: tuple[str, ...]
    graph: ExperimentGraph

    @property
    def node(self) -> ArmNodes:
        """Its single arm."""
        (node,) = self.graph.nodes
        return node

    def stored(self, step: Step) -> Path:
        """The folder of a step's artifact."""
        artifact = Store(self.root / "store").find(step.digest, kind=step.kind)
        assert artifact is not None, step.name
        return artifact.path


def overrides_of(root: Path) -> tuple[str, ...]:
    """What makes the tiny experiment one of unlearning; writes the user's file."""
    (root / "mine.py").write_text(METHOD)
    methods = (
        "[{method: gradient_ascent, lr: 3.0e-3, epochs: 2}, "
        "{method: npo, lr: 3.0e-3, epochs: 2}, "
        f"{{method: '{root}/mine.py:push_away', name: mine, lr: 3.0e-3, epochs: 1}}]"
    )
    return (
        f"unlearning={{forget: {{share: 0.5}}, methods: {methods}, audit: {AUDIT}}}",
        "placement={policy: window}",
        "copies={levels: [1, 3]}",
        "train.context=128",
        "pool.long_examples=truncate",
        "detect.detectors=[loss, reference, blind]",
        "analysis.task_accuracy=false",
        "corpus.tokens=20_000",
    )


@pytest.fixture(scope="package")
def finished(tmp_path_factory) -> Finished:
    root = tmp_path_factory.mktemp("unlearning")
    write_tiny(root)
    overrides = overrides_of(root)
    run(root, *overrides)
    return Finished(root, overrides, graph_of(root, *overrides))
