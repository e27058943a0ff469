"""The tuned target: token statistics under low-rank adapters that held-out rows trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from detect.access import Access
from detect.asked_model import asking_step
from detect.evidence.evidence import Evidence
from detect.evidence.held_out import FILE_HINT
from detect.evidence.needs import EvidenceSources, Need, NeedCost, Scored, Work
from detect.policy import Adapters
from detect.views import TEXT
from inject.examples.parts import HELD_OUT, TEXTS
from inject.step import Step


@dataclass(frozen=True)
class Tuned(Need):
    """Token statistics of the text under the target tuned on held-out rows by low-rank adapters."""

    view: str = TEXT
    """The form of the text that it reads."""
    adapters: Adapters = "all_linear"
    """Which layers are adapted, and by what weight decay."""
    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.WEIGHTS
    parts: ClassVar[Mapping[str, str]] = {"tuned": r"tuned-.*"}
    hint: ClassVar[str] = "Hold rows out (contaminants.held_out), such as 40 of each dataset."
    file_hint: ClassVar[str] = FILE_HINT

    def __str__(self) -> str:
        return "target tuned on held-out rows"

    @property
    def cost(self) -> NeedCost:
        """The tuned target reads the text once."""
        return NeedCost("tuned target (tuned for it)", 1)

    @property
    def name(self) -> str:
        """What it is called in `Evidence.tuned` and in the names of steps."""
        return f"{self.view}-{self.adapters}"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the tuned model's statistics are there."""
        return self.name in evidence.tuned

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether rows are held out to tune on."""
        return sources.held_out > 0

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return a pass of the model that is scored, with adapters of the held-out rows."""
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
