"""Held-out rows: their token statistics under the model that is scored, and under others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from detect.access import Access
from detect.evidence.evidence import Evidence, HeldOutRows
from detect.evidence.needs import EvidenceSources, Need, NeedCost, Scored, Work
from detect.evidence.reference import has_reference, reference_model
from detect.evidence.views import statistics_step
from detect.views import TEXT
from inject.examples.example import read_held_out
from inject.examples.parts import HELD_OUT
from inject.step import Reading, Step, numbered_inputs

if TYPE_CHECKING:
    from train.models.model_node import ModelNode

FILE_HINT = "Name texts that the model has not seen (held_out=FILE)."
_ROWS = "held_out"
_OF_TARGET, _OF_REFERENCE = "held_out-text", "held_out-reference"
_OF_SHADOW = "shadow-held_out"


@dataclass(frozen=True)
class HeldOut(Need):
    """Rows that no model saw and nobody scores, with their token statistics under the target."""

    reference: bool = False
    """Under the reference model, too."""
    shadows: bool = False
    """Under every shadow model, too."""
    fewest: int = 1
    """Rows of a dataset below which the detector says nothing about it."""
    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.TOKENS
    parts: ClassVar[Mapping[str, str]] = {"held_out": r"(.*-)?held_out(-.*)?"}
    hint: ClassVar[str] = "Hold rows out (contaminants.held_out), such as 40 of each dataset."
    file_hint: ClassVar[str] = FILE_HINT

    def __str__(self) -> str:
        return "held-out rows" if self.fewest == 1 else f"{self.fewest} held-out rows of a dataset"

    @property
    def cost(self) -> NeedCost:
        """The models read the held-out rows once, however many texts are scored."""
        return NeedCost("held-out rows once")

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the held-out rows are there, and what is asked for of them."""
        rows = evidence.held_out
        return (
            rows is not None
            and not (self.reference and rows.reference is None)
            and not (self.shadows and rows.shadows is None)
        )

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether rows are held out; of a file, with the models that are asked for."""
        enough = sources.held_out >= self.fewest
        if not sources.of_file:
            return enough
        lacking = self.shadows or (self.reference and not has_reference(sources))
        return enough and not lacking

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return the rows, and a pass of each model over them."""

        def of(model: "ModelNode") -> Step:
            return statistics_step(
                model, sources.examples, view=TEXT, detect=sources.detect, held_out=True
            )

        steps = {_ROWS: sources.examples, _OF_TARGET: of(scored.model)}
        other = reference_model(sources) if self.reference else None
        if other is not None:
            steps[_OF_REFERENCE] = of(other)
        if self.shadows:
            steps |= numbered_inputs([{_OF_SHADOW: of(shadow.model)} for shadow in sources.shadows])
        return steps

    @classmethod
    def reads(cls, name: str) -> Reading | None:
        """Of the examples, the held-out rows are read."""
        return HELD_OUT if name == _ROWS else None

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the rows, and their statistics under each model."""
        rows = read_held_out(work.inputs[_ROWS])
        shadows = sorted(name for name in work.inputs if name.endswith(f"-{_OF_SHADOW}"))
        referred = _OF_REFERENCE in work.inputs
        work.fields["datasets"] = [row.dataset for row in work.rows]
        work.fields["held_out"] = HeldOutRows(
            datasets=[row.dataset for row in rows],
            texts=[row.text for row in rows],
            statistics=work.statistics(_OF_TARGET, rows),
            reference=work.statistics(_OF_REFERENCE, rows) if referred else None,
            shadows=[work.statistics(name, rows) for name in shadows] if shadows else None,
        )
