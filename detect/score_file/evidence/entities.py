"""Named entities: found in the texts by a tagger that the user names."""

from collections.abc import Sequence

from detect.named_entities.tagger import find_entities, find_tagger
from detect.needs import Entities
from detect.score_file.evidence.provider import Provider, Work
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest


class _Entities(Provider[Entities]):
    hint = "Name a spaCy pipeline that finds named entities (--tagger NAME)."
    hint_in_code = (
        "Name a spaCy pipeline that finds named entities (options=ScoringOptions(tagger=NAME))."
    )

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.tagger

    def optional(self, request: ScoringRequest) -> str | None:
        return request.tagger

    def check(self, request: ScoringRequest) -> None:
        find_tagger(request.tagger or "")

    def meet(self, needs: Sequence[Entities], work: Work) -> None:
        work.fields["entities"] = find_entities(
            work.request.tagger or "",
            work.rows.texts,
            progress=lambda done, total: work.on_progress(str(needs[0]), done, total),
        )


ENTITIES: Provider[Entities] = _Entities()
"""The need of named entities is met by the tagger that the user names."""
