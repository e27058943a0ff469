"""The tuned target: the model to test, tuned on the held-out file, beside which it is compared."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from detect.needs import Tuned
from detect.score_file.evidence.held_out import HINT, HINT_IN_CODE
from detect.score_file.evidence.provider import Provider, Work, check_model
from detect.score_file.held_out_file import read_held_out_file
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest


class _Tuned(Provider[Tuned]):
    hint = HINT
    hint_in_code = HINT_IN_CODE

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.held_out and read_held_out_file(request.held_out, rows).nonmembers

    def check(self, request: ScoringRequest) -> None:
        check_model(request.model, request, revision=request.revision)

    def meet(self, needs: Sequence[Tuned], work: Work) -> None:
        from detect.engine.tuning import tuned_target

        texts = read_held_out_file(work.request.held_out or "", work.rows).nonmembers
        # Tuning wraps the model that it is given, so it gets one of its own.
        work.release_target()
        with TemporaryDirectory() as folder:
            tuned = tuned_target(
                Path(folder),
                lambda: work.load(work.request.model, revision=work.request.revision),
                texts,
                work.request.policy,
                progress=lambda done, total: work.on_progress("tuning", done, total),
            )
        work.fields["tuned"] = work.statistics(tuned, work.rows.texts, str(needs[0]))


TUNED: Provider[Tuned] = _Tuned()
"""The need of a tuned target is met by tuning the model to test on the held-out file."""
