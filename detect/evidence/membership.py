"""Who is a member: the labels of the examples, and shadow models, of which each saw other ones."""

from collections.abc import Sequence

from detect.evidence.evidence import ShadowModel
from detect.evidence.needs import Shadows, Sides
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.evidence.views import statistics_step
from detect.views import TEXT
from inject.examples.example import members, read_examples
from inject.examples.parts import UNSPLIT
from inject.step import Reading, Step, numbered_folders, numbered_inputs


class _SideProvider(Provider[Sides]):
    def read(self, needs: Sequence[Sides], work: Work) -> None:
        work.fields["members"] = [row.side == "member" for row in work.rows]
        work.fields["groups"] = [f"{row.dataset}\n{row.group}" for row in work.rows]


SIDES: Provider[Sides] = _SideProvider()
"""The need of labels is met by the examples themselves."""


class _ShadowProvider(Provider[Shadows]):
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

    def read(self, needs: Sequence[Shadows], work: Work) -> None:
        names = sorted(name for name in work.inputs if name.endswith("-shadow"))
        work.fields["shadows"] = [
            _shadow_model(work, number, name) for number, name in enumerate(names)
        ]


SHADOWS: Provider[Shadows] = _ShadowProvider()
"""The need of shadow models is met by twins."""


def _shadow_model(work: Work, number: int, name: str) -> ShadowModel:
    """Return the token statistics under one shadow model, and whom it saw."""
    rows = read_examples(numbered_folders(work.inputs, number)["membership"])
    seen = {one.example_id for one in members(rows)}
    return ShadowModel(
        statistics=work.statistics(name),
        inside=[row.example_id in seen for row in work.rows],
    )
