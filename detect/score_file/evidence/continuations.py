"""Continuations: what the model to test writes after the beginning of each text."""

from collections.abc import Sequence

from detect.evidence.needs import Continuations
from detect.score_file.evidence.provider import Provider, TargetProvider, Work
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest
from detect.settings import names_all

HINT = "Let the model write (--generate), or name the detector."
HINT_IN_CODE = "Let the model write (ScoringOptions(generate=True)), or name the detector."


def lets_models_write(request: ScoringRequest) -> bool:
    """Return whether models write: it was asked for, or nothing else can be had of a server."""
    written = request.generate or request.server is not None
    return written or not names_all(request.detectors)


class _Continuations(TargetProvider[Continuations]):
    hint = HINT
    hint_in_code = HINT_IN_CODE

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return lets_models_write(request)

    def meet(self, needs: Sequence[Continuations], work: Work) -> None:
        from detect.generation.continuations import continue_texts

        work.fields["continuations"] = {
            need.request: continue_texts(
                work.text_model(),
                work.rows.texts,
                need.request,
                progress=lambda done, total: work.on_progress("continuations", done, total),
            )
            for need in needs
        }


CONTINUATIONS: Provider[Continuations] = _Continuations()
"""The need of continuations is met by the model to test, where models may write."""
