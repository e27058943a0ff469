"""Views: token statistics of the texts, in one of their forms, under a model.

The model is the scored one, or the reference model, which has its own tokenizer. The statistics are
computed once for each model and view; every likelihood detector and setting is then a function of
the stored table. Inverse temperatures are columns of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from detect.access import Access
from detect.evidence.evidence import Evidence
from detect.evidence.needs import BASE, TWIN, EvidenceSources, Need, NeedCost, Scored, Work
from detect.settings import DetectSettings
from detect.target_identity import AnyModel, asking_step
from detect.token_statistics import STATISTICS_FILE, TEXT_COLUMNS
from detect.views import TEXT, view_names
from inject.examples.example import HELD_OUT, TEXTS
from inject.step import Step, find_function


def statistics_step(
    model: AnyModel,
    examples: Step,
    *,
    view: str,
    detect: DetectSettings,
    held_out: bool = False,
    of_ids: bool = False,
) -> Step:
    """Compute the token statistics of every example under one model, in one view.

    Args:
        model: the model to query.
        examples: the pool.
        view: the form of the texts.
        detect: settings for querying models.
        held_out: read the held-out rows instead of the examples.
        of_ids: the texts are token ids (`detect.engine.token_ids`).
    """
    return asking_step(
        model,
        detect,
        kind="statistics",
        label=f"{view}{'-held-out' if held_out else ''}-{model.label}",
        function=(
            "detect.targets.served_statistics:build"
            if model.served
            else "detect.engine.view_statistics:build"
        ),
        settings={
            "view": view,
            **({"rows": "held_out"} if held_out else {}),
            **({"ids": True} if of_ids else {}),
            "policy": detect.policy().record(),
        },
        inputs={"examples": examples},
        libraries=() if view == TEXT else ("unicode",),
        reads={"examples": HELD_OUT if held_out else TEXTS},
    )


def _family(view: str) -> str:
    """Return the common name of views that differ by a number."""
    return view.partition("-")[0]


@dataclass(frozen=True)
class View(Need):
    """Token statistics of a view under the target."""

    name: str
    """One of `detect.views.view_names`."""
    access: ClassVar[Access] = Access.TOKENS
    leaves: ClassVar[Mapping[str, Sequence[str]]] = {STATISTICS_FILE: TEXT_COLUMNS}
    parts: ClassVar[Mapping[str, str]] = {
        _family(name): rf"view-{_family(name)}(-\d+)?" for name in view_names() if name != TEXT
    }

    def __str__(self) -> str:
        return f"view {self.name}"

    @property
    def part(self) -> str | None:
        """The views of its name, such as all `swapped-N`; None for the text."""
        return None if self.name == TEXT else _family(self.name)

    @property
    def cost(self) -> NeedCost:
        """The target reads the view once."""
        return "target", 1

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the statistics of this view are present."""
        return self.name in evidence.statistics

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return a pass of the scored model."""
        step = statistics_step(
            scored.model,
            sources.examples,
            view=self.name,
            detect=sources.detect,
            of_ids=sources.of_ids,
        )
        return {f"view-{self.name}": step}

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the statistics of every view."""
        work.fields["statistics"] = {
            need.name: work.statistics(f"view-{need.name}") for need in needs
        }


@dataclass(frozen=True)
class InverseTemperature(Need):
    """Statistics of softmax(β · logits) in addition to those of the text under the target.

    The passes over the views compute them if the settings name them.
    """

    beta: float
    asks_model: ClassVar[bool] = False
    access: ClassVar[Access] = Access.DISTRIBUTION
    hint: ClassVar[str] = "Name it among detect.inverse_temperatures, such as [0.5, 2]."
    file_hint: ClassVar[str] = "Name it (inverse_temperatures=[2])."

    def __str__(self) -> str:
        return f"inverse temperature {self.beta}"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the statistics of every scored text have it."""
        rows = evidence.statistics.get(TEXT, ())
        return all(self.beta in row.tempered for row in rows if len(row))

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether the settings of the passes name it."""
        return self.beta in sources.detect.inverse_temperatures


@dataclass(frozen=True)
class Reference(Need):
    """Token statistics of the text under a reference model with its own tokenizer."""

    evidence: ClassVar[str | None] = "reference"
    access: ClassVar[Access] = Access.NONE
    hint: ClassVar[str] = "Name a reference model (detect.reference)."
    file_hint: ClassVar[str] = "Name a reference model (reference=PATH)."
    options: ClassVar[tuple[str, ...]] = ("reference",)

    def __str__(self) -> str:
        return "reference model"

    @property
    def cost(self) -> NeedCost:
        """The reference model reads the text once."""
        return "reference", 1

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether `detect.reference` names a model."""
        return has_reference(sources)

    def says_something(self, sources: EvidenceSources, scored: Scored) -> bool:
        """Return whether the reference model differs from the scored one."""
        named = sources.detect.reference
        if scored.role == "base":
            return named not in (None, BASE, TWIN)
        # The clean twin is trained to the end: against an earlier scored checkpoint it
        # also shows time.
        return named != TWIN or (scored.role != "clean" and scored.model.checkpoint is None)

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return a pass of the reference model."""
        other = reference_model(sources)
        if other is None:
            raise TypeError("a reference detector without a reference model")
        step = statistics_step(
            other, sources.examples, view=TEXT, detect=sources.detect, of_ids=sources.of_ids
        )
        return {"reference": step}

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the statistics under the reference model."""
        work.fields["reference"] = work.statistics("reference")


def has_reference(sources: EvidenceSources) -> bool:
    """Return whether `detect.reference` names a model; a path is not checked."""
    named = sources.detect.reference
    if named in (None, BASE, TWIN) and not sources.of_file:
        return reference_model(sources) is not None
    return named is not None


def reference_model(sources: EvidenceSources) -> "AnyModel | None":
    """Return the model that `detect.reference` names."""
    named = sources.detect.reference
    if sources.served_reference is not None:
        return sources.served_reference
    if named in (None, BASE, TWIN) and not sources.of_file:
        return {BASE: sources.base, TWIN: sources.twin}.get(str(named))
    return None if named is None else further_model(named, sources)


def further_model(path_or_id: str, sources: EvidenceSources) -> AnyModel:
    """Return a pretrained model, named by its content, from a step's input or settings."""
    # Found by name: naming and loading models is not part of the code that reads scores.
    return find_function("train.models.model_node:pretrained_node")(
        path_or_id, trust_remote_code=sources.trust_remote_code
    )
