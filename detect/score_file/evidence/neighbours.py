"""Neighbours: texts that a masked language model proposes, under the model to test."""

from collections.abc import Sequence

from detect.evidence.needs import NeighbourTexts
from detect.score_file.evidence.provider import Provider, Work, check_model
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest


class _Neighbours(Provider[NeighbourTexts]):
    hint = "Name a masked language model (--neighbours PATH)."
    hint_in_code = "Name a masked language model (options=ScoringOptions(neighbours=PATH))."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.neighbours

    def optional(self, request: ScoringRequest) -> str | None:
        return request.neighbours

    def check(self, request: ScoringRequest) -> None:
        from train.models.pretrained import find_model

        check_model(request.model, request, revision=request.revision)
        find_model(request.neighbours or "")

    def meet(self, needs: Sequence[NeighbourTexts], work: Work) -> None:
        from detect.engine.masked_model import load_masked_model
        from detect.evidence_steps.neighbours import neighbour_means
        from detect.neighbours.proposals import find_neighbours

        masked = load_masked_model(work.request.neighbours or "", device=work.request.device)
        neighbours = find_neighbours(
            masked,
            work.rows.texts,
            progress=lambda done, total: work.on_progress("neighbours", done, total),
        )
        del masked
        work.fields["neighbours"] = neighbour_means(
            work.target(),
            neighbours,
            work.request.policy,
            batch_tokens=work.request.batch_tokens,
            compile_mode=work.request.compile,
            progress=lambda done, total: work.on_progress("view neighbours", done, total),
        )


NEIGHBOURS: Provider[NeighbourTexts] = _Neighbours()
"""The need of neighbours is met by a masked language model and the model to test."""
