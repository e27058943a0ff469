"""What the measures are drawn from: the folders of each model of each arm, and their rows.

Of an arm's examples the *forget set* are members that the original saw and the retrained model did
not, the *retain set* members that both saw, the *holdout* non-members of the split `test`, whom
no model saw.

A text's token statistics say three things of its N scored tokens x_1 … x_N:

- the mean log-probability, in nats a token;
- exact memorisation: the share of tokens that are the most likely one behind the true tokens before
  them (Tirumala et al. 2022);
- extraction strength, 1 - k / N for the smallest k such that all tokens behind the first k are the
  most likely one (Carlini et al. 2021). Greedy decoding from those k tokens gives the rest word for
  word, so nothing need be generated.

A token that shares the highest logit with others has rank 1, too. Where not even the last token is
the most likely one k is N and the strength is 0; a public implementation stops its loop one token
early and gives such a text 1 / N.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.arm import Arm, LoadedArm, join_arm
from analysis.copy_bins import CopiesCell
from analysis.intervals import rows as interval_rows
from analysis.metrics import Floats
from detect.scores.table import read_scores
from detect.task_accuracy.answers import read_accuracy
from detect.token_statistics import TokenStatistics, read_statistics
from inject.examples.example import Example, read_examples

Mask = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]
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
    """Return what one text's statistics say."""
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
    scores: Path
    """`detect.scores.table.read_scores`."""
    defaults: Mapping[str, str]
    """The default setting of each detector."""
    statistics: Path | None = None
    """Token statistics of the texts as they are."""
    general: Path | None = None
    """Token statistics of general text, which no model was trained on."""
    accuracy: Path | None = None
    """Answers to the benchmarks' questions."""
    conditions: Mapping[str, Path] = field(default_factory=dict)
    """Scores under a condition, such as `4bit` or `paraphrase`, by its name."""
    relearning: Mapping[int, Path] = field(default_factory=dict)
    """Token statistics after so many optimiser steps of training on a part of the forget set."""


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


@dataclass(frozen=True, kw_only=True)
class Rows:
    """An arm's examples, [n] each."""

    seed: int
    dataset: npt.NDArray[np.object_]
    group: Counts
    """Number within its dataset; one group has one number in every seed."""
    forget: Mask
    """Of the forget set, with at least one copy seen by the original."""
    relearn: Mask
    """Of those, the ones that relearning is read of."""
    retain: Mask
    holdout: Mask
    test: Mask
    copies: Counts


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """One model's numbers in the order of the examples, [n] each; NaN if there is none."""

    settings: Mapping[str, str]
    """Of each detector."""
    scores: Mapping[str, Floats]
    """By detector, its default setting."""
    conditions: Mapping[str, Mapping[str, Floats]]
    """The same by condition."""
    texts: Mapping[str, Floats] | None
    """By the fields of `TextMemory`; None without token statistics."""
    general: Floats | None
    """Mean log-probability of each general text, sorted by their ids."""
    correct: Floats | None
    """1 where the question was answered right, 0 where wrong."""
    relearning: Mapping[int, Floats]
    """Mean log-probabilities by step."""


RowChoice = Callable[[Rows], Mask]
Values = Sequence[Floats | None]
"""Of all rows, for each seed; None if a seed lacks the model or detector."""


@dataclass(frozen=True, kw_only=True)
class Cohort:
    """The arms that differ in nothing but their seed, in memory."""

    axes: Mapping[str, str]
    rows: Sequence[Rows]
    """One a seed."""
    models: Sequence[Mapping[ModelKey, LoadedModel]]
    """By seed, in the same order."""

    @cached_property
    def copies(self) -> Counts:
        """Realised copies of all rows."""
        return np.concatenate([rows.copies for rows in self.rows])

    @property
    def documents(self) -> interval_rows.Rows:
        """The documents of general text, which are the same in all seeds, as members."""
        of_models = [one.general for models in self.models for one in models.values()]
        count = next((len(one) for one in of_models if one is not None), 0)
        group = np.tile(np.arange(count), len(self.rows))
        return interval_rows.Rows.of(group, seed=np.repeat(np.arange(len(self.rows)), count))

    def chosen(self, member: RowChoice, nonmember: RowChoice | None = None) -> interval_rows.Rows:
        """Return the rows of all seeds, of which some count, against others."""
        inside = np.concatenate([member(rows) for rows in self.rows])
        outside = np.zeros_like(inside)
        if nonmember is not None:
            outside = np.concatenate([nonmember(rows) for rows in self.rows])
        return interval_rows.Rows(
            seed=np.repeat(np.arange(len(self.rows)), [len(rows.test) for rows in self.rows]),
            dataset=np.concatenate([rows.dataset for rows in self.rows]),
            group=np.concatenate([rows.group for rows in self.rows]),
            member=inside,
            nonmember=outside,
        )

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
        names = [name for rows in self.rows for name in rows.dataset[rows.forget].tolist()]
        return list(dict.fromkeys(names))


def cohorts_of(arms: Sequence[ArmEvidence]) -> list[list[ArmEvidence]]:
    """Gather arms that differ only in their seed, in order of first appearance, seeds sorted."""
    cohorts: dict[tuple[tuple[str, str], ...], list[ArmEvidence]] = {}
    for arm in arms:
        cohorts.setdefault(tuple(arm.axes.items()), []).append(arm)
    return [sorted(same, key=lambda arm: arm.seed) for same in cohorts.values()]


def load_cohort(arms: Sequence[ArmEvidence]) -> Cohort:
    """Read arms that differ only in their seed.

    Raises:
        InputError: from the readers.
    """
    numbers: dict[str, dict[str, int]] = {}
    rows, models = [], []
    for arm in arms:
        examples = read_examples(arm.examples)
        rows.append(_rows(arm, examples, numbers))
        models.append(
            {ModelKey(one.model, one.method): _model(arm, one, examples) for one in arm.models}
        )
    return Cohort(
        axes=arms[0].axes,
        rows=rows,
        models=models,
    )


def _rows(
    arm: ArmEvidence, examples: Sequence[Example], numbers: dict[str, dict[str, int]]
) -> Rows:
    group = np.zeros(len(examples), dtype=np.int64)
    for at, one in enumerate(examples):
        known = numbers.setdefault(one.dataset, {})
        group[at] = known.setdefault(one.group, len(known))
    copies = np.array([arm.copies.get(one.example_id, 0) for one in examples], dtype=np.int64)
    test = np.array([one.split == "test" for one in examples], dtype=bool)
    outside = np.array([one.side == "nonmember" for one in examples], dtype=bool)
    forget = np.array([one.example_id in arm.forget for one in examples], dtype=bool)
    retain = np.array([one.example_id in arm.retain for one in examples], dtype=bool)
    again = np.array([one.example_id in arm.relearnt for one in examples], dtype=bool)
    # A member that drew no copy was never learnt, so there is nothing to forget.
    forget &= copies > 0
    return Rows(
        seed=arm.seed,
        dataset=np.array([one.dataset for one in examples], dtype=object),
        group=group,
        forget=forget,
        relearn=forget & ~again,
        retain=retain & (copies > 0),
        holdout=outside & test,
        test=test,
        copies=copies,
    )


def _model(arm: ArmEvidence, one: ModelEvidence, examples: Sequence[Example]) -> LoadedModel:
    ids = [example.example_id for example in examples]
    settings, scores = _default_scores(arm, one, one.scores, examples)
    texts = None if one.statistics is None else _memories(one.statistics, ids)
    return LoadedModel(
        settings=settings,
        scores=scores,
        conditions={
            name: _default_scores(arm, one, folder, examples)[1]
            for name, folder in one.conditions.items()
        },
        texts=texts,
        general=None if one.general is None else _memories(one.general)["log_probability"],
        correct=None if one.accuracy is None else _correct(one.accuracy, ids),
        relearning={
            step: _memories(folder, ids)["log_probability"]
            for step, folder in sorted(one.relearning.items())
        },
    )


def _default_scores(
    arm: ArmEvidence, one: ModelEvidence, folder: Path, examples: Sequence[Example]
) -> tuple[dict[str, str], dict[str, Floats]]:
    """Return the setting and the scores of each detector's default."""
    table = read_scores(
        folder,
        columns=["example_id", "detector", "setting", "score", "reason"],
        repeated=["example_id", "detector", "setting"],
    )
    asked = Arm(
        axes=arm.axes,
        seed=arm.seed,
        model=one.model,
        scores=folder,
        examples=arm.examples,
        copies=None,
        defaults=one.defaults,
    )
    loaded: LoadedArm = join_arm(asked, examples, table)
    columns = [loaded.default(name) for name in loaded.detectors]
    return (
        {column.detector: column.setting for column in columns},
        {column.detector: loaded.scores[:, loaded.index[column]] for column in columns},
    )


def _memories(folder: Path, ids: Sequence[str] | None = None) -> dict[str, Floats]:
    """Return what the statistics say of some texts, or of all, by the fields of `TextMemory`."""
    table = read_statistics(folder)
    names = sorted(table) if ids is None else ids
    found = np.zeros((len(TextMemory._fields), len(names)))
    for at, name in enumerate(names):
        found[:, at] = text_memory(table[name]) if name in table else NOTHING
    return dict(zip(TextMemory._fields, found, strict=True))


def _correct(folder: Path, ids: Sequence[str]) -> Floats:
    found = {
        row.example_id: float(row.correct_plain)
        for row in read_accuracy(folder)
        if row.correct_plain is not None
    }
    return np.array([found.get(name, np.nan) for name in ids])
