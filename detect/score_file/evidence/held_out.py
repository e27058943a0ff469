"""Held-out rows: texts that the user names, which the model has not seen."""

from collections.abc import Sequence

from detect.evidence import HeldOutRows
from detect.evidence.needs import HeldOut
from detect.score_file.evidence.provider import Provider, TargetProvider, Work
from detect.score_file.held_out_file import read_held_out_file
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest

HINT = "Name texts that the model has not seen (--held-out FILE)."
HINT_IN_CODE = "Name texts that the model has not seen (options=ScoringOptions(held_out=FILE))."


class _HeldOut(TargetProvider[HeldOut]):
    hint = HINT
    hint_in_code = HINT_IN_CODE

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.held_out

    def meets(self, need: HeldOut, request: ScoringRequest, rows: LabelledRows) -> object:
        if request.held_out is None or need.shadows:
            return None
        known = read_held_out_file(request.held_out, rows).nonmembers
        return known and (request.reference if need.reference else known)

    def meet(self, needs: Sequence[HeldOut], work: Work) -> None:
        texts = read_held_out_file(work.request.held_out or "", work.rows).nonmembers
        statistics = work.statistics(work.target(), texts, str(needs[0]))
        reference = None
        if any(need.reference for need in needs):
            work.release_target()
            model = work.load(work.request.reference or "")
            reference = work.statistics(model, texts, str(needs[0]))
        work.fields["datasets"] = [""] * len(work.rows.texts)
        work.fields["held_out"] = HeldOutRows(
            datasets=[""] * len(texts), texts=texts, statistics=statistics, reference=reference
        )


HELD_OUT_ROWS: Provider[HeldOut] = _HeldOut()
"""The need of held-out rows is met by a file of texts; all rows are of one dataset."""
