"""The evidence of the measures: the folders of each model of each arm, and their rows.

Of an arm's examples the *forget set* are members that the original saw and the retrained model did
not, the *retain set* members that both saw, the *holdout* non-members of the split `test`, whom
no model saw.

A text's token statistics yield three measures of its N scored tokens x_1 … x_N:

- the mean log-probability, in nats per token;
- exact memorisation: the share of tokens that are the most likely one behind the true tokens before
  them (Tirumala et al. 2022);
- extraction strength, 1 - k / N for the smallest k such that all tokens behind the first k are the
  most likely one (Carlini et al. 2021). Greedy decoding from those k tokens gives the rest word for
  word, so nothing need be generated.

A token that shares the highest logit with others also has rank 1. If not even the last token is the
most likely one, k is N and the strength is 0; a public implementation stops its loop one token
early and gives such a text 1 / N.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from analysis.arm import Arm, DetectorColumn, load_arm
from analysis.copy_bins import CopiesCell
from analysis.intervals.influence import Counts, Floats, Mask
from analysis.intervals.rows import Rows, number_groups
from detect.task_accuracy.answers import read_accuracy
from detect.token_statistics import TokenStatistics, read_statistics
from inject.examples.example import Example, read_examples

ModelName = Literal["original", "retrained", "unlearned", "base"]
NO_METHOD = "-"
"""In the column `method` for models that no method made."""


class TextMemory(NamedTuple):
    """One text under one model; all NaN if it has no scored token or the model diverged."""

    log_probability: float
    """Mean over the tokens, nats."""
    exact_memorisation: float
    """In [0, 1]."""
    extraction_strength: float
    """In [0, 1]; never above exact memorisation."""


NOTHING = TextMemory(float("nan"), float("nan"), float("nan"))


def text_memory(statistics: TokenStatistics) -> TextMemory:
    """Return the memorisation of one text, from its statistics."""
    scored = len(statistics)
    mean = float(np.mean(statistics.log_probability, dtype=np.float64)) if scored else np.nan
    # A diverged model has NaN logits, and none of them is strictly greater than another.
    if not np.isfinite(mean):
        return NOTHING
    first = statistics.rank == 1
    missed = np.flatnonzero(~first)
    prefix = int(missed[-1]) + 1 if len(missed) else 0
    return TextMemory(mean, float(first.mean()), (scored - prefix) / scored)


@dataclass(frozen=True, kw_only=True)
class ModelEvidence:
    """The folders of one model."""

    model: ModelName
    method: str = NO_METHOD
    """The method setting's label."""
    defaults: Mapping[str, str]
    """The default setting of each detector."""
    folders: Mapping[str, Path]
    """By name: `scores`, of what there is `statistics` (of tokens of the texts as they are),
    `general` (of general text, which no model was trained on), `accuracy` (answers to the
    benchmarks' questions), `condition NAME` (scores under a condition such as `4bit` or
    `paraphrase`) and `relearned STEPS` (statistics after so many optimiser steps of training on a
    part of the forget set)."""


@dataclass(frozen=True, kw_only=True)
class ArmEvidence:
    """One arm under one seed: its rows and its models."""

    axes: Mapping[str, str]
    seed: int
    examples: Path
    forget: frozenset[str]
    """Ids of the forget set."""
    retain: frozenset[str]
    """Ids of the retain set."""
    copies: Mapping[str, int]
    """Realised copies of the original by example_id; absent means 0."""
    relearnt: frozenset[str] = frozenset()
    """Ids of the part of the forget set that models were trained on again; `relearning` is read
    of the others."""
    models: tuple[ModelEvidence, ...]


class ModelKey(NamedTuple):
    """Which model of an arm."""

    model: str
    method: str


ORIGINAL = ModelKey("original", NO_METHOD)
RETRAINED = ModelKey("retrained", NO_METHOD)


Name = tuple[str, ...]
"""Of values: `score` and `condition NAME` with a detector, `text` with a field of `TextMemory`,
`general`, `correct`, `relearned` with a number of steps."""
Values = Sequence[Floats | None]
"""Of all rows, for each seed; None if a seed lacks the model or the values."""


class LoadedModel(NamedTuple):
    """One model's numbers."""

    settings: Mapping[str, str]
    """The default setting of each detector."""
    values: Mapping[Name, Floats]
    """In the order of the examples, NaN if there is none: scores of default settings, also under a
    condition; the measures of texts; 1 if a question was answered correctly, else 0; mean
    log-probability after so many steps. Of `general`: that of each general text, sorted by id."""


@dataclass(frozen=True, kw_only=True)
class SeedCohort:
    """The arms that differ only in their seed, in memory: one seed after the other, [n] each."""

    axes: Mapping[str, str]
    seeds: tuple[int, ...]
    rows: Rows
    """Of all examples, as members; `seed` is the place among the seeds."""
    masks: Mapping[str, Mask]
    """Rows of the `forget` set, with at least one copy seen by the original, of these those that
    are `detected` (on the split `test`) and those that relearning is read of (`relearned`), of the
    `retain` set, and of the `holdout`."""
    copies: Counts
    models: Sequence[Mapping[ModelKey, LoadedModel]]
    """By seed."""

    def values(self, key: ModelKey, name: Name) -> list[Floats | None]:
        """Return a model's values, by seed."""
        return [models[key].values.get(name) if key in models else None for models in self.models]

    def documents(self) -> Rows:
        """Return the documents of general text, which are the same in all seeds, as members."""
        general = [model.values.get(GENERAL) for models in self.models for model in models.values()]
        count = next((len(values) for values in general if values is not None), 0)
        seed = np.repeat(np.arange(len(self.seeds)), count)
        return Rows.of(np.tile(np.arange(count), len(self.seeds)), seed=seed)

    def chosen(self, member: str, nonmember: str = "") -> Rows:
        """Return the rows of all seeds, of which some count, against others if these are named."""
        inside = self.masks[member]
        outside = self.masks[nonmember] if nonmember else np.zeros_like(inside)
        return replace(self.rows, member=inside, nonmember=outside)

    def within(self, cells: Sequence[CopiesCell]) -> Mask:
        """Return which rows have so many copies, [cells, rows]."""
        return np.array([cell.holds(self.copies) for cell in cells], dtype=bool)

    @property
    def keys(self) -> list[ModelKey]:
        """Every model of any seed, in order of first appearance."""
        return list(dict.fromkeys(key for models in self.models for key in models))

    @property
    def datasets(self) -> list[str]:
        """Datasets that have a row of the forget set."""
        return list(dict.fromkeys(self.rows.dataset[self.masks["forget"]].tolist()))


GENERAL, CORRECT = ("general",), ("correct",)


def load_cohort(arms: Sequence[ArmEvidence]) -> SeedCohort:
    """Read arms that differ only in their seed.

    Raises:
        InputError: from the readers.
    """
    pools = [read_examples(arm.examples) for arm in arms]
    examples = [example for pool in pools for example in pool]
    masks = [_masks(arm, pool) for arm, pool in zip(arms, pools, strict=True)]
    dataset, group = ([getattr(each, name) for each in examples] for name in ("dataset", "group"))
    seed = np.repeat(np.arange(len(arms)), [len(pool) for pool in pools])
    rows = Rows.of(number_groups(dataset, group), seed=seed)
    return SeedCohort(
        axes=arms[0].axes,
        seeds=tuple(arm.seed for arm in arms),
        rows=replace(rows, dataset=np.array(dataset, dtype=object)),
        masks={name: np.concatenate([own[name] for own in masks]) for name in masks[0]},
        copies=np.concatenate([_copies(arm, pool) for arm, pool in zip(arms, pools, strict=True)]),
        models=[
            {ModelKey(model.model, model.method): _model(arm, model, pool) for model in arm.models}
            for arm, pool in zip(arms, pools, strict=True)
        ],
    )


def _copies(arm: ArmEvidence, pool: Sequence[Example]) -> Counts:
    return np.array([arm.copies.get(example.example_id, 0) for example in pool], dtype=np.int64)


def _masks(arm: ArmEvidence, pool: Sequence[Example]) -> dict[str, Mask]:
    forget, retain, again = (
        np.array([example.example_id in ids for example in pool], dtype=bool)
        for ids in (arm.forget, arm.retain, arm.relearnt)
    )
    test = np.array([example.split == "test" for example in pool], dtype=bool)
    outside = np.array([example.side == "nonmember" for example in pool], dtype=bool)
    # A member that drew no copy was never learnt, so there is nothing to forget.
    seen = _copies(arm, pool) > 0
    return {
        "forget": forget & seen,
        "detected": forget & seen & test,
        "relearned": forget & seen & ~again,
        "retain": retain & seen,
        "holdout": outside & test,
    }


def _model(arm: ArmEvidence, evidence: ModelEvidence, pool: Sequence[Example]) -> LoadedModel:
    ids = [example.example_id for example in pool]
    values: dict[Name, Floats] = {}
    settings: dict[str, str] = {}
    for name, folder in evidence.folders.items():
        kind, _, steps = name.partition(" ")
        if kind in ("scores", "condition"):
            scores = _default_scores(arm, evidence, folder, pool)
            if name == "scores":
                settings = {column.detector: column.setting for column in scores}
            read = "score" if name == "scores" else name
            values |= {(read, column.detector): own for column, own in scores.items()}
        elif name == "statistics":
            memories = _memories(folder, ids)
            values |= {("text", field): column for field, column in memories.items()}
        elif name == "general":
            values[GENERAL] = _memories(folder)["log_probability"]
        elif kind == "relearned":
            values[kind, steps] = _memories(folder, ids)["log_probability"]
        else:
            right = {row.example_id: row.correct_plain for row in read_accuracy(folder)}
            values[CORRECT] = np.array([right.get(example) for example in ids], float)
    return LoadedModel(settings, values)


def _default_scores(
    arm: ArmEvidence, evidence: ModelEvidence, folder: Path, pool: Sequence[Example]
) -> dict[DetectorColumn, Floats]:
    """Return the scores of each detector's default."""
    default_arm = Arm(
        axes=arm.axes,
        seed=arm.seed,
        model=evidence.model,
        scores=folder,
        examples=arm.examples,
        copies=None,
        defaults=evidence.defaults,
    )
    loaded = load_arm(default_arm, pool)
    columns = [loaded.default(name) for name in loaded.detectors]
    return {column: loaded.scores[:, loaded.index[column]] for column in columns}


def _memories(folder: Path, ids: Sequence[str] | None = None) -> dict[str, Floats]:
    """Return the memorisation of some texts, or of all, by the fields of `TextMemory`."""
    table = read_statistics(folder)
    names = sorted(table) if ids is None else ids
    memories = np.zeros((len(TextMemory._fields), len(names)))
    for at, name in enumerate(names):
        memories[:, at] = text_memory(table[name]) if name in table else NOTHING
    return dict(zip(TextMemory._fields, memories, strict=True))
