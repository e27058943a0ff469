"""An arm's scores, read for analysis: one model under one setting of the swept axes and seed.

`Arm` names folders; `load_arm` reads them into one matrix of scores, with one row per example
and one column per detector setting. Scores are joined by example_id, and examples without any
score row count as unscored. Cost: about 0.1 s for 2,400 examples and 250 settings.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.intervals.influence import Counts, Floats, Mask
from detect.scores.table import read_scores
from inject.errors import InputError, did_you_mean
from inject.examples.example import Example, read_examples

Names = npt.NDArray[np.object_]
MODEL_FREE = frozenset({"blind"})
"""Detectors that never look at a model: a control, not a contestant."""
UPPER_BOUNDS = frozenset({"lira", "rmia"})
"""Detectors that know more than anybody who audits a model: their shadow models are trained as the
target was, on halves of the very texts that are scored. A measure of what can be had."""
NOT_SCORED = "no score row for this example"
FILE = ""
"""The dataset of all rows of a user's file."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One model's scores on one pool of examples, with the ground truth."""

    axes: Mapping[str, str]
    """Value of each swept axis by dotted key; an arm that stands for all values names none."""
    seed: int
    """The experiment's seed of this arm."""
    model: str
    """`contaminated`, `base`, `twin`, …"""
    scores: Path
    """Folder of the scores (`detect.scores.table.read_scores`)."""
    examples: Path
    """Folder of the examples (`inject.examples.example.read_examples`)."""
    copies: Mapping[str, int] | None
    """Realised copies by example_id (absent means 0); None if copies have no meaning, as
    for the base model: then every member counts in `all`, and there is no row by copies."""
    defaults: Mapping[str, str]
    """The default setting of each detector, as written in the column `setting`."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """What the copies of each example carried, by example_id: `whole`, `question`, …, or `mixed`
    if its copies differ; empty if all copies carried the whole example."""
    training: Path | None = None
    """Folder of the trained model: the log of its training, and its exposures (what it saw, and
    when)."""
    fixed_levels: bool = False
    """Whether each number of copies was given to as many groups of a dataset as another
    (`copies.levels`): group counts are then fixed, and each copy count is a separate stratum."""
    further: Mapping[str, Path] = field(default_factory=dict)
    """Folders that questions read besides, by name (`analysis.dataset_detectors`,
    `analysis.correction`)."""


class DetectorColumn(NamedTuple):
    """One detector with one setting."""

    detector: str
    setting: str


Axes = tuple[tuple[str, str], ...]
"""Dotted keys and the short texts of their values."""


class Cohort(NamedTuple):
    """The arms that differ in nothing but their seed."""

    axes: Axes
    model: str

    def label(self) -> str:
        """Return the values of the axes in words, without the model; empty for no axes."""
        return arm_label(self.axes)

    def columns(self) -> dict[str, str]:
        """Return the values of the axes by their columns in tables."""
        return {axis_column(key): value for key, value in self.axes}

    def place(self) -> dict[str, str]:
        """Return the columns that name it in tables: the axes and the model."""
        return {**self.columns(), "model": self.model}


@dataclass(frozen=True, kw_only=True)
class LoadedArm:
    """An arm in memory. Arrays run over the examples, in the order of their file."""

    arm: Arm
    examples: Sequence[Example]
    columns: Sequence[DetectorColumn]
    """Detector and setting of each column, in the order of the scores file."""
    scores: Floats
    """[n_examples, n_columns]; NaN if the detector cannot score."""
    reasons: Mapping[tuple[int, DetectorColumn], str]
    """Why a score is NaN, by example index and column."""
    member: Mask
    test: Mask
    dataset: Names
    group: Names
    copies: Counts
    """Realised copies; 0 for non-members. One for members if copies have no meaning."""
    variant: Names
    """The variant of each member's copies; empty if none is recorded."""

    @cached_property
    def index(self) -> dict[DetectorColumn, int]:
        """The place of each column."""
        return {column: at for at, column in enumerate(self.columns)}

    @property
    def detectors(self) -> list[str]:
        """Detectors in the order of the scores file."""
        return list(dict.fromkeys(column.detector for column in self.columns))

    def grid(self, detector: str) -> list[DetectorColumn]:
        """Return the settings of a detector: the default one first, then as in the file."""
        columns = [column for column in self.columns if column.detector == detector]
        return sorted(columns, key=lambda column: column != self.default(detector))

    def default(self, detector: str) -> DetectorColumn:
        """Return the default setting of a detector."""
        return DetectorColumn(detector, self.arm.defaults[detector])


def cohorts(arms: Sequence[Arm]) -> dict[Cohort, list[Arm]]:
    """Gather arms that differ only in their seed, in order of first appearance, seeds sorted.

    Every cohort names every axis of any arm; an axis an arm does not name is empty.

    Raises:
        InputError: when two arms agree in everything, seed included.
    """
    by_cohort = gather_seeds(arms, lambda arm: arm.model)
    return {Cohort(axes, model): cohort_arms for (axes, model), cohort_arms in by_cohort.items()}


def gather_seeds(
    arms: Sequence[Any], kind: Callable[[Any], Any] = lambda _: ""
) -> dict[tuple[Axes, Any], list[Any]]:
    """Gather what has `axes` and a `seed` by its axes and kind; as `cohorts`."""
    keys = axis_names(arms)
    gathered: dict[tuple[Axes, Any], list[Any]] = {}
    for arm in arms:
        axes = tuple((key, arm.axes.get(key, "")) for key in keys)
        gathered.setdefault((axes, kind(arm)), []).append(arm)
    for (axes, arm_kind), seed_arms in gathered.items():
        seed_arms.sort(key=lambda arm: arm.seed)
        if len({arm.seed for arm in seed_arms}) < len(seed_arms):
            place = " · ".join(part for part in (str(arm_kind), arm_label(axes)) if part)
            raise InputError("two arms share their axes and their seed", where=place or "arms")
    return gathered


def axis_names(arms: Sequence[Any]) -> list[str]:
    """Return every swept axis of the arms, in order of first appearance."""
    return list(dict.fromkeys(key for arm in arms for key in arm.axes))


_TABLE_COLUMNS = """
    seed model row example_id dataset detector setting selection copies variant score reason
    versus versus_setting reference metric value low high n_members n_nonmembers n_seeds
"""
_RESERVED_COLUMNS = frozenset(_TABLE_COLUMNS.split())


def axis_column(key: str) -> str:
    """Return the column of an axis: its dotted key, or `sweep.KEY` where a table's own column
    has that name (sweeping over `copies` gives `sweep.copies`)."""
    return f"sweep.{key}" if key in _RESERVED_COLUMNS else key


def short_axis(key: str) -> str:
    """Return the last part of a dotted key, as shown to readers: `train.lr` is `lr`."""
    return key.rsplit(".", 1)[-1]


def arm_label(axes: Iterable[tuple[str, str]], seed: int | None = None) -> str:
    """Return the label of an arm, the same everywhere: `lr 0.0015, copies levels=1-4-8, seed 0`.

    An axis goes by the last part of its key, or by the whole where two end alike; one without a
    value is left out.
    """
    pairs = list(axes)
    ends = Counter(["seed", *(short_axis(key) for key, _ in pairs)])
    parts = [
        f"{short_axis(key) if ends[short_axis(key)] == 1 else key} {value}"
        for key, value in pairs
        if value
    ]
    return ", ".join([*parts, *([] if seed is None else [f"seed {seed}"])])


_ONLY_ARM = "contaminated"
"""The name of the arm in a run without a sweep."""


def find_arm(text: str, labels: Collection[str], *, place: str) -> str:
    """Return the label that a user's text names: its parts in any order, or an older notation.

    Older ones are `train.lr=0.0015,copies=levels=1-4-8,seed=0` and `retrained-0.5-lr=…`. What names
    an arm of all seeds names that of one if there is one, and the other way round.

    Args:
        text: what was given.
        labels: of the arms, by `arm_label`.
        place: what to name in an error.

    Raises:
        InputError: no arm or several arms match; lists all.
    """
    text_parts = _label_parts(text)
    parts = {label: _label_parts(label) for label in labels}
    matches = [label for label in labels if label == text]
    matches = matches or [label for label in labels if _matches_parts(parts[label], text_parts)]
    matches = matches or [label for label in labels if _alike_but_seed(parts[label], text_parts)]
    if len(matches) == 1:
        return matches[0]
    problem = f"{text!r} names {len(matches)} arms"
    if not matches:
        problem = f"no arm is called {text!r}.{did_you_mean(text, labels)}"
    raise InputError(problem, where=place, allowed=", ".join(map(repr, matches or labels)))


def _label_parts(text: str) -> list[str]:
    """Return the parts of an arm's name, each as `AXIS VALUE`; the only arm of a run has none."""
    parts = re.sub(r"^(\w+-.*?)-(?=[A-Za-z_][\w.]*=)", r"\1,", text).split(",")
    named = [re.sub("[= ]+", " ", part.strip(), count=1) for part in parts]
    return [part for part in named if part != _ONLY_ARM]


def _alike_but_seed(parts: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether only one of them has a seed, and the rest is alike."""
    seedless = [[part for part in label if part[:5] != "seed "] for label in (parts, others)]
    seeds = len(parts) - len(seedless[0]), len(others) - len(seedless[1])
    return 0 in seeds and sum(seeds) == 1 and _matches_parts(*seedless)


def _matches_parts(parts: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether each part is among the others, its axis in full or by its end."""
    return len(parts) == len(others) and all(
        any(
            f".{part}".endswith(f".{other}") or f".{other}".endswith(f".{part}") for other in others
        )
        for part in parts
    )


def load_arm(arm: Arm, examples: Sequence[Example] | None = None) -> LoadedArm:
    """Read an arm's examples, unless they are known, and scores.

    Raises:
        InputError: for scores of unknown examples, two scores for one example and setting,
            a detector without a default setting, or a default that was not scored.
    """
    table = read_scores(
        arm.scores,
        columns=["example_id", "detector", "setting", "score", "reason"],
        repeated=["example_id", "detector", "setting"],
    )
    return join_arm(arm, examples or read_examples(arm.examples), table)


def join_arm(arm: Arm, examples: Sequence[Example], table: pa.Table) -> LoadedArm:
    """Join an arm's examples and scores.

    Args:
        arm, examples: in the order wanted.
        table: example_id, detector and setting (each text kept once), score, reason.

    Raises:
        InputError: as `load_arm`.
    """
    position = {example.example_id: index for index, example in enumerate(examples)}
    rows = _positions(table["example_id"], position, arm.scores)
    columns, codes = _columns(table)
    _check_defaults(columns, arm)
    scores = np.full((len(examples), len(columns)), np.nan)
    seen = np.zeros(scores.shape, dtype=bool)
    if len(np.unique(rows * max(1, len(columns)) + codes)) < len(rows):
        raise InputError("an example has two scores for one setting", where=str(arm.scores))
    values = table["score"].to_numpy()
    scores[rows, codes] = values
    seen[rows, codes] = True
    reasons = {(int(row), columns[code]): NOT_SCORED for row, code in np.argwhere(~seen)}
    blank = np.flatnonzero(np.isnan(values))
    for at, reason in zip(blank, table["reason"].take(pa.array(blank)).to_pylist(), strict=True):
        reasons[int(rows[at]), columns[codes[at]]] = reason or "no reason given"
    member = np.array([example.side == "member" for example in examples], dtype=bool)
    counts = [1 if arm.copies is None else arm.copies.get(e.example_id, 0) for e in examples]
    carried = [arm.variants.get(e.example_id, "") if e.side == "member" else "" for e in examples]
    return LoadedArm(
        arm=arm,
        examples=examples,
        columns=columns,
        scores=scores,
        reasons=reasons,
        member=member,
        test=np.array([example.split == "test" for example in examples], dtype=bool),
        dataset=np.array([example.dataset for example in examples], dtype=object),
        group=np.array([f"{e.dataset}\0{e.group}" for e in examples], dtype=object),
        copies=np.where(member, np.array(counts, dtype=np.int64), 0),
        variant=np.array(carried, dtype=object),
    )


def file_arm(
    scores: pa.Table,
    rows: int,
    labels: Sequence[bool] | None,
    groups: Sequence[str | None] | None,
) -> LoadedArm:
    """Return a user's file as an arm of one dataset, all of whose rows are of the split `test`.

    Args:
        scores, rows: row, detector, setting, score; and how many rows there are.
        labels: True for members; None if they are unknown.
        groups: of each row; one without is a group of its own.
    """
    texts = [scores[name].to_pylist() for name in ("detector", "setting", "row", "score")]
    columns = list(dict.fromkeys(map(DetectorColumn, texts[0], texts[1])))
    index = {column: at for at, column in enumerate(columns)}
    values = np.full((rows, len(columns)), np.nan)
    for detector, setting, row, score in zip(*texts, strict=True):
        values[row, index[DetectorColumn(detector, setting)]] = np.nan if score is None else score
    member = np.zeros(rows, np.bool_) if labels is None else np.array(labels, np.bool_)
    named = [None] * rows if groups is None else groups
    names = [f"row {at}" if name is None else f"group {name}" for at, name in enumerate(named)]
    place = Path(FILE)
    return LoadedArm(
        arm=Arm(axes={}, seed=0, model="", scores=place, examples=place, copies=None, defaults={}),
        examples=(),
        columns=columns,
        scores=values,
        reasons={},
        member=member,
        test=np.ones(rows, np.bool_),
        dataset=np.full(rows, FILE, dtype=object),
        group=np.array(names, dtype=object),
        copies=member.astype(np.int64),
        variant=np.full(rows, "", dtype=object),
    )


def _positions(ids: pa.ChunkedArray, position: Mapping[str, int], path: Path) -> Counts:
    """Return each score row's example index."""
    encoded = ids.combine_chunks()
    names = encoded.dictionary.to_pylist()
    if unknown := [name for name in names if name not in position]:
        raise InputError(
            f"{len(unknown)} scored examples are not among the examples, the first is "
            f"{unknown[0]!r}",
            where=str(path),
            hint="Were these scores made for another pool of examples?",
        )
    at = np.array([position[name] for name in names], dtype=np.int64)
    return at[encoded.indices.to_numpy()] if len(names) else np.zeros(0, dtype=np.int64)


def _columns(table: pa.Table) -> tuple[list[DetectorColumn], Counts]:
    """Return the settings in order of first appearance, and each row's among them."""
    detector = table["detector"].combine_chunks()
    setting = table["setting"].combine_chunks()
    n_settings = max(1, len(setting.dictionary))
    pair = detector.indices.to_numpy().astype(np.int64) * n_settings + setting.indices.to_numpy()
    pairs, first, inverse = np.unique(pair, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    names, settings = detector.dictionary.to_pylist(), setting.dictionary.to_pylist()
    places = [divmod(pairs[at], n_settings) for at in order]
    return [DetectorColumn(names[name], settings[place]) for name, place in places], rank[inverse]


def _check_defaults(columns: Sequence[DetectorColumn], arm: Arm) -> None:
    for detector in dict.fromkeys(column.detector for column in columns):
        if detector not in arm.defaults:
            raise InputError(f"no default setting is known for {detector!r}", where=str(arm.scores))
        if DetectorColumn(detector, arm.defaults[detector]) not in columns:
            raise InputError(
                f"the default setting {arm.defaults[detector]!r} of {detector!r} was not scored",
                where=str(arm.scores),
                allowed=", ".join(repr(c.setting) for c in columns if c.detector == detector),
            )
