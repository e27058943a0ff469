"""How alike continuations are to the truth in meaning: by embeddings, and by a judge.

Both are asked for by name. The judge's texts leave this machine; what it costs is in its notes.
Where one of them fails nothing is lost: what the models wrote is in the store, the judge's replies
are kept, and the same audit again goes on from there.
"""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from inject.server.address import Server
from inject.step import StepContext


def with_meaning(
    context: StepContext, table: pa.Table, rests: Mapping[int, str]
) -> tuple[pa.Table, list[str]]:
    """Fill the columns `embedding` and `judge` of continuations, as far as they were asked for.

    Args:
        context: of the step; its execution has `embeddings` and `judge`, None for none, and
            `device` and `replies`, the file of the judge's replies.
        table: continuations.
        rests: the true continuation of each chunk.

    Returns:
        The table, and what to know of it.
    """
    written = table["text"].to_pylist()
    truths = [rests[chunk].strip() for chunk in table["chunk"].to_pylist()]
    notes: list[str] = []
    for name, fill in (("embedding", _embedded), ("judge", _judged)):
        if written:
            values = fill(context, written, truths, notes)
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, pa.array(values, pa.float64()))
    return table, notes


def _embedded(
    context: StepContext, written: list[str], truths: list[str], notes: list[str]
) -> list[float | None]:
    from analysis.similarity.embeddings import Embedder

    model, device = (context.execution[name] for name in ("embeddings", "device"))
    if model is None:
        return [None] * len(written)
    embedder = Embedder(model, device="cpu" if device == "auto" else device)
    found = embedder.similarities(written, truths)
    if embedder.cut:
        notes.append(
            f"{embedder.cut:,} texts were longer than the {embedder.longest} tokens that {model} "
            "reads, and were compared by their beginnings"
        )
    return list(found)


def _judged(
    context: StepContext, written: list[str], truths: list[str], notes: list[str]
) -> list[float | None]:
    from analysis.similarity.judge import Judge, Pair

    given: Mapping[str, Any] | None = context.execution["judge"]
    if given is None:
        return [None] * len(written)
    replies = Path(context.execution["replies"])
    with closing(Judge(Server(**given), cache=replies)) as judge:
        found = judge.rate(
            [Pair(truth, text) for truth, text in zip(truths, written, strict=True)],
            progress=lambda done, total: context.report(done, total, unit="ratings"),
        )
        notes += judge.notes()
    if without := sum(one.score is None for one in found):
        notes.append(f"{without:,} of {len(found):,} replies of the judge hold no score")
    return [None if one.score is None else float(one.score) for one in found]
