"""Membership: the labels of the examples, and shadow models, each of which saw different ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from detect.access import Access
from detect.evidence.evidence import ShadowModel
from detect.evidence.needs import EvidenceSources, Need, NeedCost, Scored, Work
from detect.evidence.views import statistics_step
from detect.views import TEXT
from inject.examples.example import UNSPLIT, Example, members, read_examples
from inject.step import InputProjection, Step, numbered_folders, numbered_inputs


def group_name(row: Example) -> str:
    """Return the group of a row among those of all datasets; rows of a file have no dataset."""
    return f"{row.dataset}\n{row.group}" if row.dataset else row.group


@dataclass(frozen=True)
class Sides(Need):
    """The members' labels and groups; for detectors that are trained."""

    asks_model: ClassVar[bool] = False
    evidence: ClassVar[str | None] = "members"
    access: ClassVar[Access] = Access.NONE
    file_hint: ClassVar[str] = "Give every row a label, 1 for members and 0 for non-members."

    def __str__(self) -> str:
        return "labels"

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether the rows have labels."""
        return sources.labelled

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the sides from the examples."""
        work.fields["members"] = [row.side == "member" for row in work.rows]
        work.fields["groups"] = [group_name(row) for row in work.rows]


@dataclass(frozen=True)
class Shadows(Need):
    """Token statistics of the text under shadow models with known members."""

    evidence: ClassVar[str | None] = "shadows"
    access: ClassVar[Access] = Access.NONE
    parts: ClassVar[Mapping[str, str]] = {"shadows": r"\d+-(shadow|membership)"}
    hint: ClassVar[str] = "Set twins.shadows to an even number such as 8."
    file_hint: ClassVar[str] = "Only experiments train shadow models (`spikein run`)."

    def __str__(self) -> str:
        return "shadow models"

    @property
    def cost(self) -> NeedCost:
        """Each shadow model is trained, and reads the text once."""
        return "each shadow model (trained for it)", 1

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether the arm has shadow models."""
        return bool(sources.shadows)

    def says_something(self, sources: EvidenceSources, scored: Scored) -> bool:
        """Return whether the model is trained like the shadow models, and to the end."""
        return scored.role != "base" and scored.model.checkpoint is None

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return a pass of each shadow model, and its members."""
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

    @classmethod
    def reads(cls, name: str) -> InputProjection | None:
        """Only the sides are read from a shadow model's members."""
        return UNSPLIT if name.endswith("-membership") else None

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the statistics under each shadow model, and its members."""
        names = sorted(name for name in work.inputs if name.endswith("-shadow"))
        work.fields["shadows"] = [
            _shadow_model(work, number, name) for number, name in enumerate(names)
        ]


def _shadow_model(work: Work, number: int, name: str) -> ShadowModel:
    rows = read_examples(numbered_folders(work.inputs, number)["membership"])
    seen = {row.example_id for row in members(rows)}
    return ShadowModel(
        statistics=work.statistics(name),
        inside=[row.example_id in seen for row in work.rows],
    )
