"""Token frequencies: counts of tokens and words in the clean corpus, or in files."""

from collections.abc import Sequence

from detect.evidence.needs import Frequency
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.token_frequency import FREQUENCY_FILES, load_frequency
from inject.step import Step


class _FrequencyProvider(Provider[Frequency]):
    hint = "Name texts to count token frequencies in (detect.frequency)."
    leaves = tuple((name, ()) for name in FREQUENCY_FILES)

    def available(self, sources: EvidenceSources) -> bool:
        return sources.frequency is not None

    def inputs(self, need: Frequency, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        return {"frequency": sources.frequency} if sources.frequency else {}

    def read(self, needs: Sequence[Frequency], work: Work) -> None:
        work.fields["frequency"] = load_frequency(work.inputs["frequency"])


FREQUENCY: Provider[Frequency] = _FrequencyProvider()
"""The need of token frequencies is met by the counts that the arm has."""
