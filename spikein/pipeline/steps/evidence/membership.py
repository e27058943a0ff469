"""Who is a member: the labels of the examples, and shadow models, of which each saw other ones."""

from collections.abc import Sequence

from detect.evidence import ShadowModel
from detect.needs import Shadows, Sides
from detect.views import TEXT
from inject.examples.example import members, read_examples
from inject.examples.parts import UNSPLIT
from inject.step import Reading
from spikein.pipeline.graph import Step
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work
from spikein.pipeline.steps.inputs import numbered_folders, numbered_inputs
from spikein.pipeline.steps.statistics import statistics_step


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


SHADOWS: Provider[Shadows] = _ShadowProvider()
"""The need of shadow models is met by twins."""


def read_shadows(needs: Sequence[Shadows], work: Work) -> None:
    """Read the token statistics under every shadow model, and who saw whom."""

    def shadow(number: int, name: str) -> ShadowModel:
        rows = read_examples(numbered_folders(work.inputs, number)["membership"])
        seen = {one.example_id for one in members(rows)}
        return ShadowModel(
            statistics=work.statistics(name),
            inside=[row.example_id in seen for row in work.rows],
        )

    names = sorted(name for name in work.inputs if name.endswith("-shadow"))
    work.fields["shadows"] = [shadow(number, name) for number, name in enumerate(names)]


def read_labels(needs: Sequence[Sides], work: Work) -> None:
    """Read who is a member, and the groups."""
    work.fields["members"] = [row.side == "member" for row in work.rows]
    work.fields["groups"] = [f"{row.dataset}\n{row.group}" for row in work.rows]
