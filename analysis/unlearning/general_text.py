"""General text, which no model was trained on: what unlearning costs beyond the retain set.

Each text is a document, and a group of its own; the same documents serve all seeds, so a document
is one group in all of them, and the column `groups` counts documents. Where they lie and how they
are chosen is the business of who asks.
"""

from collections.abc import Sequence

import numpy as np

from analysis.intervals.bounds import Scale, find_interval
from analysis.intervals.clustered import Clustered
from analysis.metrics import Floats
from analysis.unlearning.evidence import Cohort, ModelKey
from analysis.unlearning.numbers import Numbers, Part, clustered, gap_of, mean_sample
from analysis.unlearning.rows import Measure, RowWriter, warning_of
from analysis.unlearning.text_measures import references_of

NAME = "general_log_probability"
_DATASET = "general"


def write_general_measures(writer: RowWriter, *, confidence: float) -> None:
    """Add the mean log-probability of general text, of every model that has it."""
    cohort = writer.cohort
    for key in cohort.keys:
        if any(key in models and models[key].general is not None for models in cohort.models):
            numbers = general_numbers(cohort, [key])[0]
            _add(writer, Measure(key=key, name=NAME), numbers, confidence)
            for reference in references_of(key):
                mine, theirs = general_numbers(cohort, [key, reference])
                if any(theirs):
                    versus = Measure(
                        key=key, name=f"{NAME}_difference", setting=f"versus={reference.model}"
                    )
                    _add(writer, versus, gap_of(mine, theirs), confidence)


def general_numbers(cohort: Cohort, keys: Sequence[ModelKey]) -> list[Numbers]:
    """Return the means of models over the documents that all of them have a value for."""
    ids = sorted(
        {
            name
            for models in cohort.models
            for key in keys
            if key in models
            for name in (models[key].general or {})
        }
    )
    found: list[list[dict[str, Part]]] = [[] for _ in keys]
    for models in cohort.models:
        tables = [models[key].general if key in models else None for key in keys]
        there = [table for table in tables if table is not None]
        if len(there) < len(keys):
            for one in found:
                one.append({})
            continue
        values = np.array([[table.get(name, np.nan) for name in ids] for table in there])
        shared = np.isfinite(values).all(axis=0)
        for one, mine in zip(found, values, strict=True):
            one.append({_DATASET: _part(mine, shared)} if shared.any() else {})
    return list(found)


def _part(values: Floats, shared: np.typing.NDArray[np.bool_]) -> Part:
    documents = np.flatnonzero(shared)
    everyone = np.ones((1, len(documents)), dtype=bool)
    present = shared[None]
    return Part(
        sample=mean_sample(values[documents], documents, everyone, len(values)),
        weight=np.array([float(len(documents))]),
        forget=np.array([len(documents)]),
        holdout=0,
        left_out=int((~shared).sum()),
        present=present,
    )


def _add(writer: RowWriter, measure: Measure, numbers: Numbers, confidence: float) -> None:
    found: Clustered | None = clustered(numbers, None)
    if found is None:
        writer.add_plain(measure, None, {"note": "no value"})
        return
    interval = find_interval(found, Scale.SLOPE, confidence=confidence)
    documents = max(part.forget[0] for seed in numbers for part in seed.values())
    writer.add_plain(
        measure,
        None,
        {
            "value": float(found.value[0]),
            "low": float(interval.low[0]),
            "high": float(interval.high[0]),
            "groups": int(documents),
            "seeds": int(found.seeds[0]),
            "note": warning_of(interval.about[0]),
        },
    )
