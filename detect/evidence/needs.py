"""What a detector may need, each kind declared here and nowhere else.

Two providers say how a need is met: one beside this module by steps of an experiment, one of
`detect.score_file.evidence` for a file of rows. A new kind of need is declared here, with the field
of `Evidence` that holds it, and gets one file in each of the two folders; what makes it lies in
`detect.evidence_steps`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from detect.access import Access
from detect.evidence import Evidence
from detect.generation.continuations import GREEDY, ContinuationRequest
from detect.generation.guesses import PAPER, GuessRequest
from detect.policy import Adapters
from detect.views import TEXT


class NeedCost(NamedTuple):
    """What meeting a need takes of each text, in short words."""

    what: str
    """A model that reads the text, such as `target`, or a phrase, such as `24 prompts`."""
    times: int | None = None
    """How often the model reads the text; None where `what` is a phrase that says all."""


class Need:
    """Something that a detector must be given."""

    asks_model: ClassVar[bool]
    """Whether meeting it takes a pass of a model."""
    access: ClassVar[Access]
    """What of the target must be seen to meet it, at least."""

    @property
    def cost(self) -> NeedCost | None:
        """What it takes of each text; None where no model is asked.

        A kind of need that declares none is named itself, where a model is asked.
        """
        return NeedCost(str(self)) if self.asks_model else None

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the evidence holds it."""
        raise NotImplementedError


@dataclass(frozen=True)
class View(Need):
    """Token statistics of a view under the target."""

    name: str
    """One of `detect.views.view_names`."""
    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.TOKENS

    def __str__(self) -> str:
        return f"view {self.name}"

    @property
    def cost(self) -> NeedCost:
        """The target reads the view once."""
        return NeedCost("target", 1)

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the statistics of this view are there."""
        return self.name in evidence.statistics


@dataclass(frozen=True)
class InverseTemperature(Need):
    """Statistics of softmax(β · logits) beside those of the text under the target."""

    beta: float
    asks_model: ClassVar[bool] = False
    access: ClassVar[Access] = Access.DISTRIBUTION

    def __str__(self) -> str:
        return f"inverse temperature {self.beta}"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the statistics of every text that is scored have it."""
        rows = evidence.statistics.get(TEXT, ())
        return all(self.beta in row.tempered for row in rows if len(row))


@dataclass(frozen=True)
class Reference(Need):
    """Token statistics of the text under a reference model with its own tokenizer."""

    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.NONE

    def __str__(self) -> str:
        return "reference model"

    @property
    def cost(self) -> NeedCost:
        """The reference model reads the text once."""
        return NeedCost("reference", 1)

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the reference model's statistics are there."""
        return evidence.reference is not None


@dataclass(frozen=True)
class Frequency(Need):
    """Token counts of a reference corpus under the target's tokenizer."""

    asks_model: ClassVar[bool] = False
    access: ClassVar[Access] = Access.NONE

    def __str__(self) -> str:
        return "token frequencies"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether token counts are there."""
        return evidence.frequency is not None


@dataclass(frozen=True)
class Sides(Need):
    """Which examples are members, and their groups; for detectors that are trained."""

    asks_model: ClassVar[bool] = False
    access: ClassVar[Access] = Access.NONE

    def __str__(self) -> str:
        return "labels"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether it is known who is a member."""
        return evidence.members is not None


@dataclass(frozen=True)
class Shadows(Need):
    """Token statistics of the text under shadow models, of which it is known who saw whom."""

    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.NONE

    def __str__(self) -> str:
        return "shadow models"

    @property
    def cost(self) -> NeedCost:
        """Each shadow model is trained, and reads the text once."""
        return NeedCost("each shadow model (trained for it)", 1)

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether shadow models' statistics are there."""
        return evidence.shadows is not None


@dataclass(frozen=True)
class HeldOut(Need):
    """Rows that no model saw and nobody scores, with their token statistics under the target."""

    reference: bool = False
    """Under the reference model, too."""
    shadows: bool = False
    """Under every shadow model, too."""
    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.TOKENS

    def __str__(self) -> str:
        return "held-out rows"

    @property
    def cost(self) -> NeedCost:
        """The models read the held-out rows once, however many texts are scored."""
        return NeedCost("held-out rows once")

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the held-out rows are there, and what is asked for of them."""
        found = evidence.held_out
        return (
            found is not None
            and not (self.reference and found.reference is None)
            and not (self.shadows and found.shadows is None)
        )


@dataclass(frozen=True)
class Prefixed(Need):
    """Token statistics of the text behind shots: other texts of its dataset."""

    shots: int = 1
    """How many texts stand before it."""
    first: int = 0
    """Which one of the dataset's texts, in their random order, is the first of them."""
    known: Literal["nonmembers", "members"] = "nonmembers"
    """Held-out rows, which no model saw, or members that are known and of the split `tune`."""
    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.TOKENS

    def __str__(self) -> str:
        return "shots" if self.known == "nonmembers" else "known members as shots"

    @property
    def cost(self) -> NeedCost:
        """The target reads the text behind the shots, which it has read once for all texts."""
        return NeedCost("target behind shots", 1)

    @property
    def name(self) -> str:
        """What it is called in `Evidence.prefixed` and in the names of steps."""
        return f"{self.known}-{self.first}-{self.shots}"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the statistics behind these shots are there."""
        return self.name in evidence.prefixed


@dataclass(frozen=True)
class Tuned(Need):
    """Token statistics of the text under the target tuned on held-out rows by low-rank adapters."""

    view: str = TEXT
    """The form of the text that it reads."""
    adapters: Adapters = "all_linear"
    """Which layers are adapted, and by what weight decay."""
    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.WEIGHTS

    def __str__(self) -> str:
        return "target tuned on held-out rows"

    @property
    def cost(self) -> NeedCost:
        """The tuned target reads the text once."""
        return NeedCost("tuned target (tuned for it)", 1)

    @property
    def name(self) -> str:
        """What it is called in `Evidence.tuned` and in the names of steps."""
        return f"{self.view}-{self.adapters}"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the tuned model's statistics are there."""
        return self.name in evidence.tuned


@dataclass(frozen=True)
class Continuations(Need):
    """What the target writes after the beginning of each text."""

    request: ContinuationRequest = GREEDY
    """Which beginning, how many continuations, and how they are written."""
    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.TEXT

    def __str__(self) -> str:
        return "continuations"

    @property
    def cost(self) -> NeedCost:
        """The target writes token by token; texts of one request are written once."""
        return NeedCost("texts written", self.request.samples)

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether these continuations are there."""
        return self.request in evidence.continuations


@dataclass(frozen=True)
class Choices(Need):
    """Answers to a multiple choice between each passage and three paraphrases, in all orders.

    Letters are enough; of a local model there are the labels' probabilities, too.
    """

    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.TEXT

    def __str__(self) -> str:
        return "paraphrases to choose from"

    @property
    def cost(self) -> NeedCost:
        """The target is asked in every order of the four options."""
        return NeedCost("24 prompts with the text and three paraphrases")

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the answers are there."""
        return evidence.choices is not None


@dataclass(frozen=True)
class Gradients(Need):
    """Norms of the gradient of each text's loss under the target."""

    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.WEIGHTS

    def __str__(self) -> str:
        return "gradients"

    @property
    def cost(self) -> NeedCost:
        """The target reads the text forwards and backwards, which is some three plain passes."""
        return NeedCost("a backward pass of the target")

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the norms are there."""
        return evidence.gradients is not None


@dataclass(frozen=True)
class Guesses(Need):
    """What the target answers when parts of each text are masked."""

    request: GuessRequest = PAPER
    """Which parts are masked, and how the target is asked for them."""
    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.TEXT

    def __str__(self) -> str:
        return "guesses of masked words"

    @property
    def cost(self) -> NeedCost:
        """One answer for each part that is masked."""
        parts = 1 if self.request.method in ("question", "option") else self.request.limit
        return NeedCost("answers, at most", parts)

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether these guesses are there."""
        return self.request in evidence.guesses


@dataclass(frozen=True)
class NeighbourTexts(Need):
    """Texts that differ from the text in one token, and how likely the target finds each."""

    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.TOKENS

    def __str__(self) -> str:
        return "neighbours"

    @property
    def cost(self) -> NeedCost:
        """The target reads 25 neighbours, which a masked model proposes token by token."""
        return NeedCost("target", 25)

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the neighbours are there."""
        return evidence.neighbours is not None


@dataclass(frozen=True)
class Entities(Need):
    """The named entities of each text, found by a tagger that the user names."""

    asks_model: ClassVar[bool] = False
    access: ClassVar[Access] = Access.NONE

    def __str__(self) -> str:
        return "named entities"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether the entities are there."""
        return evidence.entities is not None


NEEDS: tuple[type[Need], ...] = (
    View,
    InverseTemperature,
    Reference,
    Frequency,
    Sides,
    Shadows,
    HeldOut,
    Prefixed,
    Tuned,
    Continuations,
    Guesses,
    Choices,
    Gradients,
    NeighbourTexts,
    Entities,
)
"""Every kind of need, in the order of messages."""


def cost_text(needs: Iterable[Need]) -> str:
    """Return what needs cost of each text: `target 2×, reference 1×`; `no model` for nothing."""
    costs = [cost for need in dict.fromkeys(needs) if (cost := need.cost) is not None]
    times: dict[str, int | None] = {}
    for what, count in costs:
        before = times.get(what)
        times[what] = count if before is None or count is None else before + count
    parts = [what if count is None else f"{what} {count}×" for what, count in times.items()]
    return ", ".join(parts) or "no model"
