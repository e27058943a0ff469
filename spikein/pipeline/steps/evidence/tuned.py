"""The tuned target: the model that is scored, tuned on the held-out rows."""

from collections.abc import Sequence

from detect.needs import Tuned
from spikein.pipeline.graph import Step
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work
from spikein.pipeline.steps.tuned_target import tuned_statistics_step


class _TunedProvider(Provider[Tuned]):
    hint = "Hold rows out (contaminants.held_out), such as 40 of each dataset."

    def available(self, sources: EvidenceSources) -> bool:
        return sources.held_out

    def inputs(self, need: Tuned, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        step = tuned_statistics_step(scored.model, sources.examples, sources.detect)
        return {"tuned": step}


TUNED: Provider[Tuned] = _TunedProvider()
"""The need of a tuned target is met by tuning the model that is scored on the held-out rows."""


def read_tuned(needs: Sequence[Tuned], work: Work) -> None:
    """Read the token statistics under the tuned target."""
    work.fields["tuned"] = work.statistics("tuned")
