"""How the graph meets each need of a detector (`detect.needs`).

For each kind an entry of `PROVIDERS` says whether it can be met with what an arm has and by which
steps, and an entry of `READERS` how the finished artifacts become what detectors are given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from detect.detector import Detector
from detect.evidence import Evidence, ShadowModel
from detect.needs import Frequency, Need, Reference, Shadows, Sides, View
from detect.settings import DetectSettings
from detect.token_frequency import load_frequency
from detect.token_statistics import TokenStatistics, read_statistics
from detect.views import TEXT
from inject.examples.example import Example, members, read_examples
from spikein.pipeline.graph import Step
from spikein.pipeline.steps.artifact_parts import UNSPLIT
from spikein.pipeline.steps.inputs import numbered_folders, numbered_inputs
from spikein.pipeline.steps.statistics import statistics_step
from spikein.pipeline.steps.training import ModelNode
from spikein.store.artifact import Artifact
from spikein.store.manifest import Reading

Role = Literal["arm", "base", "clean", "retrained"]
"""What a model is to its arm: the contaminated one, the base model, a twin."""
BASE = "base"
"""What `detect.reference` calls the base model."""
TWIN = "twin"
"""What `detect.reference` calls the clean twin."""
NeedT = TypeVar("NeedT", bound=Need)


class Shadow(NamedTuple):
    """A shadow model, and the examples with the sides that hold for it."""

    model: ModelNode
    membership: Step


@dataclass(frozen=True, kw_only=True)
class EvidenceSources:
    """What an arm has to meet needs with."""

    detect: DetectSettings
    examples: Step
    """What is scored."""
    base: ModelNode | None = None
    """The base model, where there is one."""
    frequency: Step | None = None
    """Counted tokens."""
    twin: ModelNode | None = None
    """The clean twin of the arm."""
    shadows: tuple[Shadow, ...] = ()
    """The shadow models of the arm."""


class Scored(NamedTuple):
    """The model that is scored."""

    model: ModelNode
    role: Role


class Provider(Generic[NeedT]):
    """How needs of one kind are met."""

    hint: str = ""
    """What a user does about a need of the kind that nothing meets."""

    def available(self, sources: EvidenceSources) -> bool:
        """Return whether the arm has what it takes."""
        return True

    def says_something(self, sources: EvidenceSources, scored: Scored) -> bool:
        """Return whether such evidence on this model means anything."""
        return True

    def inputs(self, need: NeedT, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return the steps that meet it, by the name that the scores' step knows them by."""
        return {}

    def reads(self, name: str) -> Reading | None:
        """Return what is read of such an input; None for everything."""
        return None


class _Views(Provider[View]):
    def inputs(self, need: View, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        step = statistics_step(
            scored.model, sources.examples, view=need.name, detect=sources.detect
        )
        return {f"view-{need.name}": step}


class _References(Provider[Reference]):
    hint = "Name a reference model (detect.reference)."

    def available(self, sources: EvidenceSources) -> bool:
        return _reference(sources) is not None

    def says_something(self, sources: EvidenceSources, scored: Scored) -> bool:
        named = sources.detect.reference
        if scored.role == "base":
            return named not in (None, BASE, TWIN)
        # The clean twin was trained to the end: beside a model on the way it shows time, too.
        return named != TWIN or (scored.role != "clean" and scored.model.checkpoint is None)

    def inputs(self, need: Reference, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        other = _reference(sources)
        if other is None:
            raise TypeError("a reference detector without a reference model")
        return {
            "reference": statistics_step(other, sources.examples, view=TEXT, detect=sources.detect)
        }


class _Frequencies(Provider[Frequency]):
    hint = "Name texts to count token frequencies in (detect.frequency)."

    def available(self, sources: EvidenceSources) -> bool:
        return sources.frequency is not None

    def inputs(self, need: Frequency, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        return {"frequency": sources.frequency} if sources.frequency else {}


class _Shadows(Provider[Shadows]):
    hint = "Set twins.shadows to an even number such as 8."

    def available(self, sources: EvidenceSources) -> bool:
        return bool(sources.shadows)

    def says_something(self, sources: EvidenceSources, scored: Scored) -> bool:
        # Shadow models are trained as the arm's model is, and to the end.
        return scored.role != "base" and scored.model.checkpoint is None

    def inputs(self, need: Shadows, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        return numbered_inputs(
            [
                {
                    "shadow": statistics_step(
                        shadow.model, sources.examples, view=TEXT, detect=sources.detect
                    ),
                    "membership": shadow.membership,
                }
                for shadow in sources.shadows
            ]
        )

    def reads(self, name: str) -> Reading | None:
        return UNSPLIT if name.endswith("-membership") else None


PROVIDERS: Mapping[type[Need], Provider[Any]] = {
    View: _Views(),
    Reference: _References(),
    Frequency: _Frequencies(),
    Sides: Provider[Sides](),
    Shadows: _Shadows(),
}


def unmet(sources: EvidenceSources) -> Callable[[Need], str | None]:
    """Return a function from a need to what can be done about it; None where it can be met."""

    def hint(need: Need) -> str | None:
        provider = PROVIDERS[type(need)]
        return None if provider.available(sources) else provider.hint

    return hint


def says_something(detector: Detector, sources: EvidenceSources, scored: Scored) -> bool:
    """Return whether a detector says anything about a model.

    One that looks at no model is scored once: beside the base model where there is one.
    """
    if not any(need.asks_model for need in detector.needs):
        if scored.role == "base":
            return True
        alone = sources.base is None and scored.model.checkpoint is None
        return scored.role == "arm" and alone
    return all(PROVIDERS[type(need)].says_something(sources, scored) for need in detector.needs)


def evidence_inputs(
    needs: Sequence[Need], sources: EvidenceSources, scored: Scored
) -> tuple[dict[str, Step], dict[str, Reading]]:
    """Return the steps that meet the needs, by name, and what is read of those not read whole."""
    inputs: dict[str, Step] = {}
    reads: dict[str, Reading] = {}
    for need in needs:
        provider = PROVIDERS[type(need)]
        for name, step in provider.inputs(need, sources, scored).items():
            inputs[name] = step
            if (read := provider.reads(name)) is not None:
                reads[name] = read
    return inputs, reads


def _reference(sources: EvidenceSources) -> ModelNode | None:
    """Return the model that `detect.reference` names."""
    named = sources.detect.reference
    if named in (None, BASE, TWIN):
        return {BASE: sources.base, TWIN: sources.twin}.get(str(named))
    from train.models.pretrained import model_identity

    return ModelNode(pretrained=named, identity=model_identity(str(named)))


@dataclass(kw_only=True)
class Work:
    """The finished inputs while they become evidence, and the fields that are filled by then."""

    inputs: Mapping[str, Artifact]
    rows: Sequence[Example]
    fields: dict[str, Any] = field(default_factory=dict)

    def statistics(self, name: str) -> list[TokenStatistics]:
        """Return the token statistics of an input, one a row."""
        table = read_statistics(self.inputs[name].path)
        return [table[row.example_id] for row in self.rows]


def _read_views(needs: Sequence[View], work: Work) -> None:
    work.fields["statistics"] = {need.name: work.statistics(f"view-{need.name}") for need in needs}


def _read_reference(needs: Sequence[Reference], work: Work) -> None:
    work.fields["reference"] = work.statistics("reference")


def _read_frequency(needs: Sequence[Frequency], work: Work) -> None:
    work.fields["frequency"] = load_frequency(work.inputs["frequency"].path)


def _read_sides(needs: Sequence[Sides], work: Work) -> None:
    work.fields["members"] = [row.side == "member" for row in work.rows]
    work.fields["groups"] = [f"{row.dataset}\n{row.group}" for row in work.rows]


def _read_shadows(needs: Sequence[Shadows], work: Work) -> None:
    def shadow(number: int, name: str) -> ShadowModel:
        rows = read_examples(numbered_folders(work.inputs, number)["membership"])
        seen = {one.example_id for one in members(rows)}
        return ShadowModel(
            statistics=work.statistics(name),
            inside=[row.example_id in seen for row in work.rows],
        )

    names = sorted(name for name in work.inputs if name.endswith("-shadow"))
    work.fields["shadows"] = [shadow(number, name) for number, name in enumerate(names)]


# Apart from `PROVIDERS`, so that the code which makes statistics is no part of the code that reads
# them: an edit there makes the scores anew through the statistics, if those come out otherwise.
READERS: Mapping[type[Need], Callable[[Any, Work], None]] = {
    View: _read_views,
    Reference: _read_reference,
    Frequency: _read_frequency,
    Sides: _read_sides,
    Shadows: _read_shadows,
}


def read_evidence(
    needs: Sequence[Need], inputs: Mapping[str, Artifact], rows: Sequence[Example]
) -> Evidence:
    """Return the evidence that finished steps hold, one entry a row of the examples."""
    work = Work(inputs=inputs, rows=rows)
    for kind, read in READERS.items():
        if asked := [need for need in needs if isinstance(need, kind)]:
            read(asked, work)
    return Evidence(**{"texts": [row.text for row in rows], "statistics": {}, **work.fields})
