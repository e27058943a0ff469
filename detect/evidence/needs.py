"""Base class of needs: their cost, the steps that meet them, and how their results are read.

A kind of need is a class in a file of this folder, and nowhere else: no table lists them, since a
detector imports those that it names. To add one, subclass `Need`, define `__str__` and `access`
(and `asks_model`, if no model is queried), return steps from `inputs`, and fill the evidence in
`read`.

A step that produces evidence names its function by a string, so the code that queries a model is
not part of the code that reads its answers. An edit of the engine recomputes scores only if the
statistics change.
"""

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import detect.evidence
from detect.access import Access
from detect.evidence.evidence import Evidence
from detect.settings import DetectSettings
from detect.target_identity import AnyModel
from detect.token_statistics import TokenStatistics, read_statistics
from inject.examples.example import Example
from inject.step import InputProjection, Step

Role = Literal["arm", "base", "clean", "retrained", "unlearned"]
"""A model's role in its arm: the contaminated model, the base model, a twin, or the contaminated
model after unlearning."""
BASE = "base"
"""Name of the base model in `detect.reference`."""
TWIN = "twin"
"""Name of the clean twin in `detect.reference`."""


NeedCost = tuple[str, int | None]
"""Cost of a need per text: a model that reads the text, such as `target`, and the number of passes;
or a complete phrase, such as `24 prompts`, and None."""


class Shadow(NamedTuple):
    """A shadow model, and the examples with its sides."""

    model: AnyModel
    membership: Step


@dataclass(frozen=True, kw_only=True)
class EvidenceSources:
    """Sources to meet needs with, of an experiment's arm or of a user's file of rows."""

    detect: DetectSettings
    examples: Step
    """The scored examples."""
    base: "AnyModel | None" = None
    """The base model, if there is one."""
    frequency: Step | None = None
    """Counted tokens."""
    twin: "AnyModel | None" = None
    """The clean twin of the arm."""
    shadows: tuple[Shadow, ...] = ()
    """The shadow models of the arm."""
    held_out: int = 0
    """Number of held-out rows of the dataset with most of them."""
    known_members: bool = False
    """Whether there are known members, to serve as shots."""
    labelled: bool = True
    """Whether membership labels are known."""
    paraphrased: bool = False
    """Whether examples have paraphrases."""
    of_file: bool = False
    """Whether a user's file is scored, with options from flags of `spikein detect`."""
    served_reference: "AnyModel | None" = None
    """The reference model of a user's file, if it is on a server."""
    trust_remote_code: bool = False
    """Whether further models may run their own code."""
    of_ids: bool = False
    """Whether the texts are token ids, to score as they are (`detect.engine.token_ids`)."""


class Scored(NamedTuple):
    """The scored model."""

    model: AnyModel
    role: Role


@dataclass(kw_only=True)
class Work:
    """The finished inputs while they become evidence, and the fields filled so far."""

    inputs: Mapping[str, Path]
    """Folders by name."""
    rows: Sequence[Example]
    fields: dict[str, Any] = field(default_factory=dict)
    """Fields of `Evidence`."""
    further: dict["Need", Sequence[Any]] = field(default_factory=dict)
    """Evidence of needs without a separate field, one entry per row."""

    def statistics(self, name: str, rows: Sequence[Example] | None = None) -> list[TokenStatistics]:
        """Return the token statistics of an input, one per row, or those of other given rows."""
        return self.rows_of(read_statistics(self.inputs[name]), rows)

    def rows_of(self, table: Mapping[str, Any], rows: Sequence[Example] | None = None) -> list[Any]:
        """Return each row's entry of a table by example id."""
        return [table[row.example_id] for row in (self.rows if rows is None else rows)]

    def evidence(self) -> Evidence:
        """Return the fields filled so far as evidence."""
        texts = [row.text for row in self.rows]
        return Evidence(**{"texts": texts, "statistics": {}, **self.fields}, further=self.further)


class Need:
    """A need of a detector, and how it is met."""

    asks_model: ClassVar[bool] = True
    """Whether it requires a pass of a model."""
    access: ClassVar[Access]
    """Lowest access level that it requires."""
    hint: ClassVar[str] = ""
    """Advice for the author of an experiment if nothing meets it."""
    file_hint: ClassVar[str] = ""
    """Advice for a user of `spikein detect`."""
    leaves: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Files of its artifacts that are part of a bundle, each with the columns that show a text:
    those of protected rows are omitted. Kinds that share a file name it once."""
    parts: ClassVar[Mapping[str, str]] = {}
    """Its inputs that a bundle includes only on request (`spikein bundle --include`): a pattern of
    their names, by the name of the part. Every bundle includes all others."""
    options: ClassVar[tuple[str, ...]] = ()
    """Keys of `DetectSettings` that only this kind uses."""
    evidence: ClassVar[str | None] = None
    """The field of `Evidence` that only this kind fills; None for `further`, by need."""

    @property
    def cost(self) -> NeedCost | None:
        """Its cost per text; None if no model is queried.

        A kind of need without a declared cost is named itself, if a model is queried.
        """
        return (str(self), None) if self.asks_model else None

    @property
    def part(self) -> str | None:
        """Its part of a bundle; None if every bundle includes it."""
        return next(iter(self.parts), None)

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the evidence contains it."""
        if self.evidence is None:
            return self in evidence.further
        return getattr(evidence, self.evidence) is not None

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether its sources are available."""
        return True

    def says_something(self, sources: EvidenceSources, scored: Scored) -> bool:
        """Return whether such evidence on this model is meaningful."""
        return True

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return the steps that meet it, by their name in the scores step."""
        return {}

    @classmethod
    def reads(cls, name: str) -> InputProjection | None:
        """Return the files to read from such an input; None for all."""
        return None

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Fill the evidence from finished steps for all needs of the kind."""


def every_kind() -> list[type[Need]]:
    """Return every kind of need in this folder; import all of its files."""
    for module in pkgutil.iter_modules(detect.evidence.__path__):
        import_module(f"{detect.evidence.__name__}.{module.name}")
    prefix = f"{detect.evidence.__name__}."
    return [kind for kind in Need.__subclasses__() if kind.__module__.startswith(prefix)]


def cost_text(needs: Iterable[Need]) -> str:
    """Return the cost of needs per text: `target 2×, reference 1×`; `no model` for none."""
    costs = [cost for need in dict.fromkeys(needs) if (cost := need.cost) is not None]
    times: dict[str, int | None] = {}
    for role, count in costs:
        before = times.get(role)
        times[role] = count if before is None or count is None else before + count
    parts = [role if count is None else f"{role} {count}×" for role, count in times.items()]
    return ", ".join(parts) or "no model"


def unmet(sources: EvidenceSources) -> Callable[[Need], str | None]:
    """Return a function from a need to advice about it; None if it can be met."""

    def hint(need: Need) -> str | None:
        if need.met_with(sources):
            return None
        return need.file_hint if sources.of_file else need.hint

    return hint


def says_something(needs: Sequence[Need], sources: EvidenceSources, scored: Scored) -> bool:
    """Return whether a detector with such needs is meaningful for a model.

    One that reads no model is scored once: with the base model if there is one.
    """
    if not any(need.asks_model for need in needs):
        if scored.role == "base":
            return True
        alone = sources.base is None and scored.model.checkpoint is None
        return scored.role == "arm" and alone
    return all(need.says_something(sources, scored) for need in needs)


def evidence_inputs(
    needs: Sequence[Need], sources: EvidenceSources, scored: Scored
) -> tuple[dict[str, Step], dict[str, InputProjection]]:
    """Return the steps that meet the needs, by name, and the files to read from those read in
    part."""
    inputs: dict[str, Step] = {}
    reads: dict[str, InputProjection] = {}
    for need in needs:
        for name, step in need.inputs(sources, scored).items():
            inputs[name] = step
            if (read := need.reads(name)) is not None:
                reads[name] = read
    return inputs, reads


def read_evidence(
    needs: Sequence[Need], inputs: Mapping[str, Path], rows: Sequence[Example]
) -> Evidence:
    """Return the evidence of finished steps, one entry per row of the examples."""
    work = Work(inputs=inputs, rows=rows)
    kinds: dict[type[Need], None] = dict.fromkeys(map(type, needs))
    for kind in kinds:
        kind.read([need for need in needs if type(need) is kind], work)
    return work.evidence()
