"""Views: token statistics of the texts, in one of their forms, under the model that is scored.

Made once for each model and view; every likelihood detector and setting is then a function of the
stored table. Inverse temperatures are columns of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from detect.access import Access
from detect.asked_model import asking_step
from detect.evidence.evidence import Evidence
from detect.evidence.needs import EvidenceSources, Need, NeedCost, Scored, Work
from detect.settings import DetectSettings
from detect.token_statistics import STATISTICS_FILE, TEXT_COLUMNS
from detect.views import TEXT, view_names
from inject.examples.parts import HELD_OUT, TEXTS
from inject.step import Step

if TYPE_CHECKING:
    from train.models.model_node import ModelNode


def statistics_step(
    model: "ModelNode",
    examples: Step,
    *,
    view: str,
    detect: DetectSettings,
    held_out: bool = False,
) -> Step:
    """Make the token statistics of every example under one model, as one view shows it.

    Args:
        model: what is asked.
        examples: the pool.
        view: the form of the texts.
        detect: how models are asked.
        held_out: of the held-out rows, in place of the examples.
    """
    return asking_step(
        model,
        detect,
        kind="statistics",
        label=f"{view}{'-held-out' if held_out else ''}-{model.label}",
        function=(
            "detect.targets.served_statistics:build"
            if model.served
            else "detect.engine.view_statistics:build"
        ),
        settings={
            "view": view,
            **({"rows": "held_out"} if held_out else {}),
            "policy": detect.policy().record(),
        },
        inputs={"examples": examples},
        libraries=() if view == TEXT else ("unicode",),
        reads={"examples": HELD_OUT if held_out else TEXTS},
    )


def _family(view: str) -> str:
    """Return the name of views that differ by a number."""
    return view.partition("-")[0]


@dataclass(frozen=True)
class View(Need):
    """Token statistics of a view under the target."""

    name: str
    """One of `detect.views.view_names`."""
    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.TOKENS
    leaves: ClassVar[Mapping[str, Sequence[str]]] = {STATISTICS_FILE: TEXT_COLUMNS}
    parts: ClassVar[Mapping[str, str]] = {
        _family(name): rf"view-{_family(name)}(-\d+)?" for name in view_names() if name != TEXT
    }

    def __str__(self) -> str:
        return f"view {self.name}"

    @property
    def part(self) -> str | None:
        """The views of its name, such as all `swapped-N`; None for the text."""
        return None if self.name == TEXT else _family(self.name)

    @property
    def cost(self) -> NeedCost:
        """The target reads the view once."""
        return NeedCost("target", 1)

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the statistics of this view are there."""
        return self.name in evidence.statistics

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return a pass of the model that is scored."""
        step = statistics_step(
            scored.model, sources.examples, view=self.name, detect=sources.detect
        )
        return {f"view-{self.name}": step}

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the statistics of every view."""
        work.fields["statistics"] = {
            need.name: work.statistics(f"view-{need.name}") for need in needs
        }


@dataclass(frozen=True)
class InverseTemperature(Need):
    """Statistics of softmax(β · logits) beside those of the text under the target.

    The passes of the views make them where the settings name them.
    """

    beta: float
    asks_model: ClassVar[bool] = False
    access: ClassVar[Access] = Access.DISTRIBUTION
    hint: ClassVar[str] = "Name it among detect.inverse_temperatures, such as [0.5, 2]."
    file_hint: ClassVar[str] = "Name it (inverse_temperatures=[2])."

    def __str__(self) -> str:
        return f"inverse temperature {self.beta}"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the statistics of every text that is scored have it."""
        rows = evidence.statistics.get(TEXT, ())
        return all(self.beta in row.tempered for row in rows if len(row))

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether the settings of the passes name it."""
        return self.beta in sources.detect.inverse_temperatures
