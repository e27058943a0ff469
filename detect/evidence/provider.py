"""What every provider of evidence is: which steps meet a need, and how finished ones are read.

A step that makes evidence names its function by a string: what a model is asked with is no part of
the code that reads what it said. An edit of the engine makes scores anew through the statistics, if
these come out otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from detect.evidence.needs import Need
from detect.settings import DetectSettings
from detect.token_statistics import TokenStatistics, read_statistics
from inject.examples.example import Example
from inject.step import Reading, Step

if TYPE_CHECKING:
    from train.models.model_node import ModelNode

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

    model: "ModelNode"
    membership: Step


@dataclass(frozen=True, kw_only=True)
class EvidenceSources:
    """What an arm has to meet needs with."""

    detect: DetectSettings
    examples: Step
    """What is scored."""
    base: "ModelNode | None" = None
    """The base model, where there is one."""
    frequency: Step | None = None
    """Counted tokens."""
    twin: "ModelNode | None" = None
    """The clean twin of the arm."""
    shadows: tuple[Shadow, ...] = ()
    """The shadow models of the arm."""
    held_out: bool = False
    """Whether rows of a dataset are held out."""
    paraphrased: bool = False
    """Whether examples bring paraphrases."""


class Scored(NamedTuple):
    """The model that is scored."""

    model: "ModelNode"
    role: Role


@dataclass(kw_only=True)
class Work:
    """The finished inputs while they become evidence, and the fields that are filled by then."""

    inputs: Mapping[str, Path]
    """Folders by name."""
    rows: Sequence[Example]
    fields: dict[str, Any] = field(default_factory=dict)

    def statistics(self, name: str, rows: Sequence[Example] | None = None) -> list[TokenStatistics]:
        """Return the token statistics of an input, one a row, or of other rows that are given."""
        table = read_statistics(self.inputs[name])
        return [table[row.example_id] for row in (self.rows if rows is None else rows)]


class Provider(Generic[NeedT]):
    """How needs of one kind are met."""

    hint: str = ""
    """What a user does about a need of the kind that nothing meets."""
    leaves: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Files of its artifacts that leave in a bundle, each with the columns that show a text: those
    of protected rows stay behind. Kinds that share a file name it once."""

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

    def read(self, needs: Sequence[NeedT], work: Work) -> None:
        """Fill the fields of the evidence that hold what finished steps have made.

        Args:
            needs: all of the kind.
            work: the finished inputs.
        """
        raise NotImplementedError
