"""Held-out rows: their token statistics under the model that is scored, and under others."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from detect.evidence.evidence import HeldOutRows
from detect.evidence.needs import HeldOut
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.evidence.reference import reference_model
from detect.evidence.views import statistics_step
from detect.views import TEXT
from inject.examples.example import read_held_out
from inject.examples.parts import HELD_OUT
from inject.step import Reading, Step, numbered_inputs

if TYPE_CHECKING:
    from train.models.model_node import ModelNode

_ROWS = "held_out"
_OF_TARGET, _OF_REFERENCE = "held_out-text", "held_out-reference"
_OF_SHADOW = "shadow-held_out"


class _HeldOutProvider(Provider[HeldOut]):
    hint = "Hold rows out (contaminants.held_out), such as 40 of each dataset."

    def available(self, sources: EvidenceSources) -> bool:
        return sources.held_out

    def inputs(self, need: HeldOut, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        def of(model: "ModelNode") -> Step:
            return statistics_step(
                model, sources.examples, view=TEXT, detect=sources.detect, held_out=True
            )

        found = {_ROWS: sources.examples, _OF_TARGET: of(scored.model)}
        other = reference_model(sources) if need.reference else None
        if other is not None:
            found[_OF_REFERENCE] = of(other)
        if need.shadows:
            found |= numbered_inputs([{_OF_SHADOW: of(one.model)} for one in sources.shadows])
        return found

    def reads(self, name: str) -> Reading | None:
        return HELD_OUT if name == _ROWS else None

    def read(self, needs: Sequence[HeldOut], work: Work) -> None:
        rows = read_held_out(work.inputs[_ROWS])
        shadows = sorted(name for name in work.inputs if name.endswith(f"-{_OF_SHADOW}"))
        referred = _OF_REFERENCE in work.inputs
        work.fields["datasets"] = [row.dataset for row in work.rows]
        work.fields["held_out"] = HeldOutRows(
            datasets=[row.dataset for row in rows],
            texts=[row.text for row in rows],
            statistics=work.statistics(_OF_TARGET, rows),
            reference=work.statistics(_OF_REFERENCE, rows) if referred else None,
            shadows=[work.statistics(name, rows) for name in shadows] if shadows else None,
        )


HELD_OUT_ROWS: Provider[HeldOut] = _HeldOutProvider()
"""The need of held-out rows is met by those of the pool."""
