"""Find before a run starts whether its draws of members and copies would fail.

Tokenizer and pool are built as in the run, in a temporary folder; then the plan is drawn as in the
run. Only the corpus is not built: for copies between documents, its documents are assumed to be as
long as the first of the background. Cost: seconds per pool, mostly to train a tokenizer; one seed
represents all.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle, islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from inject.corpus.background.mixture import mixed_documents
from inject.corpus.background.registry import SOURCES
from inject.corpus.separators import separators_for
from inject.corpus.tokenizer import encode_texts, load_tokenizer, vocabulary_size
from inject.digest import canonical
from inject.errors import InputError, Unreachable
from inject.examples.example import members, read_examples
from inject.keyed import I64
from inject.plan.make_plan import PlanSettings, make_plan
from inject.step import Step
from inject.stream.inputs import example_tokens
from inject.variants.settings import Variants
from spikein.estimates.injection import expected_counts
from spikein.executors import InProcess
from spikein.pipeline.arm_nodes import ArmNodes
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.store import Store

_MOST_COPIES = 1_000_000
"""Drawn in ten seconds; larger plans are only checked by the run."""
_MOST_ROWS = 50_000
"""Built and compared in half a minute; larger pools are only checked by the run."""
_DOCUMENTS = 2_000
"""Of the background, whose lengths are measured."""
_SETTINGS = TypeAdapter(PlanSettings)


@dataclass(frozen=True, kw_only=True)
class _ExpectedCorpus:
    """A corpus with only a length and document starts."""

    n_tokens: int
    doc_starts: I64

    def read(self, start: int, stop: int) -> I64:
        """Return the tokens of a part; each is the end-of-document token."""
        return np.zeros(stop - start, dtype=np.int64)


def draw_problems(nodes: Sequence[ArmNodes]) -> Iterator[str]:
    """Yield why a run would refuse the pools and the copies of arms; empty if it would not.

    Args:
        nodes: the arms whose plans to draw.
    """
    drawn_keys: set[str] = set()
    nodes = [node for node in nodes if _rows(node) <= _MOST_ROWS]
    with tempfile.TemporaryDirectory() as folder:
        for node in nodes:
            key = canonical(
                [
                    node.tokenizer.digest,
                    {**node.corpus.settings, "seed": None},
                    {**node.examples.settings, "seed": None},
                    {**node.plan.settings, "seed": None},
                ]
            )
            if key in drawn_keys:
                continue
            drawn_keys.add(key)
            try:
                _draw(node, Store(Path(folder)))
            except Unreachable:
                continue
            except InputError as error:
                yield str(error)


def _rows(node: ArmNodes) -> int:
    pool = node.arm.experiment.contaminants
    return sum(part.members + part.nonmembers + part.held_out for part in pool)


def _draw(node: ArmNodes, scratch: Store) -> None:
    """Draw the pool and the plan of an arm.

    Raises:
        InputError: as the run's own steps.
    """
    report = InProcess().run(Graph(goals=(node.tokenizer, node.examples)), scratch, Progress())
    settings = _SETTINGS.validate_python(node.plan.execution["plan"])
    examples = read_examples(report.artifact(node.examples).path)
    copies, _, _ = expected_counts(settings.copies, len(members(examples)))
    if settings.variants != Variants() or copies > _MOST_COPIES:
        return
    tokenizer = load_tokenizer(str(report.artifact(node.tokenizer).path))
    starts = np.zeros(1, dtype=np.int64)
    if settings.placement.policy == "document" and settings.placement.contained:
        if node.corpus.execution["imported"] is not None:
            return
        starts = _expected_starts(node.corpus, tokenizer, settings.budget)
    make_plan(
        examples,
        example_tokens(examples, tokenizer),
        settings,
        source=_ExpectedCorpus(n_tokens=settings.budget, doc_starts=starts),
        separators=separators_for(settings.placement.separation, tokenizer),
        vocabulary=vocabulary_size(tokenizer),
    )


def _expected_starts(corpus: Step, tokenizer: Any, tokens: int) -> I64:
    """Return the starts of documents as long as the first of the background, in turn."""
    sources = SOURCES.validate_python(corpus.execution["sources"])
    documents = islice(mixed_documents(sources, seed=corpus.settings["seed"]), _DOCUMENTS)
    lengths = [len(ids) + 1 for ids in encode_texts(tokenizer, [part.text for part in documents])]
    starts = takewhile(lambda start: start < tokens, accumulate(cycle(lengths), initial=0))
    return np.array(list(starts), dtype=np.int64)
