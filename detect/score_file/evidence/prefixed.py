"""Shots: token statistics of each text behind texts of the held-out file."""

from collections.abc import Sequence

from detect.evidence import PrefixedStatistics
from detect.evidence.needs import Prefixed
from detect.evidence.prefixed import shot_notes
from detect.evidence_steps.prefixed import choose_shots, statistics_behind
from detect.score_file.evidence.held_out import HINT, HINT_IN_CODE
from detect.score_file.evidence.provider import Provider, TargetProvider, Work
from detect.score_file.held_out_file import read_held_out_file
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest

_MEMBERS = " Rows of it with label 1 are known members."


class _Prefixed(TargetProvider[Prefixed]):
    hint = HINT + _MEMBERS
    hint_in_code = HINT_IN_CODE + _MEMBERS

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.held_out

    def meets(self, need: Prefixed, request: ScoringRequest, rows: LabelledRows) -> object:
        if request.held_out is None:
            return None
        return getattr(read_held_out_file(request.held_out, rows), need.known)

    def meet(self, needs: Sequence[Prefixed], work: Work) -> None:
        from detect.engine.forward_pass import scoring_context

        request = work.request
        known = read_held_out_file(request.held_out or "", work.rows)
        target, datasets = work.target(), [""] * len(work.rows.texts)
        made: dict[tuple[int, ...], PrefixedStatistics] = {}
        found = {}
        for need in needs:
            shots = {
                "": choose_shots(
                    need,
                    "",
                    getattr(known, need.known),
                    tokenizer=target.tokenizer,
                    context=scoring_context(target, request.policy),
                    policy=request.policy,
                )
            }
            ids = shots[""].ids
            if ids not in made:
                made[ids] = PrefixedStatistics(
                    statistics=statistics_behind(
                        target,
                        work.rows.texts,
                        datasets,
                        shots,
                        request.policy,
                        batch_tokens=request.batch_tokens,
                        compile_mode=request.compile,
                        progress=lambda done, total, what=str(need): work.on_progress(
                            what, done, total
                        ),
                    )
                )
            found[need.name] = PrefixedStatistics(
                statistics=made[ids].statistics, notes=shot_notes(need, shots, [""])
            )
        work.fields["prefixed"], work.fields["datasets"] = found, datasets


PREFIXED: Provider[Prefixed] = _Prefixed()
"""Needs of shots are met by the held-out file; a prefix that several of them share is read once."""
