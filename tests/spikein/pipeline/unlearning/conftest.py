"""One finished tiny experiment with unlearned models, one of them by a method of a user's file."""

from pathlib import Path

import pytest

from tests.spikein.shared_run import SharedRun
from tests.spikein.tiny import graph_of, run, write_tiny

METHOD = '''
"""Somebody's own method: the forget texts become less likely, the retain texts stay."""


def push_away(batch):
    return -batch.forget.loss + batch.retain.loss
'''


AUDIT = "{detector: loss, samples: 3, max_tokens: 24}"


def overrides_of(root: Path) -> tuple[str, ...]:
    """What makes the tiny experiment one of unlearning."""
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
def finished(tmp_path_factory) -> SharedRun:
    root = tmp_path_factory.mktemp("unlearning")
    write_tiny(root)
    (root / "mine.py").write_text(METHOD)
    overrides = overrides_of(root)
    run(root, *overrides)
    return SharedRun(root, graph_of(root, *overrides))
