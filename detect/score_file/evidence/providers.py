"""Every kind of need and who meets it: one table, and what meets a need in a few lines.

Everything is checked before the work begins, and met in the order of `PROVIDERS`, so that no more
than one model is held at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from detect.evidence import Evidence
from detect.evidence.needs import (
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
from detect.named_entities.tagger import find_entities, find_tagger
from detect.score_file.evidence.choices import CHOICES
from detect.score_file.evidence.continuations import CONTINUATIONS
from detect.score_file.evidence.frequency import FREQUENCY
from detect.score_file.evidence.guesses import GUESSES
from detect.score_file.evidence.held_out import HELD_OUT_ROWS
from detect.score_file.evidence.neighbours import NEIGHBOURS
from detect.score_file.evidence.prefixed import PREFIXED
from detect.score_file.evidence.provider import Provider, TargetProvider, Work, check_model
from detect.score_file.evidence.tuned import TUNED
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest
from detect.views import view_text


class _Views(TargetProvider[View]):
    hint = ""

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.model

    def meet(self, needs: Sequence[View], work: Work) -> None:
        work.fields["statistics"] = {
            need.name: work.statistics(
                work.target(),
                [view_text(need.name, text) for text in work.rows.texts],
                str(need),
            )
            for need in needs
        }


class _InverseTemperatures(Provider[InverseTemperature]):
    hint = "Name it (--inverse-temperature 2)."
    hint_in_code = "Name it in the policy (ScoringPolicy(inverse_temperatures=(0.5, 2)))."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.policy.inverse_temperatures

    def meets(
        self, need: InverseTemperature, request: ScoringRequest, rows: LabelledRows
    ) -> object:
        return need.beta in request.policy.inverse_temperatures


class _Gradients(TargetProvider[Gradients]):
    hint = ""

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.model

    def meet(self, needs: Sequence[Gradients], work: Work) -> None:
        from detect.engine.gradients import gradient_norms

        work.fields["gradients"] = gradient_norms(
            work.target(),
            work.rows.texts,
            work.request.policy,
            progress=lambda done, total: work.on_progress("gradients", done, total),
        )


class _Entities(Provider[Entities]):
    hint = "Name a spaCy pipeline that finds named entities (--tagger NAME)."
    hint_in_code = (
        "Name a spaCy pipeline that finds named entities (options=ScoringOptions(tagger=NAME))."
    )

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.tagger

    def optional(self, request: ScoringRequest) -> str | None:
        return request.tagger

    def check(self, request: ScoringRequest) -> None:
        find_tagger(request.tagger or "")

    def meet(self, needs: Sequence[Entities], work: Work) -> None:
        work.fields["entities"] = find_entities(
            work.request.tagger or "",
            work.rows.texts,
            progress=lambda done, total: work.on_progress(str(needs[0]), done, total),
        )


class _References(Provider[Reference]):
    hint = "Name a reference model (--reference PATH)."
    hint_in_code = "Name a reference model (reference=PATH)."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.reference

    def optional(self, request: ScoringRequest) -> str | None:
        return request.reference

    def check(self, request: ScoringRequest) -> None:
        check_model(request.reference or "", request)

    def meet(self, needs: Sequence[Reference], work: Work) -> None:
        work.release_target()
        model = work.load(work.request.reference or "")
        work.fields["reference"] = work.statistics(model, work.rows.texts, str(needs[0]))


class _Sides(Provider[Sides]):
    hint = "Give every row a label, 1 for members and 0 for non-members."
    hint_in_code = "Give every text a label, 1 for members and 0 for non-members (labels=…)."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return rows.labels

    def meet(self, needs: Sequence[Sides], work: Work) -> None:
        work.fields["members"], work.fields["groups"] = work.rows.labels, work.rows.groups


class _Shadows(Provider[Shadows]):
    hint = "Shadow models are trained by experiments alone (`spikein run`)."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return None


PROVIDERS: Mapping[type[Need], Provider[Any]] = {
    Frequency: FREQUENCY,
    View: _Views(),
    InverseTemperature: _InverseTemperatures(),
    HeldOut: HELD_OUT_ROWS,
    Prefixed: PREFIXED,
    Tuned: TUNED,
    Continuations: CONTINUATIONS,
    Guesses: GUESSES,
    Choices: CHOICES,
    Gradients: _Gradients(),
    NeighbourTexts: NEIGHBOURS,
    Entities: _Entities(),
    Reference: _References(),
    Sides: _Sides(),
    Shadows: _Shadows(),
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
