"""Token frequencies: counts of tokens and words in the clean corpus, or in files."""

from collections.abc import Mapping, Sequence
from typing import Any

from detect.evidence.needs import Frequency
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.settings import DetectSettings
from detect.token_frequency import load_frequency
from inject.corpus.parts import TOKENS
from inject.reading.rows import files_identity
from inject.step import Step


def frequency_step(
    corpus: Step, detect: DetectSettings, corpus_execution: Mapping[str, Any]
) -> Step | None:
    """Count tokens and words: of the clean corpus (words of its first 20 M tokens), or of files.

    Args:
        corpus: the clean corpus, by whose tokenizer is counted.
        detect: what is counted; None is returned where that is nothing.
        corpus_execution: what opens the corpus (`inject.stream.inputs.corpus_execution`).
    """
    if detect.frequency is None:
        return None
    pattern = None if detect.frequency == "corpus" else detect.frequency
    return Step(
        kind="frequency",
        label="corpus" if pattern is None else "files",
        function="detect.evidence_steps.frequency:build",
        settings={"files": [] if pattern is None else files_identity(pattern)},
        inputs={"corpus": corpus},
        libraries=("unicode",),
        reads={"corpus": TOKENS},
        execution={"pattern": pattern, **corpus_execution},
    )


class _FrequencyProvider(Provider[Frequency]):
    hint = "Name texts to count token frequencies in (detect.frequency)."

    def available(self, sources: EvidenceSources) -> bool:
        return sources.frequency is not None

    def inputs(self, need: Frequency, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        return {"frequency": sources.frequency} if sources.frequency else {}

    def read(self, needs: Sequence[Frequency], work: Work) -> None:
        work.fields["frequency"] = load_frequency(work.inputs["frequency"])


FREQUENCY: Provider[Frequency] = _FrequencyProvider()
"""The need of token frequencies is met by the counts that the arm has."""
