"""Shadow models: no file of rows brings them."""

from detect.needs import Shadows
from detect.score_file.evidence.provider import Provider
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest


class _Shadows(Provider[Shadows]):
    hint = "Shadow models are trained by experiments alone (`spikein run`)."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return None


SHADOWS: Provider[Shadows] = _Shadows()
"""The need of shadow models is met by experiments alone."""
