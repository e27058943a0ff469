"""Token frequencies of a reference corpus."""

from collections.abc import Sequence

from detect.needs import Frequency
from detect.token_frequency import load_frequency
from spikein.pipeline.graph import Step
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work


class _FrequencyProvider(Provider[Frequency]):
    hint = "Name texts to count token frequencies in (detect.frequency)."

    def available(self, sources: EvidenceSources) -> bool:
        return sources.frequency is not None

    def inputs(self, need: Frequency, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        return {"frequency": sources.frequency} if sources.frequency else {}


FREQUENCY: Provider[Frequency] = _FrequencyProvider()
"""The need of token frequencies is met by counting a corpus or files."""


def read_frequency(needs: Sequence[Frequency], work: Work) -> None:
    """Read the counted tokens."""
    work.fields["frequency"] = load_frequency(work.inputs["frequency"].path)
