"""The step of scores: every detector and setting over every example, for one model.

Which detectors run follows from their needs and from what the arm has to meet them with
(`detect.evidence`). A detector counts in the identity by its source: a built-in one by the modules
that its own imports, a plug-in by the digest of what was loaded.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from detect.detector_settings import (
    DetectorSetting,
    needs_of,
    parse_detectors,
    plugin_digests,
    repeated_detectors,
    with_control,
    with_grids,
)
from detect.engine.measured_cost import COST_FILE, MeasuredCost, write_cost
from detect.evidence.provider import EvidenceSources, Role, Scored
from detect.evidence.providers import evidence_inputs, read_evidence, says_something, unmet
from detect.registry import get_detector
from detect.scores.table import write_scores
from detect.scoring import (
    LeftOut,
    Runnable,
    runnable,
    score_rows,
    settings_left_out,
)
from detect.settings import names_all
from inject.examples.example import read_examples
from inject.examples.parts import UNSPLIT
from inject.reading.unchanged import unchanged
from inject.settings import plain
from inject.step import Step, StepContext

if TYPE_CHECKING:
    from train.models.model_node import ModelNode


def scores_step(model: "ModelNode", sources: EvidenceSources, *, role: Role) -> Step | None:
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
    inputs, reads = evidence_inputs(needs_of(settings), sources, scored)
    plugins = plugin_digests(settings)
    return Step(
        kind="scores",
        label=model.label,
        function=f"{__name__}:build",
        settings={
            "detectors": [f"{one.name}:{one.text}" for one in settings],
            "defaults": defaults(asked),
            **({"plugins": plugins} if plugins else {}),
        },
        inputs={**inputs, "examples": sources.examples},
        libraries=tuple(sorted({name for one in asked for name in one.detector.libraries})),
        code=tuple(begin for one in asked for begin in one.known.code),
        reads={**reads, "examples": UNSPLIT},
        volatile=(COST_FILE,),
        execution={
            "detectors": [[one.known.reference, plain(one.parameters)] for one in settings],
            "policy": sources.detect.policy().record(),
            "notes": list(asked_settings(sources).notes),
        },
    )


def build(context: StepContext) -> None:
    """Score the examples, and write the scores with their notes."""
    settings = _given_settings(context)
    rows = read_examples(context.inputs["examples"])
    seconds: dict[str, float] = {}
    scores = score_rows(
        [row.example_id for row in rows],
        read_evidence(needs_of(settings), context.inputs, rows),
        settings,
        protected=context.protected,
        on_scored=seconds.__setitem__,
    )
    record = {
        "policy": context.execution["policy"],
        "notes": [*context.execution["notes"], *scores.notes],
        "defaults": context.settings["defaults"],
    }
    write_scores(context.out, scores.table, record=record)
    write_cost(context.out, MeasuredCost(scoring_seconds=seconds))


def _given_settings(context: StepContext) -> list[DetectorSetting]:
    """Return the detectors that the step was made with.

    Raises:
        InputError: a plug-in has changed since.
    """
    settings: list[DetectorSetting] = []
    named = context.settings.get("plugins", {})
    with unchanged("detect.detectors", lambda: plugin_digests(settings), named):
        for reference, parameters in context.execution["detectors"]:
            known = get_detector(reference)
            given = known.detector.parameters.model_validate(parameters)
            settings.append(DetectorSetting(known=known, parameters=given))
    return settings


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
    return [
        one
        for one in asked_settings(sources).settings
        if says_something(one.needs, sources, scored)
    ]


def defaults(asked: Sequence[DetectorSetting]) -> dict[str, str]:
    """Return each detector's default setting: the first that was asked for."""
    found: dict[str, str] = {}
    for one in asked:
        found.setdefault(one.name, one.text)
    return found
