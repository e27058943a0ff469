"""Views: token statistics of a form of the text under the model that is scored."""

from collections.abc import Sequence

from detect.needs import View
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


def read_views(needs: Sequence[View], work: Work) -> None:
    """Read the token statistics of every view."""
    work.fields["statistics"] = {need.name: work.statistics(f"view-{need.name}") for need in needs}
