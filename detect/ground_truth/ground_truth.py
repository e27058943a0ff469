"""The ground truth of a run: who was seen how often, and what every model says of every text.

It holds all that a detector is judged by, and no model. A run's artifacts give it
(`spikein.runs.ground_truth`), or one portable file (`detect.ground_truth.bundle`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from detect.evidence import Evidence
from inject.examples.example import Example

CONTAMINATED = "contaminated"
BASE = "base"
TWIN = "twin"
RETRAINED = "retrained"


@dataclass(frozen=True, kw_only=True)
class ScoredModel:
    """One model, what it says of each row, and the stored scores of all detectors."""

    axes: Mapping[str, str]
    """Values of the swept keys; a model that stands for all values of a key does not name it."""
    seed: int
    model: str
    """`contaminated`; `base`, `twin` (the clean twin) or `retrained`."""
    rows: Sequence[Example]
    """Texts of withheld rows are empty."""
    evidence: Evidence
    """One entry a row, in the order of `rows`; of withheld rows `texts` are empty, and whatever
    would show their text is -1 in their token statistics."""
    withheld: npt.NDArray[np.bool_]
    """Which rows' texts are not here."""
    characters: npt.NDArray[np.int64]
    """Characters of each text, of withheld ones, too."""
    scores: pa.Table
    """Of every detector under every setting: example_id, detector, setting, score, reason."""
    defaults: Mapping[str, str]
    """The default setting of each detector."""
    copies: Mapping[str, int] | None
    """Copies that were seen whole, by example_id (absent: none); None where the model saw none by
    design."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """What the copies of each example carried, where that differs."""
    fixed_levels: bool = False
    """Whether each number of copies was given to as many groups of a dataset as another: decides
    the intervals."""
    exposures: pa.Table | None = None
    """When each copy was seen (`exposures.parquet`); None where the model saw none by design."""

    @property
    def protected(self) -> bool:
        """Whether the text of a row must not be revealed."""
        return any(row.protected for row in self.rows)

    @property
    def held_out_withheld(self) -> npt.NDArray[np.bool_]:
        """Which held-out rows' texts are not here; none where no text is withheld."""
        held_out = self.evidence.held_out
        if held_out is None or not self.withheld.any():
            return np.zeros(0 if held_out is None else len(held_out.datasets), dtype=np.bool_)
        return held_out_withheld(held_out.datasets, self.rows, self.withheld)


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a ground truth comes from."""

    version: str
    """Of the spikein that made it."""
    run: str
    """The run's identity."""
    finished: str
    """When the run's last step was built, UTC."""
    code: str
    """Of the spikein that wrote the scores; empty where it is not known."""
    artifacts: tuple[str, ...] = ()
    """What it was read from, as `kind/label-digest12`."""


@dataclass(frozen=True, kw_only=True)
class GroundTruth:
    """All that detectors are judged by."""

    name: str
    """Of the experiment."""
    models: tuple[ScoredModel, ...]
    analysis: Mapping[str, Any]
    """How the run turned scores into metrics (`analysis:` of the experiment file)."""
    experiment: str
    """The experiment as it was run, as YAML."""
    provenance: Provenance
    notes: tuple[str, ...] = ()
    """What was left out, and why."""
    content: str = ""
    """The digest that names the bundle's content; empty where there is no bundle."""

    @property
    def axes(self) -> tuple[str, ...]:
        """The swept keys."""
        return tuple(dict.fromkeys(key for one in self.models for key in one.axes))


def held_out_withheld(
    datasets: Sequence[str], rows: Sequence[Example], withheld: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return which held-out rows' texts are withheld: those of datasets that show no text.

    Args:
        datasets: of the held-out rows.
        rows: those that are scored.
        withheld: which of these have no text here, or must have none.
    """
    shown = {row.dataset for row, gone in zip(rows, withheld, strict=True) if not gone}
    return np.array([name not in shown for name in datasets], dtype=np.bool_)


def group_name(row: Example) -> str:
    """Return what detectors that are trained know a row's group by."""
    return f"{row.dataset}\n{row.group}"
