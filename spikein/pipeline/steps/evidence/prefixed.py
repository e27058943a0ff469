"""Shots: token statistics of each text behind other texts of its dataset."""

from collections.abc import Sequence

from detect.evidence import PrefixedStatistics
from detect.needs import Prefixed
from detect.shots import read_shots, shot_notes
from spikein.pipeline.graph import Step
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work
from spikein.pipeline.steps.statistics import prefixed_step


class _PrefixedProvider(Provider[Prefixed]):
    hint = (
        "Shots are held-out rows (contaminants.held_out); known members are those of the split "
        "`tune` (detect.tune_share above 0)."
    )

    def meets(self, need: Prefixed, sources: EvidenceSources) -> bool:
        known = sources.detect.tune_share > 0 if need.known == "members" else sources.held_out
        return bool(known)

    def inputs(self, need: Prefixed, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        step = prefixed_step(scored.model, sources.examples, need, sources.detect)
        return {f"behind-{need.name}": step, f"shots-{need.name}": step.inputs["shots"]}


PREFIXED: Provider[Prefixed] = _PrefixedProvider()
"""Needs of shots are met by held-out rows, or members of the split `tune`, before each text."""


def read_prefixed(needs: Sequence[Prefixed], work: Work) -> None:
    """Read the token statistics behind each choice of shots."""
    datasets = {row.dataset for row in work.rows}
    found = {}
    for need in needs:
        shots = read_shots(work.inputs[f"shots-{need.name}"].path)
        found[need.name] = PrefixedStatistics(
            statistics=work.statistics(f"behind-{need.name}"),
            notes=shot_notes(need, shots, datasets),
        )
    work.fields["prefixed"] = found
    work.fields["datasets"] = [row.dataset for row in work.rows]
