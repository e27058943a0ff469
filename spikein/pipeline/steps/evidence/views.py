"""Views: token statistics of a form of the text under the model that is scored."""

from collections.abc import Sequence

from detect.needs import InverseTemperature, View
from spikein.pipeline.graph import Step
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work
from spikein.pipeline.steps.statistics import statistics_step


class _ViewProvider(Provider[View]):
    def inputs(self, need: View, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        step = statistics_step(
            scored.model, sources.examples, view=need.name, detect=sources.detect
        )
        return {f"view-{need.name}": step}


VIEWS: Provider[View] = _ViewProvider()
"""Needs of views are met by statistics of the model that is scored."""


class _InverseTemperatureProvider(Provider[InverseTemperature]):
    hint = "Name it among detect.inverse_temperatures, such as [0.5, 2]."

    def meets(self, need: InverseTemperature, sources: EvidenceSources) -> bool:
        return need.beta in sources.detect.inverse_temperatures


INVERSE_TEMPERATURES: Provider[InverseTemperature] = _InverseTemperatureProvider()
"""Needs of an inverse temperature are met by the views, if the settings name it."""


def read_inverse_temperatures(needs: Sequence[InverseTemperature], work: Work) -> None:
    """Read nothing: the statistics of the views hold them."""


def read_views(needs: Sequence[View], work: Work) -> None:
    """Read the token statistics of every view."""
    work.fields["statistics"] = {need.name: work.statistics(f"view-{need.name}") for need in needs}
