"""Labels: which rows are members, and which of them share a passage."""

from collections.abc import Sequence

from detect.needs import Sides
from detect.score_file.evidence.provider import Provider, Work
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest


class _Sides(Provider[Sides]):
    hint = "Give every row a label, 1 for members and 0 for non-members."
    hint_in_code = "Give every text a label, 1 for members and 0 for non-members (labels=…)."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return rows.labels

    def meet(self, needs: Sequence[Sides], work: Work) -> None:
        work.fields["members"], work.fields["groups"] = work.rows.labels, work.rows.groups


LABELS: Provider[Sides] = _Sides()
"""The need of labels is met by those of the file."""
