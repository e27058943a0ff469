"""Token frequencies of texts that the user names."""

import os
from collections.abc import Sequence
from pathlib import Path

from detect.evidence.needs import Frequency
from detect.score_file.evidence.provider import Provider, Work, check_model
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest
from inject.reading.rows import source_files


class _Frequencies(Provider[Frequency]):
    hint = (
        "Name texts to count token frequencies in (--frequency FILE), for a model on this machine."
    )
    hint_in_code = (
        "Name texts to count token frequencies in (frequency=FILE), for a model on this machine."
    )

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return None if request.server is not None else request.frequency

    def optional(self, request: ScoringRequest) -> str | None:
        return request.frequency

    def check(self, request: ScoringRequest) -> None:
        check_model(request.model, request, revision=request.revision)
        source_files(request.frequency or "", what="frequency")

    def meet(self, needs: Sequence[Frequency], work: Work) -> None:
        from detect.evidence_steps.frequency import count_files

        work.fields["frequency"] = count_files(
            work.target().tokenizer,
            work.request.frequency or "",
            cache=work.request.cache or default_cache(),
        )


FREQUENCY: Provider[Frequency] = _Frequencies()
"""The need of token frequencies is met by counting a file of texts."""


def default_cache() -> Path:
    """Return the folder for counted frequencies, below `XDG_CACHE_HOME` or `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "spikein" / "frequency"
