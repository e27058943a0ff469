"""`recall`: the effect of preceding unseen texts on a text's likelihood.

ReCaLL (Xie et al. 2024): score = mean ℓ(x | P) / mean ℓ(x), with P some non-member shots of the
text's own dataset. Both means are negative, and a known text loses more, so larger means member.
The shots are held-out rows, never scored ones; both means are over the same tokens of x, each after
the prefix and its own history. The authors join shots with nothing between them; here an empty line
follows each, encoded as separate ids (`detect.evidence.shots`).
"""

import math
from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from detect.detector import Detector, Score, each_setting
from detect.detectors.loss import mean_log_probability
from detect.evidence import Evidence, ExampleEvidence
from detect.evidence.prefixed import Prefixed
from detect.evidence.views import View
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.settings import Settings

CERTAIN = "every token is certain (mean log-probability 0)"


class RecallParameters(Settings):
    """Number of shots before each text."""

    shots: Annotated[int, Field(ge=1, le=100)] = 7
    """Held-out rows of its dataset; fewer, with a note, if fewer exist or fit."""


def needs(setting: RecallParameters) -> tuple[Prefixed, ...]:
    """Return a setting's shots."""
    return (Prefixed(shots=setting.shots),)


def ratio(prefixed: float, plain: float) -> Score:
    """Return the score of two means."""
    return Score(math.nan, CERTAIN) if plain == 0 else Score(prefixed / plain)


def unread(*statistics: TokenStatistics) -> Score | None:
    """Return a score with the reason of the first empty statistics; else None."""
    lacking = next((part for part in statistics if not len(part)), None)
    return None if lacking is None else Score(math.nan, lacking.reason)


def notes_on(evidence: Evidence, prefixes: Iterable[Prefixed]) -> list[str]:
    """Return the notes on some prefixes, each once."""
    return list(
        dict.fromkeys(note for need in prefixes for note in evidence.prefixed[need.name].notes)
    )


def _score(example: ExampleEvidence, setting: RecallParameters) -> Score:
    prefixed = example.prefixed[Prefixed(shots=setting.shots).name]
    plain = mean_log_probability(example.statistics[TEXT])
    return unread(prefixed) or ratio(mean_log_probability(prefixed), plain)


def _note(evidence: Evidence, setting: RecallParameters) -> str | None:
    return "; ".join(notes_on(evidence, needs(setting))) or None


DETECTOR = Detector(
    name="recall",
    title="ReCaLL",
    summary="mean log-probability behind unseen shots over that without them",
    source="Xie et al. 2024 (ReCaLL)",
    needs=(View(TEXT),),
    further_needs=needs,
    assumption="the shots are like the scored texts, and the model has seen none of them",
    order=60,
    parameters=RecallParameters,
    grid=tuple(RecallParameters(shots=count) for count in range(1, 13)),
    score=each_setting(_score, _note),
)
