"""Every kind of need and who meets it: the one table of this folder.

Everything is checked before the work begins, and met in the order of `PROVIDERS`, so that no more
than one model is held at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from detect.evidence import Evidence
from detect.needs import (
    Choices,
    Continuations,
    Entities,
    Frequency,
    Gradients,
    Guesses,
    HeldOut,
    InverseTemperature,
    Need,
    NeighbourTexts,
    Prefixed,
    Reference,
    Shadows,
    Sides,
    Tuned,
    View,
)
from detect.score_file.evidence.choices import CHOICES
from detect.score_file.evidence.continuations import CONTINUATIONS
from detect.score_file.evidence.entities import ENTITIES
from detect.score_file.evidence.frequency import FREQUENCY
from detect.score_file.evidence.gradients import GRADIENTS
from detect.score_file.evidence.guesses import GUESSES
from detect.score_file.evidence.held_out import HELD_OUT_ROWS
from detect.score_file.evidence.labels import LABELS
from detect.score_file.evidence.neighbours import NEIGHBOURS
from detect.score_file.evidence.prefixed import PREFIXED
from detect.score_file.evidence.provider import Provider, Work
from detect.score_file.evidence.reference import REFERENCE
from detect.score_file.evidence.shadows import SHADOWS
from detect.score_file.evidence.tuned import TUNED
from detect.score_file.evidence.views import INVERSE_TEMPERATURES, VIEWS
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest

PROVIDERS: Mapping[type[Need], Provider[Any]] = {
    Frequency: FREQUENCY,
    View: VIEWS,
    InverseTemperature: INVERSE_TEMPERATURES,
    HeldOut: HELD_OUT_ROWS,
    Prefixed: PREFIXED,
    Tuned: TUNED,
    Continuations: CONTINUATIONS,
    Guesses: GUESSES,
    Choices: CHOICES,
    Gradients: GRADIENTS,
    NeighbourTexts: NEIGHBOURS,
    Entities: ENTITIES,
    Reference: REFERENCE,
    Sides: LABELS,
    Shadows: SHADOWS,
}


def unmet(
    request: ScoringRequest, rows: LabelledRows, *, in_code: bool
) -> Callable[[Need], str | None]:
    """Return a function from a need to what can be done about it; None where it can be met.

    Args:
        request: what is asked for.
        rows: of the file.
        in_code: hints name arguments of `spikein.score_texts`, in place of flags.
    """

    def hint(need: Need) -> str | None:
        provider = PROVIDERS[type(need)]
        if provider.meets(need, request, rows):
            return None
        return (in_code and provider.hint_in_code) or provider.hint

    return hint


def check_needs(request: ScoringRequest, needs: Sequence[Need]) -> tuple[str, ...]:
    """Find out, before the work, whether models and texts are there; return what is not used.

    Raises:
        InputError: a model or a file that cannot be used.
    """
    notes = []
    for kind, provider in PROVIDERS.items():
        if any(isinstance(need, kind) for need in needs):
            provider.check(request)
        elif given := provider.optional(request):
            notes.append(f"{given} is not used: no detector asked for needs {kind()}")
    return tuple(notes)


def read_evidence(work: Work, needs: Sequence[Need]) -> Evidence:
    """Meet the needs."""
    for kind, provider in PROVIDERS.items():
        if asked := [need for need in needs if isinstance(need, kind)]:
            provider.meet(asked, work)
    return Evidence(**{"texts": work.rows.texts, "statistics": {}, **work.fields})
