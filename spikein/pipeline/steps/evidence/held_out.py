"""Held-out rows: their token statistics under the model that is scored, and under others."""

from collections.abc import Sequence

from detect.evidence import HeldOutRows
from detect.needs import HeldOut
from detect.views import TEXT
from inject.examples.example import read_held_out
from inject.examples.parts import HELD_OUT
from inject.step import Reading
from spikein.pipeline.graph import Step
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work
from spikein.pipeline.steps.evidence.reference import reference_model
from spikein.pipeline.steps.inputs import numbered_inputs
from spikein.pipeline.steps.statistics import statistics_step
from spikein.pipeline.steps.training import ModelNode

ROWS = "held_out"
OF_TARGET, OF_REFERENCE, OF_SHADOW = "held_out-text", "held_out-reference", "shadow-held_out"


class _HeldOutProvider(Provider[HeldOut]):
    hint = "Hold rows out (contaminants.held_out), such as 40 of each dataset."

    def available(self, sources: EvidenceSources) -> bool:
        return sources.held_out

    def inputs(self, need: HeldOut, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        def of(model: ModelNode) -> Step:
            return statistics_step(
                model, sources.examples, view=TEXT, detect=sources.detect, held_out=True
            )

        found = {ROWS: sources.examples, OF_TARGET: of(scored.model)}
        other = reference_model(sources) if need.reference else None
        if other is not None:
            found[OF_REFERENCE] = of(other)
        if need.shadows:
            found |= numbered_inputs([{OF_SHADOW: of(one.model)} for one in sources.shadows])
        return found

    def reads(self, name: str) -> Reading | None:
        return HELD_OUT if name == ROWS else None


HELD_OUT_ROWS: Provider[HeldOut] = _HeldOutProvider()
"""The need of held-out rows is met by those of the pool."""


def read_held_out_rows(needs: Sequence[HeldOut], work: Work) -> None:
    """Read the held-out rows and what models make of them, and the datasets of the scored rows."""
    rows = read_held_out(work.inputs[ROWS].path)
    shadows = sorted(name for name in work.inputs if name.endswith(f"-{OF_SHADOW}"))
    work.fields["datasets"] = [row.dataset for row in work.rows]
    work.fields["held_out"] = HeldOutRows(
        datasets=[row.dataset for row in rows],
        texts=[row.text for row in rows],
        statistics=work.statistics(OF_TARGET, rows),
        reference=work.statistics(OF_REFERENCE, rows) if OF_REFERENCE in work.inputs else None,
        shadows=[work.statistics(name, rows) for name in shadows] if shadows else None,
    )
