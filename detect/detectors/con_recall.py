"""`con_recall`: unseen shots before a text, compared with known members before it.

Con-ReCall (Wang et al. 2024): score = (mean ℓ(x | P_non) − γ · mean ℓ(x | P_mem)) / mean ℓ(x), the
sign as in the authors' code; larger means member, and γ = 0 is `recall`. P_non are held-out rows.
P_mem are members of the split `tune`, whose labels tuning uses anyway. Those rows, and rows that
share a passage with them, get no score, so that no row is conditioned on itself; the test split is
complete. A member that drew no copy may be among them.
"""

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from detect.detector import Detector, Score, each_setting
from detect.detectors.loss import mean_log_probability
from detect.detectors.recall import notes_on, ratio, unread
from detect.evidence import Evidence, ExampleEvidence
from detect.evidence.prefixed import Prefixed
from detect.evidence.views import View
from detect.views import TEXT
from inject.settings import Settings


class ConRecallParameters(Settings):
    """The weights of the two conditions."""

    gamma: Annotated[Decimal, Field(ge=0, le=10)] = Decimal("0.5")
    """Weight of the known members."""
    shots: Annotated[int, Field(ge=1, le=100)] = 7
    """Texts of each kind before a text; fewer, with a note, if fewer exist or fit."""


def _prefixes(setting: ConRecallParameters) -> tuple[Prefixed, Prefixed]:
    return (
        Prefixed(shots=setting.shots),
        Prefixed(shots=setting.shots, known="members"),
    )


def _score(example: ExampleEvidence, setting: ConRecallParameters) -> Score:
    unseen, seen = (example.prefixed[need.name] for need in _prefixes(setting))
    lacking = unread(unseen, seen)
    if lacking is not None:
        return lacking
    contrast = mean_log_probability(unseen) - float(setting.gamma) * mean_log_probability(seen)
    return ratio(contrast, mean_log_probability(example.statistics[TEXT]))


def _note(evidence: Evidence, setting: ConRecallParameters) -> str | None:
    return "; ".join(notes_on(evidence, _prefixes(setting))) or None


DETECTOR = Detector(
    name="con_recall",
    title="Con-ReCall",
    summary="mean log-probability behind unseen shots less that behind known members, over plain",
    source="Wang et al. 2024 (Con-ReCall)",
    needs=(View(TEXT),),
    further_needs=_prefixes,
    assumption="some members are known and like the others, and the unseen shots are like both",
    order=62,
    parameters=ConRecallParameters,
    grid=tuple(ConRecallParameters(gamma=Decimal(tenths) / 10) for tenths in range(1, 11)),
    score=each_setting(_score, _note),
)
