"""The tuned target: the model to test, tuned on the held-out file, beside which it is compared."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from detect.evidence.needs import Tuned
from detect.score_file.evidence.held_out import HINT, HINT_IN_CODE
from detect.score_file.evidence.provider import Provider, TargetProvider, Work
from detect.score_file.held_out_file import read_held_out_file
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest
from detect.token_statistics import TokenStatistics
from detect.views import view_text


class _Tuned(TargetProvider[Tuned]):
    hint = HINT
    hint_in_code = HINT_IN_CODE

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.held_out and read_held_out_file(request.held_out, rows).nonmembers

    def meet(self, needs: Sequence[Tuned], work: Work) -> None:
        from detect.engine.tuning import tuned_target

        texts = read_held_out_file(work.request.held_out or "", work.rows).nonmembers
        # Tuning wraps the model that it is given, so it gets one of its own.
        work.release_target()
        found: dict[str, Sequence[TokenStatistics]] = {}
        for adapters in dict.fromkeys(need.adapters for need in needs):
            with TemporaryDirectory() as folder:
                tuned = tuned_target(
                    Path(folder),
                    lambda: work.load(work.request.model, revision=work.request.revision),
                    texts,
                    work.request.policy,
                    adapters=adapters,
                    progress=lambda done, total: work.on_progress("tuning", done, total),
                )
            for need in (one for one in needs if one.adapters == adapters):
                shown = [view_text(need.view, text) for text in work.rows.texts]
                found[need.name] = work.statistics(tuned, shown, str(need))
        work.fields["tuned"] = found


TUNED: Provider[Tuned] = _Tuned()
"""The need of a tuned target is met by tuning the model to test on the held-out file."""
