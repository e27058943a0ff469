"""Held-out rows: their token statistics under the scored model, and under others.

A target tuned on them is among these others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from detect.access import Access
from detect.evidence.evidence import Evidence, HeldOutRows
from detect.evidence.needs import EvidenceSources, Need, NeedCost, Scored, Work
from detect.evidence.views import has_reference, reference_model, statistics_step
from detect.settings import Adapters
from detect.target_identity import AnyModel, asking_step
from detect.views import TEXT
from inject.examples.example import HELD_OUT, TEXTS, read_held_out
from inject.step import InputProjection, Step, numbered_inputs

FILE_HINT = "Name texts that the model has not seen (held_out=FILE)."
_ROWS = "held_out"
_OF_TARGET, _OF_REFERENCE = "held_out-text", "held_out-reference"
_OF_SHADOW = "shadow-held_out"


@dataclass(frozen=True)
class HeldOut(Need):
    """Unseen rows that are not scored, with their token statistics under the target."""

    reference: bool = False
    """Also under the reference model."""
    shadows: bool = False
    """Also under every shadow model."""
    fewest: int = 1
    """Fewest rows of a dataset for which the detector gives scores."""
    access: ClassVar[Access] = Access.TOKENS
    parts: ClassVar[Mapping[str, str]] = {"held_out": r"(.*-)?held_out(-.*)?"}
    hint: ClassVar[str] = "Hold rows out (contaminants.held_out), such as 40 of each dataset."
    file_hint: ClassVar[str] = FILE_HINT

    def __str__(self) -> str:
        return "held-out rows" if self.fewest == 1 else f"{self.fewest} held-out rows of a dataset"

    @property
    def cost(self) -> NeedCost:
        """The models read the held-out rows once, regardless of the number of scored texts."""
        return "held-out rows once", None

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the held-out rows and their required statistics are present."""
        rows = evidence.held_out
        return (
            rows is not None
            and not (self.reference and rows.reference is None)
            and not (self.shadows and rows.shadows is None)
        )

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether rows are held out; for a file, whether the required models are also
        given."""
        enough = sources.held_out >= self.fewest
        if not sources.of_file:
            return enough
        lacking = self.shadows or (self.reference and not has_reference(sources))
        return enough and not lacking

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return the rows, and a pass of each model over them."""

        def of(model: AnyModel) -> Step:
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
    def reads(cls, name: str) -> InputProjection | None:
        """Only the held-out rows are read from the examples."""
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


@dataclass(frozen=True)
class Tuned(Need):
    """Token statistics of the text under the target tuned on held-out rows by low-rank adapters."""

    view: str = TEXT
    """The view of the text to read."""
    adapters: Adapters = "all_linear"
    """The adapted layers, and the weight decay."""
    access: ClassVar[Access] = Access.WEIGHTS
    parts: ClassVar[Mapping[str, str]] = {"tuned": r"tuned-.*"}
    hint: ClassVar[str] = "Hold rows out (contaminants.held_out), such as 40 of each dataset."
    file_hint: ClassVar[str] = FILE_HINT

    def __str__(self) -> str:
        return "target tuned on held-out rows"

    @property
    def cost(self) -> NeedCost:
        """The tuned target reads the text once."""
        return "tuned target (tuned for it)", 1

    @property
    def name(self) -> str:
        """Its name in `Evidence.tuned` and in step names."""
        return f"{self.view}-{self.adapters}"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the tuned model's statistics are present."""
        return self.name in evidence.tuned

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether rows are held out to tune on."""
        return sources.held_out > 0

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return a pass of the scored model, with adapters tuned on the held-out rows."""
        model, examples, detect = scored.model, sources.examples, sources.detect
        adapter = asking_step(
            model,
            detect,
            kind="adapter",
            label=f"held-out-{self.adapters}-{model.label}",
            function="detect.engine.tuning:train",
            settings={"adapters": self.adapters, "policy": detect.policy().record()},
            inputs={"examples": examples},
            libraries=("peft",),
            reads={"examples": HELD_OUT},
        )
        step = asking_step(
            model,
            detect,
            kind="statistics",
            label=f"tuned-{self.name}-{model.label}",
            function="detect.engine.tuning:build",
            settings={"view": self.view, "tuned": self.name, "policy": detect.policy().record()},
            inputs={"examples": examples, "adapter": adapter},
            libraries=("peft",),
            reads={"examples": TEXTS},
        )
        return {f"tuned-{self.name}": step}

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the statistics under the tuned model."""
        work.fields["tuned"] = {need.name: work.statistics(f"tuned-{need.name}") for need in needs}
