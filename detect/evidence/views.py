"""Views: token statistics of the texts, in one of their forms, under the model that is scored.

Made once for each model and view; every likelihood detector and setting is then a function of the
stored table. Inverse temperatures are columns of it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from detect.asked_model import model_libraries, target_execution, target_settings
from detect.engine.measured_cost import COST_FILE
from detect.evidence.needs import InverseTemperature, View
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.settings import DetectSettings
from detect.token_statistics import STATISTICS_FILE, TEXT_COLUMNS
from detect.views import TEXT
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
    return Step(
        kind="statistics",
        label=f"{view}{'-held-out' if held_out else ''}-{model.label}",
        function="detect.evidence_steps.statistics:build",
        settings={
            "view": view,
            **({"rows": "held_out"} if held_out else {}),
            "policy": detect.policy().record(),
            **target_settings(model, detect),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=(*model_libraries(model, detect), *(() if view == TEXT else ("unicode",))),
        reads={"examples": HELD_OUT if held_out else TEXTS},
        volatile=(COST_FILE,),
        execution=target_execution(model, detect),
    )


class _ViewProvider(Provider[View]):
    leaves = ((STATISTICS_FILE, TEXT_COLUMNS),)

    def inputs(self, need: View, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        step = statistics_step(
            scored.model, sources.examples, view=need.name, detect=sources.detect
        )
        return {f"view-{need.name}": step}

    def read(self, needs: Sequence[View], work: Work) -> None:
        work.fields["statistics"] = {
            need.name: work.statistics(f"view-{need.name}") for need in needs
        }


VIEWS: Provider[View] = _ViewProvider()
"""The need of a view is met by a pass of the model that is scored."""


class _InverseTemperatureProvider(Provider[InverseTemperature]):
    hint = "Name it among detect.inverse_temperatures, such as [0.5, 2]."

    def meets(self, need: InverseTemperature, sources: EvidenceSources) -> bool:
        return need.beta in sources.detect.inverse_temperatures

    def read(self, needs: Sequence[InverseTemperature], work: Work) -> None:
        pass  # The statistics of the views hold them.


INVERSE_TEMPERATURES: Provider[InverseTemperature] = _InverseTemperatureProvider()
"""The need of an inverse temperature is met by the settings of the passes."""
