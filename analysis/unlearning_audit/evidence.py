"""What an audit is drawn from: chunks with what each model scored and wrote of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.intervals.influence import Counts
from analysis.metrics import Floats
from analysis.unlearning_audit.estimates import Clusters, clusters_of
from analysis.unlearning_audit.ratio import Scores, score_ratios
from analysis.unlearning_audit.text_chunks import rest_of
from detect.generation.continuations import read_continuations
from detect.generation.text_overlap import longest_run, rouge_l_recall
from detect.scores.table import read_scores
from inject.examples.example import Example
from inject.step import StepContext

MODELS = ("original", "unlearned", "retrained")
LONGEST = "longest_common_substring"
"""The column that decides whether a chunk is remembered."""
CONTINUATIONS = pa.schema(
    [
        ("chunk", pa.int64()),
        ("model", pa.string()),
        ("sample", pa.int64()),
        ("text", pa.string()),
        ("rouge_l", pa.float64()),
        (LONGEST, pa.float64()),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Chunks:
    """Chunks with what models say of them; every array has one value a chunk, NaN for none."""

    rows: Sequence[Example]
    numbers: Counts
    """Of the chunks, over all parts of the audit."""
    scores: Mapping[str, Floats] = field(default_factory=dict)
    """By model."""
    losses: Mapping[str, Floats] = field(default_factory=dict)
    """By model, nats a token; empty if they were not measured."""
    ratios: Mapping[str, Floats] = field(default_factory=dict)
    """By model: its score over the original's."""
    reasons: Sequence[str | None] = ()
    """Why a chunk has no ratio."""
    continuations: pa.Table = field(default_factory=CONTINUATIONS.empty_table)
    """As `CONTINUATIONS`, of chunks of all parts."""

    def part(self, name: str) -> "Chunks":
        """Return the chunks of a part."""
        places = [at for at, row in enumerate(self.rows) if row.dataset == name]

        def chosen(arrays: Mapping[str, Floats]) -> dict[str, Floats]:
            return {model: values[places] for model, values in arrays.items()}

        return replace(
            self,
            rows=[self.rows[at] for at in places],
            numbers=self.numbers[places],
            scores=chosen(self.scores),
            losses=chosen(self.losses) if places else {},
            ratios=chosen(self.ratios),
            reasons=[self.reasons[at] for at in places],
        )

    def clusters(self, **how: int) -> Clusters:
        """Return which of them belong together, as `clusters_of`."""
        return clusters_of(self.rows, **how)

    def written(self, model: str, column: str = LONGEST) -> list[list[float]]:
        """Return what a column says of each continuation by a model, by chunk."""
        by_chunk: dict[int, list[float]] = {number: [] for number in self.numbers.tolist()}
        for row in self.continuations.select(["chunk", "model", column]).to_pylist():
            if row["model"] == model and row["chunk"] in by_chunk and row[column] is not None:
                by_chunk[row["chunk"]].append(row[column])
        return [*by_chunk.values()]

    def closest(self, model: str, column: str = LONGEST) -> Floats:
        """Return the largest value of a column among a model's continuations of each chunk."""
        return np.array([max(each, default=np.nan) for each in self.written(model, column)])


def make_chunks(
    rows: Sequence[Example],
    scores: Mapping[str, Scores],
    losses: Mapping[str, Floats],
    continuations: pa.Table,
) -> Chunks:
    """Return chunks with their ratios, or why they have none."""
    original = scores["original"].values
    ratios = {
        name: score_ratios(original, one.values, name=name)
        for name, one in scores.items()
        if name != "original"
    }
    why = [scores["original"].reasons, scores["unlearned"].reasons, ratios["unlearned"].reasons]
    return Chunks(
        rows=rows,
        numbers=np.arange(len(rows)),
        scores={name: one.values for name, one in scores.items()},
        losses=losses,
        ratios={name: one.values for name, one in ratios.items()},
        reasons=[next(filter(None, each), None) for each in zip(*why, strict=True)],
        continuations=continuations,
    )


def read_evidence(context: StepContext, rows: Sequence[Example]) -> Chunks:
    """Return chunks with their scores and continuations, as far as there are any."""
    folders = {
        name: context.inputs[f"{name}-scores"]
        for name in MODELS
        if f"{name}-scores" in context.inputs
    }
    scored = context.settings["scored"]
    losses = {name: scored_by(folder, rows, "loss", None) for name, folder in folders.items()}
    # Audits of experiments without the detector loss do not say whether a model works.
    measured = all(len(found.values) for found in losses.values())
    tables = [CONTINUATIONS.empty_table()]
    for name in folders:
        if (folder := context.inputs.get(f"{name}-written")) is not None:
            texts = {key: one.texts for key, one in read_continuations(folder).items()}
            tables.append(compared(name, rows, texts))
    return make_chunks(
        rows,
        {name: scored_by(folder, rows, *scored) for name, folder in folders.items()},
        {name: -found.values for name, found in losses.items()} if measured else {},
        pa.concat_tables(tables).combine_chunks(),
    )


def scored_by(folder: Path, rows: Sequence[Example], detector: str, setting: str | None) -> Scores:
    """Return a detector's scores of chunks; none where it did not score.

    Args:
        folder: of the scores.
        rows: what was scored.
        detector: its name.
        setting: None: whichever it has.
    """
    columns = ["example_id", "detector", "setting", "score", "reason"]
    by_id = {
        row["example_id"]: row
        for row in read_scores(folder, columns=columns).to_pylist()
        if row["detector"] == detector and setting in (None, row["setting"])
    }
    own = [by_id[row.example_id] for row in rows] if by_id else []
    values = np.array([row["score"] for row in own], dtype=np.float64)
    return Scores(values, [row["reason"] for row in own])


def compared(model: str, rows: Sequence[Example], texts: Mapping[str, Sequence[str]]) -> pa.Table:
    """Return a model's continuations as `CONTINUATIONS`, held against what stands there.

    Args:
        model: its name.
        rows: the chunks.
        texts: what it wrote, by the ids of chunks.
    """
    written = [
        {
            "chunk": number,
            "model": model,
            "sample": sample,
            "text": text,
            "rouge_l": rouge_l_recall(text, rest_of(row), whole=True),
            LONGEST: longest_run(text, rest_of(row)),
        }
        for number, row in enumerate(rows)
        for sample, text in enumerate(texts.get(row.example_id, ()))
    ]
    return pa.Table.from_pylist(written, schema=CONTINUATIONS)
