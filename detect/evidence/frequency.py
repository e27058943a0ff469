"""Token frequencies: counts of tokens and words in the clean corpus, or in files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from detect.access import Access
from detect.evidence.needs import EvidenceSources, Need, Scored, Work
from detect.token_frequency import FREQUENCY_FILES, load_frequency
from inject.step import Step


@dataclass(frozen=True)
class Frequency(Need):
    """Token counts of a reference corpus under the target's tokenizer."""

    asks_model: ClassVar[bool] = False
    evidence: ClassVar[str | None] = "frequency"
    access: ClassVar[Access] = Access.NONE
    leaves: ClassVar[Mapping[str, Sequence[str]]] = dict.fromkeys(FREQUENCY_FILES, ())
    hint: ClassVar[str] = "Name texts to count token frequencies in (detect.frequency)."
    file_hint: ClassVar[str] = (
        "Name texts to count token frequencies in (frequency=FILE), for a model on this machine."
    )
    options: ClassVar[tuple[str, ...]] = ("frequency",)

    def __str__(self) -> str:
        return "token frequencies"

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether texts to count are named."""
        named = sources.of_file and sources.detect.frequency is not None
        return named or sources.frequency is not None

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return the counts."""
        return {"frequency": sources.frequency} if sources.frequency else {}

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the counts."""
        work.fields["frequency"] = load_frequency(work.inputs["frequency"])
