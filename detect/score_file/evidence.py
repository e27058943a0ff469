"""How a file of rows meets each need (`detect.needs`): one entry of `PROVIDERS` a kind.

Everything is checked before the work begins, and met in the order of `PROVIDERS`, so that no more
than one model is held at a time.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from detect.evidence import Evidence
from detect.needs import Frequency, Need, Reference, Shadows, Sides, View
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest
from detect.token_statistics import TokenStatistics
from detect.views import view_text
from inject.reading.rows import source_files

if TYPE_CHECKING:
    from detect.engine.target import Target

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, tokens done, tokens in all)."""
NeedT = TypeVar("NeedT", bound=Need)


@dataclass(kw_only=True)
class Work:
    """What is at hand while needs are met, and the fields of `Evidence` that are filled by then."""

    request: ScoringRequest
    rows: LabelledRows
    on_progress: Progress
    fields: dict[str, Any] = field(default_factory=dict)
    _target: "Target | None" = None

    def target(self) -> "Target":
        """Return the model to test, loaded when it is first asked for."""
        if self._target is None:
            self._target = self.load(self.request.model, revision=self.request.revision)
        return self._target

    def release_target(self) -> None:
        """Free the model to test, which nothing needs any more."""
        self._target = None

    def load(self, model: str, *, revision: str | None = None) -> "Target":
        """Load a model as the request has it."""
        from detect.engine.target import load_target

        return load_target(
            model,
            revision=revision,
            trust_remote_code=self.request.trust_remote_code,
            device=self.request.device,
            dtype=self.request.dtype,
        )

    def statistics(self, model: "Target", texts: Sequence[str], what: str) -> list[TokenStatistics]:
        """Make the token statistics of texts under a model."""
        from detect.engine.forward_pass import token_statistics

        return token_statistics(
            model,
            list(texts),
            self.request.policy,
            batch_tokens=self.request.batch_tokens,
            compile_mode=self.request.compile,
            progress=lambda done, total: self.on_progress(what, done, total),
        )


class Provider(Generic[NeedT]):
    """How needs of one kind are met."""

    hint: str
    """What a user of the command does about a need of the kind that nothing meets."""
    hint_in_code: str | None = None
    """What a caller of `spikein.score_texts` does; None: the same."""

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        """Return what the user gave to meet it; nothing, or something empty, where he gave none."""
        raise NotImplementedError

    def optional(self, request: ScoringRequest) -> str | None:
        """Return what the user gave for this alone, which is of no use where nobody needs it."""
        return None

    def check(self, request: ScoringRequest) -> None:
        """Find out, before the work, whether it can be met.

        Raises:
            InputError: it cannot.
        """

    def meet(self, needs: Sequence[NeedT], work: Work) -> None:
        """Fill the fields of `Evidence`."""


class _Frequencies(Provider[Frequency]):
    hint = "Name texts to count token frequencies in (--frequency FILE)."
    hint_in_code = "Name texts to count token frequencies in (frequency=FILE)."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.frequency

    def optional(self, request: ScoringRequest) -> str | None:
        return request.frequency

    def check(self, request: ScoringRequest) -> None:
        _check_model(request.model, request, revision=request.revision)
        source_files(request.frequency or "", what="frequency")

    def meet(self, needs: Sequence[Frequency], work: Work) -> None:
        from detect.token_frequency import count_files

        work.fields["frequency"] = count_files(
            work.target().tokenizer,
            work.request.frequency or "",
            cache=work.request.cache or default_cache(),
        )


class _Views(Provider[View]):
    hint = ""

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.model

    def check(self, request: ScoringRequest) -> None:
        _check_model(request.model, request, revision=request.revision)

    def meet(self, needs: Sequence[View], work: Work) -> None:
        work.fields["statistics"] = {
            need.name: work.statistics(
                work.target(),
                [view_text(need.name, text) for text in work.rows.texts],
                str(need),
            )
            for need in needs
        }


class _References(Provider[Reference]):
    hint = "Name a reference model (--reference PATH)."
    hint_in_code = "Name a reference model (reference=PATH)."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return request.reference

    def optional(self, request: ScoringRequest) -> str | None:
        return request.reference

    def check(self, request: ScoringRequest) -> None:
        _check_model(request.reference or "", request)

    def meet(self, needs: Sequence[Reference], work: Work) -> None:
        work.release_target()
        model = work.load(work.request.reference or "")
        work.fields["reference"] = work.statistics(model, work.rows.texts, str(needs[0]))


class _Sides(Provider[Sides]):
    hint = "Give every row a label, 1 for members and 0 for non-members."
    hint_in_code = "Give every text a label, 1 for members and 0 for non-members (labels=…)."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return rows.labels

    def meet(self, needs: Sequence[Sides], work: Work) -> None:
        work.fields["members"], work.fields["groups"] = work.rows.labels, work.rows.groups


class _Shadows(Provider[Shadows]):
    hint = "Shadow models are trained by experiments alone (`spikein run`)."

    def given(self, request: ScoringRequest, rows: LabelledRows) -> object:
        return None


PROVIDERS: Mapping[type[Need], Provider[Any]] = {
    Frequency: _Frequencies(),
    View: _Views(),
    Reference: _References(),
    Sides: _Sides(),
    Shadows: _Shadows(),
}


def unmet(
    request: ScoringRequest, rows: LabelledRows, *, in_code: bool
) -> Callable[[Need], str | None]:
    """Return a function from a need to what can be done about it; None where it can be met.

    Args:
        request: what is asked for.
        rows: of the file.
        in_code: hints name arguments of `spikein.score_texts`, in place of flags.
    """

    def hint(need: Need) -> str | None:
        provider = PROVIDERS[type(need)]
        if provider.given(request, rows):
            return None
        return (in_code and provider.hint_in_code) or provider.hint

    return hint


def check_needs(request: ScoringRequest, needs: Sequence[Need]) -> tuple[str, ...]:
    """Find out, before the work, whether models and texts are there; return what is not used.

    Raises:
        InputError: a model or a file that cannot be used.
    """
    notes = []
    for kind, provider in PROVIDERS.items():
        if any(isinstance(need, kind) for need in needs):
            provider.check(request)
        elif given := provider.optional(request):
            notes.append(f"{given} is not used: no detector asked for needs {kind()}")
    return tuple(notes)


def read_evidence(
    request: ScoringRequest, rows: LabelledRows, needs: Sequence[Need], on_progress: Progress
) -> Evidence:
    """Meet the needs."""
    work = Work(request=request, rows=rows, on_progress=on_progress)
    for kind, provider in PROVIDERS.items():
        if asked := [need for need in needs if isinstance(need, kind)]:
            provider.meet(asked, work)
    return Evidence(**{"texts": rows.texts, "statistics": {}, **work.fields})


def default_cache() -> Path:
    """Return the folder for counted frequencies, below `XDG_CACHE_HOME` or `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "spikein" / "frequency"


def _check_model(name: str, request: ScoringRequest, *, revision: str | None = None) -> None:
    from train.models.pretrained import code_options, find_model
    from train.models.weight_check import check_causal

    trusted = request.trust_remote_code
    found = find_model(name, revision=revision, trust_remote_code=trusted)
    check_causal(found.path, name, code_options(found, name, trust_remote_code=trusted))
