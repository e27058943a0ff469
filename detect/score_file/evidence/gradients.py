"""Gradients: the norms of each row's, under the model to test."""

from collections.abc import Sequence

from detect.needs import Gradients
from detect.score_file.evidence.provider import Provider, Work, check_model
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest


class _Gradients(Provider[Gradients]):
    hint = ""

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.model

    def check(self, request: ScoringRequest) -> None:
        check_model(request.model, request, revision=request.revision)

    def meet(self, needs: Sequence[Gradients], work: Work) -> None:
        from detect.engine.gradients import gradient_norms

        work.fields["gradients"] = gradient_norms(
            work.target(),
            work.rows.texts,
            work.request.policy,
            progress=lambda done, total: work.on_progress("gradients", done, total),
        )


GRADIENTS: Provider[Gradients] = _Gradients()
"""The need of gradients is met by backward passes of the model to test."""
