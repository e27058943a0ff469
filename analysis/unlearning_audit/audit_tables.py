"""The tables of an audit, and all that an audit is before it is written."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from analysis.unlearning_audit.checks import Judgement
from analysis.unlearning_audit.estimates import null
from analysis.unlearning_audit.findings import Findings
from analysis.unlearning_audit.questions import QuestionFindings
from analysis.unlearning_audit.ratio import Floats, Mask, Ratios
from analysis.unlearning_audit.text_chunks import Chunk
from detect.generation.text_overlap import longest_run, rouge_l_recall

MODELS = ("original", "unlearned", "retrained")
CHUNKS = pa.schema(
    [
        ("chunk", pa.int64()),
        ("part", pa.string()),
        ("text_id", pa.string()),
        ("group", pa.string()),
        ("start", pa.int64()),
        ("stop", pa.int64()),
        ("prompt_stop", pa.int64()),
        ("original", pa.float64()),
        ("unlearned", pa.float64()),
        ("retrained", pa.float64()),
        ("ratio", pa.float64()),
        ("retrained_ratio", pa.float64()),
        ("suspicious", pa.bool_()),
        ("continued", pa.bool_()),
        ("remembered", pa.bool_()),
        ("remembered_original", pa.bool_()),
        ("loss_original", pa.float64()),
        ("loss_unlearned", pa.float64()),
        ("loss_retrained", pa.float64()),
        ("reason", pa.string()),
    ]
)
CONTINUATIONS = pa.schema(
    [
        ("chunk", pa.int64()),
        ("model", pa.string()),
        ("sample", pa.int64()),
        ("text", pa.string()),
        ("rouge_l", pa.float64()),
        ("longest_common_substring", pa.float64()),
        ("embedding", pa.float64()),
        ("judge", pa.float64()),
    ]
)
QUESTIONS = pa.schema(
    [
        ("question", pa.string()),
        ("answer", pa.string()),
        ("original", pa.float64()),
        ("unlearned", pa.float64()),
        ("ratio", pa.float64()),
        ("kept", pa.bool_()),
        ("recall", pa.float64()),
        ("answers", pa.list_(pa.string())),
        ("reason", pa.string()),
    ]
)


class Audit(NamedTuple):
    """An audit, before it is written."""

    chunks: Sequence[Chunk]
    """Those that are audited, then those of the holdout."""
    chunk_table: pa.Table
    """As `CHUNKS`; `part` is `audited` or `holdout`."""
    continuations: pa.Table
    """As `CONTINUATIONS`; without the texts that follow protected chunks."""
    questions: pa.Table | None
    """As `QUESTIONS`; None where none were asked."""
    findings: Findings
    question_findings: QuestionFindings | None
    judgement: Judgement
    """What may be said of them."""
    notes: tuple[str, ...]


def compared(model: str, chunks: Sequence[Chunk], texts: Sequence[Sequence[str]]) -> pa.Table:
    """Return a model's continuations as `CONTINUATIONS`, held against what stands there.

    ROUGE-L recall; the longest common run in words; embedding and judge are null.
    """
    rows = [
        {
            "chunk": chunk.chunk,
            "model": model,
            "sample": sample,
            "text": text,
            "rouge_l": rouge_l_recall(text, chunk.rest, whole=True),
            "longest_common_substring": longest_run(text, chunk.rest),
        }
        for chunk, samples in zip(chunks, texts, strict=True)
        for sample, text in enumerate(samples)
    ]
    return pa.Table.from_pylist(rows, schema=CONTINUATIONS)


def without_protected(continuations: pa.Table, chunks: Sequence[Chunk]) -> pa.Table:
    """Return continuations, their text null where the chunk is protected: it may be that text.

    Args:
        continuations: as `CONTINUATIONS`.
        chunks: all of them.
    """
    hidden = {chunk.chunk for chunk in chunks if chunk.protected}
    texts = [
        None if chunk in hidden else text
        for chunk, text in zip(
            continuations["chunk"].to_pylist(), continuations["text"].to_pylist(), strict=True
        )
    ]
    place = continuations.schema.get_field_index("text")
    return continuations.set_column(place, "text", pa.array(texts, pa.string()))


class Scored(NamedTuple):
    """The scores of chunks under each model, and what follows from them; arrays of one length."""

    scores: Mapping[str, Floats]
    losses: Mapping[str, Floats]
    """Nats a token; empty where they were not measured."""
    ratios: Ratios
    retrained: Ratios | None
    flags: Mask


def chunk_table(
    chunks: Sequence[Chunk],
    scored: Scored,
    written: Mapping[str, Mapping[int, bool]],
    *,
    audited: int,
    continued: Collection[int],
) -> pa.Table:
    """Return chunks as `CHUNKS`.

    Args:
        chunks: those that are audited, then those of the holdout.
        scored: likewise.
        written: by model, whether it remembers a chunk, by its number; null for the others.
        audited: how many are audited.
        continued: numbers of the audited chunks that the models continued.
    """
    rows = []
    for at, chunk in enumerate(chunks):
        others = scored.retrained
        rows.append(
            {
                **{name: getattr(chunk, name) for name in _OF_CHUNK},
                "part": "audited" if at < audited else "holdout",
                **{name: null(one[at]) for name, one in scored.scores.items()},
                **{f"loss_{name}": null(one[at]) for name, one in scored.losses.items()},
                "ratio": null(scored.ratios.values[at]),
                "retrained_ratio": None if others is None else null(others.values[at]),
                "suspicious": bool(scored.flags[at]),
                "continued": chunk.chunk in continued,
                "remembered": written["unlearned"].get(chunk.chunk),
                "remembered_original": written["original"].get(chunk.chunk),
                "reason": scored.ratios.reasons[at],
            }
        )
    return pa.Table.from_pylist(rows, schema=CHUNKS)


_OF_CHUNK = ("chunk", "text_id", "group", "start", "stop", "prompt_stop")
