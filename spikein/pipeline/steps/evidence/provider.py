"""What every provider of evidence is: which steps meet a need, and how finished ones are read.

A kind of need is a `Provider` and a function that reads what the steps have made; one that takes
more than a few lines has a file of its own beside this one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from detect.needs import Need
from detect.settings import DetectSettings
from detect.token_statistics import TokenStatistics, read_statistics
from inject.examples.example import Example
from inject.step import Reading
from spikein.pipeline.graph import Step
from spikein.pipeline.steps.training import ModelNode
from spikein.store.artifact import Artifact

Role = Literal["arm", "base", "clean", "retrained", "unlearned"]
"""What a model is to its arm: the contaminated one, the base model, a twin, or made from the
contaminated one to forget."""
BASE = "base"
"""What `detect.reference` calls the base model."""
TWIN = "twin"
"""What `detect.reference` calls the clean twin."""
NeedT = TypeVar("NeedT", bound=Need)


class Shadow(NamedTuple):
    """A shadow model, and the examples with the sides that hold for it."""

    model: ModelNode
    membership: Step


@dataclass(frozen=True, kw_only=True)
class EvidenceSources:
    """What an arm has to meet needs with."""

    detect: DetectSettings
    examples: Step
    """What is scored."""
    base: ModelNode | None = None
    """The base model, where there is one."""
    frequency: Step | None = None
    """Counted tokens."""
    twin: ModelNode | None = None
    """The clean twin of the arm."""
    shadows: tuple[Shadow, ...] = ()
    """The shadow models of the arm."""
    held_out: bool = False
    """Whether rows of a dataset are held out."""
    paraphrased: bool = False
    """Whether examples bring paraphrases."""


class Scored(NamedTuple):
    """The model that is scored."""

    model: ModelNode
    role: Role


class Provider(Generic[NeedT]):
    """How needs of one kind are met."""

    hint: str = ""
    """What a user does about a need of the kind that nothing meets."""

    def available(self, sources: EvidenceSources) -> bool:
        """Return whether the arm has what it takes."""
        return True

    def meets(self, need: NeedT, sources: EvidenceSources) -> bool:
        """Return whether the arm has what this need of the kind takes."""
        return self.available(sources)

    def says_something(self, sources: EvidenceSources, scored: Scored) -> bool:
        """Return whether such evidence on this model means anything."""
        return True

    def inputs(self, need: NeedT, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return the steps that meet it, by the name that the scores' step knows them by."""
        return {}

    def reads(self, name: str) -> Reading | None:
        """Return what is read of such an input; None for everything."""
        return None


@dataclass(kw_only=True)
class Work:
    """The finished inputs while they become evidence, and the fields that are filled by then."""

    inputs: Mapping[str, Artifact]
    rows: Sequence[Example]
    fields: dict[str, Any] = field(default_factory=dict)

    def statistics(self, name: str, rows: Sequence[Example] | None = None) -> list[TokenStatistics]:
        """Return the token statistics of an input, one a row, or of other rows that are given."""
        table = read_statistics(self.inputs[name].path)
        return [table[row.example_id] for row in (self.rows if rows is None else rows)]
