"""The step of scores: every detector and setting over every example, for one model.

Which detectors run follows from their needs and from what the arm has to meet them with
(`spikein.pipeline.steps.evidence`). A detector counts in the identity by its source: a built-in one
by the code that it leads to, a plug-in by the digest of what was loaded.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from detect.detector_settings import (
    DetectorSetting,
    names_all,
    needs_of,
    parse_detectors,
    plugin_digests,
    repeated_detectors,
    with_control,
    with_grids,
)
from detect.needs import Need
from detect.scores.table import write_scores
from detect.scoring import LeftOut, Runnable, runnable, score_rows, settings_left_out
from inject.examples.example import read_examples
from inject.examples.parts import UNSPLIT
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.measured_cost import COST_FILE, MeasuredCost, write_cost
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Role, Scored
from spikein.pipeline.steps.evidence.providers import (
    evidence_inputs,
    read_evidence,
    says_something,
    unmet,
)
from spikein.pipeline.steps.training import ModelNode


def scores_step(model: ModelNode, sources: EvidenceSources, *, role: Role) -> Step | None:
    """Score every example under every detector and every setting of its grid.

    Args:
        model: the target.
        sources: what its arm has.
        role: what the model is to its arm.

    Returns:
        The step, or None where no detector is left: a base model asked only for `reference`.
    """
    scored = Scored(model, role)
    asked = detectors_of(sources, scored)
    if not asked:
        return None
    settings = with_grids(asked)
    needs = needs_of(settings)
    record = {
        "policy": sources.detect.policy().record(),
        "notes": list(asked_settings(sources).notes),
        "defaults": defaults(asked),
    }
    build = _builder(settings, needs, record)
    inputs, reads = evidence_inputs(needs, sources, scored)
    plugins = plugin_digests(settings)
    return Step(
        kind="scores",
        label=model.label,
        settings={
            "detectors": [f"{one.name}:{one.text}" for one in settings],
            "defaults": defaults(asked),
            **({"plugins": plugins} if plugins else {}),
        },
        inputs={**inputs, "examples": sources.examples},
        libraries=tuple(sorted({name for one in asked for name in one.detector.libraries})),
        code=(root(build), *(begin for one in asked for begin in one.known.code)),
        reads={**reads, "examples": UNSPLIT},
        volatile=(COST_FILE,),
        build=build,
    )


def _builder(
    settings: Sequence[DetectorSetting], needs: Sequence[Need], record: Mapping[str, Any]
) -> Callable[[StepContext], None]:
    """Return the step's `build`, apart from the code that decides which detectors run.

    That is in the step's settings; were its code a part of the identity, an edit of the engine,
    which it leads to, would make scores anew of statistics that came out equal.
    """

    def build(context: StepContext) -> None:
        rows = read_examples(context.inputs["examples"].path)
        seconds: dict[str, float] = {}
        scores = score_rows(
            [row.example_id for row in rows],
            read_evidence(needs, context.inputs, rows),
            settings,
            protected=context.inputs["examples"].manifest.protected,
            on_scored=seconds.__setitem__,
        )
        notes = [*record["notes"], *scores.notes]
        write_scores(context.out, scores.table, record={**record, "notes": notes})
        write_cost(context.out, MeasuredCost(scoring_seconds=seconds))

    return build


def asked_settings(sources: EvidenceSources) -> Runnable:
    """Return the detectors that can run and the control, and notes on those of `all` that cannot.

    Raises:
        InputError: a detector that was named lacks what it needs.
    """
    asked = sources.detect.detectors
    found = runnable(parse_detectors(asked), unmet(sources), leave_out=names_all(asked))
    return Runnable(with_control(found.settings), (*repeated_detectors(asked), *found.notes))


def detectors_left_out(sources: EvidenceSources) -> list[LeftOut]:
    """Return the detectors of `all` that cannot run with what the arm has."""
    return settings_left_out(parse_detectors(sources.detect.detectors), unmet(sources))


def detectors_of(sources: EvidenceSources, scored: Scored) -> list[DetectorSetting]:
    """Return the detectors that score a model, with the parameters that were asked for."""
    return [one for one in asked_settings(sources).settings if says_something(one, sources, scored)]


def defaults(asked: Sequence[DetectorSetting]) -> dict[str, str]:
    """Return each detector's default setting: the first that was asked for."""
    found: dict[str, str] = {}
    for one in asked:
        found.setdefault(one.name, one.text)
    return found
