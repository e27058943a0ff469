"""What every kind of need is: what it costs, which steps meet it, how finished ones are read back.

A kind of need is a class in a file beside this one, and nowhere else: no table lists them, since a
detector imports those that it names. To add one, subclass `Need`, say `__str__`,
`asks_model` and `access`, return steps from `inputs`, and fill the evidence in `read`.

A step that makes evidence names its function by a string: what a model is asked with is no part of
the code that reads what it said. An edit of the engine makes scores anew through the statistics, if
these come out otherwise.
"""

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import detect.evidence
from detect.access import Access
from detect.evidence.evidence import Evidence
from detect.settings import DetectSettings
from detect.token_statistics import TokenStatistics, read_statistics
from inject.examples.example import Example
from inject.step import Reading, Step

if TYPE_CHECKING:
    from train.models.model_node import ModelNode

Role = Literal["arm", "base", "clean", "retrained", "unlearned"]
"""What a model is to its arm: the contaminated one, the base model, a twin, or made from the
contaminated one to forget."""
BASE = "base"
"""What `detect.reference` calls the base model."""
TWIN = "twin"
"""What `detect.reference` calls the clean twin."""


NeedCost = tuple[str, int | None]
"""What meeting a need takes of each text: a model that reads the text, such as `target`, and how
often; or a phrase that says all, such as `24 prompts`, and None."""


class Shadow(NamedTuple):
    """A shadow model, and the examples with the sides that hold for it."""

    model: "ModelNode"
    membership: Step


@dataclass(frozen=True, kw_only=True)
class EvidenceSources:
    """What an arm of an experiment, or a user's file of rows, has to meet needs with."""

    detect: DetectSettings
    examples: Step
    """What is scored."""
    base: "ModelNode | None" = None
    """The base model, where there is one."""
    frequency: Step | None = None
    """Counted tokens."""
    twin: "ModelNode | None" = None
    """The clean twin of the arm."""
    shadows: tuple[Shadow, ...] = ()
    """The shadow models of the arm."""
    held_out: int = 0
    """Held-out rows of the dataset that has most of them."""
    known_members: bool = False
    """Whether there are rows of which it is known that the model saw them, to serve as shots."""
    labelled: bool = True
    """Whether it is known who is a member."""
    paraphrased: bool = False
    """Whether examples bring paraphrases."""
    of_file: bool = False
    """Whether a user's file is scored, whose options are flags of `spikein detect`."""
    served_reference: "ModelNode | None" = None
    """The reference model of a user's file, where a server has it."""
    trust_remote_code: bool = False
    """Whether further models may bring code of their own."""


class Scored(NamedTuple):
    """The model that is scored."""

    model: "ModelNode"
    role: Role


@dataclass(kw_only=True)
class Work:
    """The finished inputs while they become evidence, and the fields that are filled by then."""

    inputs: Mapping[str, Path]
    """Folders by name."""
    rows: Sequence[Example]
    fields: dict[str, Any] = field(default_factory=dict)
    """Of `Evidence`."""
    further: dict["Need", Sequence[Any]] = field(default_factory=dict)
    """What kinds of need without a field of their own give, one entry a row."""

    def statistics(self, name: str, rows: Sequence[Example] | None = None) -> list[TokenStatistics]:
        """Return the token statistics of an input, one a row, or of other rows that are given."""
        return self.rows_of(read_statistics(self.inputs[name]), rows)

    def rows_of(self, table: Mapping[str, Any], rows: Sequence[Example] | None = None) -> list[Any]:
        """Return what a table by example id says of each row."""
        return [table[row.example_id] for row in (self.rows if rows is None else rows)]

    def evidence(self) -> Evidence:
        """Return what was filled so far as evidence."""
        texts = [row.text for row in self.rows]
        return Evidence(**{"texts": texts, "statistics": {}, **self.fields}, further=self.further)


class Need:
    """Something that a detector must be given, and how it is met."""

    asks_model: ClassVar[bool]
    """Whether meeting it takes a pass of a model."""
    access: ClassVar[Access]
    """What of the target must be seen to meet it, at least."""
    hint: ClassVar[str] = ""
    """What the author of an experiment does where nothing meets it."""
    file_hint: ClassVar[str] = ""
    """What a user of `spikein detect` does."""
    leaves: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Files of its artifacts that leave in a bundle, each with the columns that show a text: those
    of protected rows stay behind. Kinds that share a file name it once."""
    parts: ClassVar[Mapping[str, str]] = {}
    """What of its inputs a bundle holds only where it is asked for (`spikein bundle --with`): a
    pattern of their names, by what the part is called. Every bundle holds all others."""
    options: ClassVar[tuple[str, ...]] = ()
    """Keys of `DetectSettings` that are of use to this kind alone."""
    evidence: ClassVar[str | None] = None
    """The field of `Evidence` that it fills alone; None for `further`, by the need."""

    @property
    def cost(self) -> NeedCost | None:
        """What it takes of each text; None if no model is asked.

        A kind of need that declares none is named itself, where a model is asked.
        """
        return (str(self), None) if self.asks_model else None

    @property
    def part(self) -> str | None:
        """The part of a bundle that it is read from; None if every bundle holds it."""
        return next(iter(self.parts), None)

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the evidence holds it."""
        if self.evidence is None:
            return self in evidence.further
        return getattr(evidence, self.evidence) is not None

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether there is what it takes."""
        return True

    def says_something(self, sources: EvidenceSources, scored: Scored) -> bool:
        """Return whether such evidence on this model means anything."""
        return True

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return the steps that meet it, by the name that the scores' step knows them by."""
        return {}

    @classmethod
    def reads(cls, name: str) -> Reading | None:
        """Return what is read of such an input; None for everything."""
        return None

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Fill the evidence with what finished steps have made for all needs of the kind."""


def every_kind() -> list[type[Need]]:
    """Return every kind of need that lies in this folder; imports all of its files."""
    for module in pkgutil.iter_modules(detect.evidence.__path__):
        import_module(f"{detect.evidence.__name__}.{module.name}")
    ours = f"{detect.evidence.__name__}."
    return [kind for kind in Need.__subclasses__() if kind.__module__.startswith(ours)]


def cost_text(needs: Iterable[Need]) -> str:
    """Return what needs cost of each text: `target 2×, reference 1×`; `no model` for nothing."""
    costs = [cost for need in dict.fromkeys(needs) if (cost := need.cost) is not None]
    times: dict[str, int | None] = {}
    for what, count in costs:
        before = times.get(what)
        times[what] = count if before is None or count is None else before + count
    parts = [what if count is None else f"{what} {count}×" for what, count in times.items()]
    return ", ".join(parts) or "no model"


def unmet(sources: EvidenceSources) -> Callable[[Need], str | None]:
    """Return a function from a need to what can be done about it; None if it can be met."""

    def hint(need: Need) -> str | None:
        if need.met_with(sources):
            return None
        return need.file_hint if sources.of_file else need.hint

    return hint


def says_something(needs: Sequence[Need], sources: EvidenceSources, scored: Scored) -> bool:
    """Return whether a detector with such needs says anything about a model.

    One that looks at no model is scored once: beside the base model where there is one.
    """
    if not any(need.asks_model for need in needs):
        if scored.role == "base":
            return True
        alone = sources.base is None and scored.model.checkpoint is None
        return scored.role == "arm" and alone
    return all(need.says_something(sources, scored) for need in needs)


def evidence_inputs(
    needs: Sequence[Need], sources: EvidenceSources, scored: Scored
) -> tuple[dict[str, Step], dict[str, Reading]]:
    """Return the steps that meet the needs, by name, and what is read of those not read whole."""
    inputs: dict[str, Step] = {}
    reads: dict[str, Reading] = {}
    for need in needs:
        for name, step in need.inputs(sources, scored).items():
            inputs[name] = step
            if (read := need.reads(name)) is not None:
                reads[name] = read
    return inputs, reads


def read_evidence(
    needs: Sequence[Need], inputs: Mapping[str, Path], rows: Sequence[Example]
) -> Evidence:
    """Return the evidence that finished steps hold, one entry a row of the examples."""
    work = Work(inputs=inputs, rows=rows)
    kinds: dict[type[Need], None] = dict.fromkeys(map(type, needs))
    for kind in kinds:
        kind.read([need for need in needs if type(need) is kind], work)
    return work.evidence()
