"""What every provider of evidence is: what the user gives to meet a need, and how it is met.

A kind of need that takes more than a few lines has a file of its own beside this one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from detect.evidence.needs import Need
from detect.score_file.labelled_rows import LabelledRows
from detect.score_file.request import ScoringRequest
from detect.token_statistics import TokenStatistics
from inject.errors import InputError

if TYPE_CHECKING:
    from detect.engine.target import Target
    from detect.targets.text_model import TextModel

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
    asked: "TextModel | None" = None
    """The model to test as one that writes; None: it is opened when it is first asked for."""
    _target: "Target | None" = None

    def target(self) -> "Target":
        """Return the model to test, loaded when it is first asked for.

        Raises:
            InputError: it cannot be loaded, or is on a server.
        """
        if self.request.server is not None:
            raise InputError(
                "a detector reads the model itself, and a server shows what it writes",
                where=self.request.server.base_url,
                hint="Score with a local model.",
            )
        if self._target is None:
            self._target = self.load(self.request.model, revision=self.request.revision)
        return self._target

    def text_model(self) -> "TextModel":
        """Return the model to test as one that writes."""
        if self.asked is not None:
            return self.asked
        from detect.targets.local import LocalTextModel

        return LocalTextModel(self.target())

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
            device_map=self.request.device_map,
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

    def meets(self, need: NeedT, request: ScoringRequest, rows: LabelledRows) -> object:
        """Return what the user gave to meet this need of the kind; nothing where he gave none."""
        return self.given(request, rows)

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


def check_model(name: str, request: ScoringRequest, *, revision: str | None = None) -> None:
    """Find out, before the work, whether a model is there and looks back only.

    Of a model that is served nothing is known before it is asked.

    Raises:
        InputError: it is not.
    """
    if request.server is not None and name == request.model:
        return
    from train.models.pretrained import code_options, find_model
    from train.models.weight_check import check_causal

    trusted = request.trust_remote_code
    found = find_model(name, revision=revision, trust_remote_code=trusted)
    check_causal(found.path, name, code_options(found, name, trust_remote_code=trusted))


class TargetProvider(Provider[NeedT]):
    """How needs of one kind are met by the model to test."""

    def check(self, request: ScoringRequest) -> None:
        """Find out, before the work, whether the model is there; raises as `check_model`."""
        check_model(request.model, request, revision=request.revision)
