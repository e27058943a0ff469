"""The reference model: its token statistics of the text, through its own tokenizer."""

from collections.abc import Sequence

from detect.needs import Reference
from detect.score_file.evidence.provider import Provider, Work, check_model
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest


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


REFERENCE: Provider[Reference] = _References()
"""The need of a reference model is met by the one that the user names."""
