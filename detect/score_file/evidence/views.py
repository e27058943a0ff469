"""Views: token statistics of a form of the text under the model to test."""

from collections.abc import Sequence

from detect.needs import InverseTemperature, View
from detect.score_file.evidence.provider import Provider, Work, check_model
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest
from detect.views import view_text


class _Views(Provider[View]):
    hint = ""

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.model

    def check(self, request: ScoringRequest) -> None:
        check_model(request.model, request, revision=request.revision)

    def meet(self, needs: Sequence[View], work: Work) -> None:
        work.fields["statistics"] = {
            need.name: work.statistics(
                work.target(),
                [view_text(need.name, text) for text in work.rows.texts],
                str(need),
            )
            for need in needs
        }


VIEWS: Provider[View] = _Views()
"""Needs of views are met by the model to test."""


class _InverseTemperatures(Provider[InverseTemperature]):
    hint = "Name it (--inverse-temperature 2)."
    hint_in_code = "Name it in the policy (ScoringPolicy(inverse_temperatures=(0.5, 2)))."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.policy.inverse_temperatures

    def meets(
        self, need: InverseTemperature, request: ScoringRequest, rows: LabelledRows
    ) -> object:
        return need.beta in request.policy.inverse_temperatures


INVERSE_TEMPERATURES: Provider[InverseTemperature] = _InverseTemperatures()
"""Needs of an inverse temperature are met by the views, if the user names it."""
