"""Gradients: the norms of each example's gradient under the scored model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from detect.access import Access
from detect.evidence.needs import EvidenceSources, Need, NeedCost, Scored, Work
from detect.target_identity import asking_step
from detect.text_measures import NORMS_FILE, read_norms
from inject.examples.example import TEXTS
from inject.step import Step


@dataclass(frozen=True)
class Gradients(Need):
    """Norms of the gradient of each text's loss under the target."""

    evidence: ClassVar[str | None] = "gradients"
    access: ClassVar[Access] = Access.WEIGHTS
    parts: ClassVar[Mapping[str, str]] = {"gradients": r"gradients"}
    leaves: ClassVar[Mapping[str, Sequence[str]]] = {NORMS_FILE: ()}

    def __str__(self) -> str:
        return "gradients"

    @property
    def cost(self) -> NeedCost:
        """A forward and a backward pass of the target over the text, some three plain passes."""
        return "a backward pass of the target", None

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return backward passes of the scored model."""
        model, detect = scored.model, sources.detect
        step = asking_step(
            model,
            detect,
            kind="gradients",
            label=model.label,
            function="detect.engine.gradients:build",
            settings={"policy": detect.policy().text_record()},
            inputs={"examples": sources.examples},
            reads={"examples": TEXTS},
        )
        return {"gradients": step}

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the norms."""
        work.fields["gradients"] = work.rows_of(read_norms(work.inputs["gradients"]))
