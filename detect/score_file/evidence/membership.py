"""Who is a member: the labels of the rows; shadow models, which no file of rows brings."""

from collections.abc import Sequence

from detect.needs import Shadows, Sides
from detect.score_file.evidence.provider import Provider, Work
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest


class _Shadows(Provider[Shadows]):
    hint = "Shadow models are trained by experiments alone (`spikein run`)."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return None


SHADOWS: Provider[Shadows] = _Shadows()
"""The need of shadow models is met by experiments alone."""


class _Sides(Provider[Sides]):
    hint = "Give every row a label, 1 for members and 0 for non-members."
    hint_in_code = "Give every text a label, 1 for members and 0 for non-members (labels=…)."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return rows.labels

    def meet(self, needs: Sequence[Sides], work: Work) -> None:
        work.fields["members"], work.fields["groups"] = work.rows.labels, work.rows.groups


LABELS: Provider[Sides] = _Sides()
"""The need of labels is met by those of the file."""
