"""Synthetic chunks of an audit."""

from collections.abc import Mapping, Sequence

import numpy as np

from analysis.unlearning_audit.evidence import AUDITED, CONTINUATIONS, Chunks
from inject.examples.example import Example


def chunk(number: int, *, part: str = AUDITED, text: str | None = None) -> Example:
    """Return a chunk of a separate text, or of a named one."""
    name = str(number) if text is None else text
    fields = {"start": 0, "stop": 9, "prompt_stop": 1}
    return Example(example_id=str(number), dataset=part, source_id=name, group=name,
                   fields=fields, text="a b c d e")  # fmt: skip


def chunks(
    count: int,
    *,
    first: int = 0,
    losses: Mapping[str, np.ndarray] | None = None,
    ratios: Mapping[str, np.ndarray] | None = None,
    continuations: Sequence[Mapping[str, object]] = (),
) -> Chunks:
    """Return `count` chunks of separate texts with the results of models on them."""
    table = CONTINUATIONS.empty_table().from_pylist(list(continuations), schema=CONTINUATIONS)
    return Chunks(
        rows=[chunk(at) for at in range(first, first + count)],
        numbers=np.arange(first, first + count),
        losses=losses or {},
        ratios=ratios or {},
        continuations=table,
    )
