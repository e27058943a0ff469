"""The evidence of an audit: chunks with each model's scores and continuations.

Of a chunk, `dataset` is the part of the audit, `source_id` the id of its text, and `fields` are
`start` and `stop` (characters in the source) and `prompt_stop` (characters of the chunk that are
the prompt). A ratio is score(unlearned) / score(original). Both are means of log-probabilities, so
they are negative, and a model that forgot a text has a score further below zero: the ratio is
large. Of a score that is zero or positive there is no ratio, with a reason.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.intervals.influence import Counts, Floats
from analysis.unlearning_audit.shares import Clusters, clusters_of
from detect.generation.continuations import read_continuations
from detect.generation.text_overlap import longest_run, rouge_l_recall
from detect.scores.table import read_scores
from inject.examples.example import Example
from inject.step import StepContext

AUDITED, HOLDOUT, RETAINED, QUESTION = "audited", "holdout", "retained", "question"
"""Parts of an audit: chunks of the texts, of texts that no model saw, of texts that the unlearned
model should still know, questions with answers."""
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
Scores = tuple[Floats, list[str | None]]
"""A number a text, a detector's score or the ratio of two, NaN if there is none, and why."""


def prompt_of(chunk: Example) -> str:
    """Return the text that the models continue."""
    return chunk.text[: chunk.fields["prompt_stop"]]


def rest_of(chunk: Example) -> str:
    """Return the true continuation, with the white space before it."""
    return chunk.text[chunk.fields["prompt_stop"] :]


@dataclass(frozen=True, kw_only=True)
class Chunks:
    """Chunks with the models' values; every array has one value per chunk, NaN for none."""

    rows: Sequence[Example]
    numbers: Counts
    """Of the chunks, over all parts of the audit."""
    scores: Mapping[str, Floats] = field(default_factory=dict)
    """By model."""
    losses: Mapping[str, Floats] = field(default_factory=dict)
    """By model, nats per token; empty if they were not measured."""
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
        """Return a column's values for each continuation by a model, by chunk."""
        by_chunk: dict[int, list[float]] = {number: [] for number in self.numbers.tolist()}
        for row in self.continuations.select(["chunk", "model", column]).to_pylist():
            if row["model"] == model and row["chunk"] in by_chunk and row[column] is not None:
                by_chunk[row["chunk"]].append(row[column])
        return [*by_chunk.values()]

    def closest(self, model: str, column: str = LONGEST) -> Floats:
        """Return the largest value of a column among a model's continuations of each chunk."""
        return np.array([max(each, default=np.nan) for each in self.written(model, column)])


def score_ratios(
    original: Sequence[float] | Floats, other: Sequence[float] | Floats, *, name: str = "unlearned"
) -> Scores:
    """Return score(other) / score(original) of each text.

    Args:
        original: of each text, mean log-probabilities.
        other: the same, of the model that it is compared with.
        name: of that model, for the reasons.
    """
    values, reasons = [], []
    for first, second in zip(original, other, strict=True):
        reason = _reason("original", first) or _reason(name, second)
        values.append(math.nan if reason else second / first)
        reasons.append(reason)
    return np.array(values, dtype=np.float64), reasons


def _reason(model: str, score: float) -> str | None:
    if math.isnan(score):
        return f"no score of the {model} model"
    if score >= 0:
        sign = "zero" if score == 0 else f"positive ({score:.3g})"
        return f"the score of the {model} model is {sign}: a ratio is of negative scores"
    if math.isinf(score):
        return f"the score of the {model} model is not finite"
    return None


def make_chunks(
    rows: Sequence[Example],
    scores: Mapping[str, Scores],
    losses: Mapping[str, Floats],
    continuations: pa.Table,
) -> Chunks:
    """Return chunks with their ratios, or why they have none."""
    original, unscored = scores["original"]
    ratios = {
        name: score_ratios(original, values, name=name)
        for name, (values, _) in scores.items()
        if name != "original"
    }
    why = zip(unscored, scores["unlearned"][1], ratios["unlearned"][1], strict=True)
    return Chunks(
        rows=rows,
        numbers=np.arange(len(rows)),
        scores={name: values for name, (values, _) in scores.items()},
        losses=losses,
        ratios={name: values for name, (values, _) in ratios.items()},
        reasons=[next(filter(None, each), None) for each in why],
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
    losses = {name: -scored_by(folder, rows, "loss", None)[0] for name, folder in folders.items()}
    # Audits of experiments without the detector `loss` cannot check whether a model works.
    measured = all(map(len, losses.values()))
    tables = [CONTINUATIONS.empty_table()]
    for name in folders:
        if (folder := context.inputs.get(f"{name}-written")) is not None:
            texts = {key: continued.texts for key, continued in read_continuations(folder).items()}
            tables.append(compared(name, rows, texts))
    return make_chunks(
        rows,
        {name: scored_by(folder, rows, *scored) for name, folder in folders.items()},
        losses if measured else {},
        pa.concat_tables(tables).combine_chunks(),
    )


def scored_by(folder: Path, rows: Sequence[Example], detector: str, setting: str | None) -> Scores:
    """Return a detector's scores of chunks; NaN for chunks that it did not score.

    Args:
        folder: of the scores.
        rows: what was scored.
        detector: its name.
        setting: None for any setting.
    """
    columns = ["example_id", "detector", "setting", "score", "reason"]
    by_id = {
        row["example_id"]: row
        for row in read_scores(folder, columns=columns).to_pylist()
        if row["detector"] == detector and setting in (None, row["setting"])
    }
    own = [by_id[row.example_id] for row in rows] if by_id else []
    values = np.array([row["score"] for row in own], dtype=np.float64)
    return values, [row["reason"] for row in own]


def compared(model: str, rows: Sequence[Example], texts: Mapping[str, Sequence[str]]) -> pa.Table:
    """Return a model's continuations as `CONTINUATIONS`, compared with the true text.

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
