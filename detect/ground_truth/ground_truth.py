"""The ground truth of a run: all exposures, and every model's statistics of every text.

It contains everything to evaluate a detector, but no model. A `Description` names the artifacts of
each model, whose tables are in the store of a run (`spikein.api.ground_truth`) or, without
protected texts, in a bundle (`detect.ground_truth.bundle`): the readers of the evidence read both.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from detect.detector_settings import needs_of, parse_detectors
from detect.evidence import Evidence
from detect.evidence.frequency import Frequency
from detect.evidence.membership import Shadows, Sides
from detect.evidence.needs import Need, Work
from detect.evidence.views import Reference, View
from detect.guarded_call import read_only
from detect.scores.table import read_scores
from detect.token_frequency import load_frequency
from inject.errors import InputError
from inject.examples.example import Example, read_examples
from inject.settings import Settings
from inject.stream.exposures import read_exposures, seen_copy_counts, seen_variants

CONTAMINATED = "contaminated"
BASE = "base"
TWIN = "twin"
RETRAINED = "retrained"

_VIEW = "view-"
_REPEATED = ("example_id", "detector", "setting")
"""Columns of the scores with few different texts."""
T = TypeVar("T")


class Provenance(Settings):
    """Origin of a ground truth."""

    version: str
    """Version of the spikein that produced it."""
    run: str
    """The run's identity."""
    finished: str
    """When the run's last step was built, UTC."""
    code: str
    """Version of the spikein that wrote the scores; empty if unknown."""
    artifacts: tuple[str, ...] = ()
    """Its source, as `kind/label-digest12`."""


class ModelTables(Settings):
    """One model and the artifacts with its tables, as `kind/label-digest12`."""

    axes: dict[str, str]
    seed: int
    model: str
    fixed_levels: bool
    defaults: dict[str, str]
    detectors: tuple[str, ...]
    """All scored settings, as `NAME:SETTING`."""
    scores: str
    examples: str
    trained: str | None
    """The model's artifact, from which only the exposures are read; None if it saw nothing by
    design."""
    inputs: dict[str, str]
    """Sources of the scores, by the names of the scores' inputs."""
    left_out: tuple[str, ...] = ()
    """Its parts that only the run has (`Need.part`)."""

    @property
    def artifacts(self) -> set[str]:
        """All of its artifacts."""
        trained = {self.trained} if self.trained else set()
        return {self.scores, self.examples, *trained, *self.inputs.values()}


class Description(Settings):
    """Description of a ground truth."""

    name: str
    analysis: dict[str, Any]
    experiment: str
    provenance: Provenance
    models: tuple[ModelTables, ...]
    unlabelled: tuple[ModelTables, ...] = ()
    """Models of a benchmark whose labels are withheld (`detect.ground_truth.benchmark`)."""

    @property
    def artifacts(self) -> set[str]:
        """The artifacts of all models."""
        return set().union(*(model.artifacts for model in (*self.models, *self.unlabelled)))


@dataclass(frozen=True, kw_only=True)
class ScoredModel:
    """One model, its statistics of each row, and the stored scores of all detectors."""

    axes: Mapping[str, str]
    """Values of the swept keys; a model that represents all values of a key does not name it."""
    seed: int
    model: str
    """`contaminated`; `base`, `twin` (the clean twin) or `retrained`."""
    rows: Sequence[Example]
    """Withheld rows have blanks instead of their text, one per character."""
    evidence: Evidence
    """One entry per row, in the order of `rows`; for withheld rows, texts and continuations are
    None, and their token statistics have no `ids`, `top_id` and `offsets`."""
    scores: pa.Table
    """Of every detector under every setting: example_id, detector, setting, score, reason."""
    defaults: Mapping[str, str]
    """The default setting of each detector."""
    copies: Mapping[str, int] | None
    """Number of copies seen whole, by example_id (absent: none); None if the model saw none by
    design."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """Content of each example's copies, if it differs."""
    fixed_levels: bool = False
    """Whether each number of copies was assigned to equally many groups of a dataset: determines
    the intervals."""
    exposures: pa.Table | None = None
    """When each copy was seen (`exposures.parquet`); None if the model saw none by design."""
    left_out: tuple[str, ...] = ()
    """Parts of the evidence that the run has and the bundle does not (`Need.part`)."""

    @property
    def withheld(self) -> npt.NDArray[np.bool_]:
        """The rows whose texts are withheld."""
        return np.array([text is None for text in self.evidence.texts], dtype=np.bool_)

    @property
    def protected(self) -> bool:
        """Whether the text of a row must not be revealed."""
        return any(row.protected for row in self.rows)


@dataclass(frozen=True, kw_only=True)
class GroundTruth:
    """All data to evaluate detectors."""

    name: str
    """Name of the experiment."""
    models: tuple[ScoredModel, ...]
    analysis: Mapping[str, Any]
    """How the run turned scores into metrics (`analysis:` of the experiment file)."""
    experiment: str
    """The experiment as run, as YAML."""
    provenance: Provenance
    content: str = ""
    """The digest that names the bundle's content; empty if there is no bundle."""
    unlabelled: tuple[ScoredModel, ...] = ()
    """Models of a benchmark whose labels are withheld: no stored scores and copies, all rows as
    non-members of the split `test`, and no `members` in their evidence."""

    @property
    def axes(self) -> tuple[str, ...]:
        """The swept keys."""
        return tuple(dict.fromkeys(key for model in self.models for key in model.axes))


def read_ground_truth(
    described: Description, root: Path, *, withheld: bool = False, content: str = ""
) -> GroundTruth:
    """Read a ground truth.

    Args:
        described: its description.
        root: the folder of the artifacts, whose files are checked already.
        withheld: protected texts are absent.
        content: the digest of the bundle.
    """
    shared: dict[Any, Any] = {}
    return GroundTruth(
        name=described.name,
        models=tuple(_model(model, root, shared, withheld) for model in described.models),
        analysis=described.analysis,
        experiment=described.experiment,
        provenance=described.provenance,
        content=content,
        unlabelled=tuple(
            replace(model, evidence=replace(model.evidence, members=None))
            for tables in described.unlabelled
            for model in (_model(tables, root, shared, withheld),)
        ),
    )


@dataclass(kw_only=True)
class _SharedWork(Work):
    """Inputs while they become evidence; shared inputs of several models are read once."""

    shared: dict[Any, Any]

    def statistics(self, name: str, rows: Sequence[Example] | None = None) -> Any:
        examples = self.rows if rows is None else rows
        key = (self.inputs[name], tuple(row.example_id for row in examples))
        read = super().statistics
        return _read_once(self.shared, key, lambda: read_only(tuple(read(name, rows))))


def _read_once(shared: dict[Any, Any], key: Any, read: Callable[[], T]) -> T:
    if key not in shared:
        shared[key] = read()
    return shared[key]


def _model(tables: ModelTables, root: Path, shared: dict[Any, Any], withheld: bool) -> ScoredModel:
    folder = root / tables.examples
    rows = _read_once(shared, folder, lambda: tuple(read_examples(folder)))
    hidden = [withheld and row.protected for row in rows]
    exposures = None if tables.trained is None else read_exposures(root / tables.trained)
    inputs = {name: root / artifact for name, artifact in tables.inputs.items()}
    work = _SharedWork(inputs=inputs, rows=rows, shared=shared)
    return ScoredModel(
        axes=tables.axes,
        seed=tables.seed,
        model=tables.model,
        rows=rows,
        evidence=read_only(_withhold_texts(_evidence(tables, work), rows, hidden)),
        scores=read_scores(
            root / tables.scores, columns=[*_REPEATED, "score", "reason"], repeated=_REPEATED
        ),
        defaults=tables.defaults,
        copies=None if exposures is None else seen_copy_counts(exposures),
        variants={} if exposures is None else seen_variants(exposures),
        fixed_levels=tables.fixed_levels,
        exposures=exposures,
        left_out=tables.left_out,
    )


def _evidence(tables: ModelTables, work: _SharedWork) -> Evidence:
    """Return all evidence that the stored detectors received."""
    for kind, needs in _needs(tables).items():
        if kind is Frequency:
            folder = work.inputs["frequency"]
            read = partial(load_frequency, folder)
            work.fields["frequency"] = _read_once(work.shared, folder, read)
            continue
        # A detector's needs may have changed since, or a plug-in of the run may have had more.
        with suppress(KeyError):
            kind.read(needs, work)
    return work.evidence()


def _needs(tables: ModelTables) -> dict[type[Need], list[Need]]:
    """Return the sources of the stored scores, by kind."""
    needs: list[Need] = [
        View(name[len(_VIEW) :]) for name in tables.inputs if name.startswith(_VIEW)
    ]
    needs.append(Sides())
    needs += [Reference()] if "reference" in tables.inputs else []
    needs += [Frequency()] if "frequency" in tables.inputs else []
    needs += [Shadows()] if any(name.endswith("-shadow") for name in tables.inputs) else []
    kinds = {type(need) for need in needs}
    for text in tables.detectors:
        name, _, parameters = text.partition(":")
        # A kind from a plug-in, or from another version, is unknown.
        with suppress(InputError):
            parsed = parse_detectors(name if parameters == "-" else text)
            needs += [need for need in needs_of(parsed) if type(need) not in kinds]
    by_kind: dict[type[Need], list[Need]] = {}
    for need in dict.fromkeys(needs):
        if need.part not in tables.left_out:
            by_kind.setdefault(type(need), []).append(need)
    return by_kind


def _withhold_texts(
    evidence: Evidence, rows: Sequence[Example], withheld: Sequence[bool]
) -> Evidence:
    """Return evidence with None for withheld texts, held-out rows of the same datasets included."""
    if not any(withheld):
        return evidence
    visible_datasets = {
        row.dataset for row, is_hidden in zip(rows, withheld, strict=True) if not is_hidden
    }
    held_out = evidence.held_out
    if held_out is not None:
        hidden = [name not in visible_datasets for name in held_out.datasets]
        held_out = replace(held_out, texts=_withhold(held_out.texts, hidden))
    return replace(evidence, texts=_withhold(evidence.texts, withheld), held_out=held_out)


def _withhold(texts: Sequence[str], withheld: Sequence[bool]) -> Any:
    return [None if is_hidden else text for text, is_hidden in zip(texts, withheld, strict=True)]


def readable(evidence: Evidence) -> Evidence:
    """Return the evidence on the rows with texts, also for held-out rows."""
    readable_evidence = evidence.take(_readable_rows(evidence.texts))
    held_out = evidence.held_out
    if held_out is None:
        return readable_evidence
    rows = _readable_rows(held_out.texts)

    def take(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(values[row] for row in rows)

    held_out = replace(
        held_out,
        datasets=take(held_out.datasets),
        texts=take(held_out.texts),
        statistics=take(held_out.statistics),
        reference=None if held_out.reference is None else take(held_out.reference),
        shadows=None if held_out.shadows is None else [take(part) for part in held_out.shadows],
    )
    return replace(readable_evidence, held_out=held_out)


def _readable_rows(texts: Sequence[str | None]) -> list[int]:
    return [row for row, text in enumerate(texts) if text is not None]
