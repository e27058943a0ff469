"""The scores step: every detector and setting over every example, for one model.

The detectors that run follow from their needs and from the arm's means to meet them
(`detect.evidence`). A detector enters the identity by its source: a built-in one by the modules
that it imports, a plug-in by the digest of the loaded code.
"""

from collections.abc import Sequence

from detect.detector_settings import (
    DetectorSetting,
    needs_of,
    parse_detectors,
    plugin_digests,
    repeated_detectors,
    with_control,
    with_grids,
)
from detect.evidence.held_out import HeldOut
from detect.evidence.needs import (
    EvidenceSources,
    Role,
    Scored,
    evidence_inputs,
    read_evidence,
    says_something,
    unmet,
)
from detect.registry import get_detector
from detect.scores.table import HELD_OUT_SCORES, write_score_table, write_scores
from detect.scoring import (
    Runnable,
    SkippedDetector,
    runnable,
    score_rows,
    settings_left_out,
)
from detect.settings import names_all
from detect.target_identity import COST_FILE, AnyModel, MeasuredCost, write_cost
from inject.examples.example import UNSPLIT, read_examples
from inject.reading.change_guard import unchanged
from inject.settings import plain
from inject.step import Step, StepContext


def scores_step(model: AnyModel, sources: EvidenceSources, *, role: Role) -> Step | None:
    """Score every example under every detector and every setting of its grid.

    Args:
        model: the target.
        sources: the arm's sources of evidence.
        role: the model's role in its arm.

    Returns:
        The step, or None if no detector remains, as for a base model with only `reference`.
    """
    scored = Scored(model, role)
    settings = detectors_of(sources, scored)
    if not settings:
        return None
    _, notes = asked_settings(sources)
    return settings_step(with_grids(settings), scored, sources, notes=notes)


def settings_step(
    settings: Sequence[DetectorSetting],
    scored: Scored,
    sources: EvidenceSources,
    *,
    notes: Sequence[str] = (),
    calibrated: Sequence[DetectorSetting] = (),
) -> Step:
    """Score every example under the settings given, each detector's default first.

    Args:
        settings: settings of detectors whose needs can be met.
        scored: the target.
        sources: sources that meet the needs.
        notes: stored with the scores.
        calibrated: settings that also score the held-out rows.
    """
    needs = (*needs_of(settings), *([HeldOut()] if calibrated else []))
    inputs, reads = evidence_inputs(tuple(dict.fromkeys(needs)), sources, scored)
    plugins = plugin_digests(settings)
    names = [f"{setting.name}:{setting.text}" for setting in settings]
    of_held_out = {f"{setting.name}:{setting.text}" for setting in calibrated}
    places = [place for place, name in enumerate(names) if name in of_held_out]
    return Step(
        kind="scores",
        label=scored.model.label,
        function=f"{__name__}:build",
        settings={
            "detectors": names,
            "defaults": defaults(settings),
            **({"plugins": plugins} if plugins else {}),
            **({"of_held_out": places} if places else {}),
        },
        inputs={**inputs, "examples": sources.examples},
        libraries=tuple(
            sorted({name for setting in settings for name in setting.detector.libraries})
        ),
        code=tuple(begin for setting in settings for begin in setting.known.code),
        reads={**reads, "examples": UNSPLIT},
        volatile=(COST_FILE,),
        execution={
            "detectors": [
                [setting.known.reference, plain(setting.parameters)] for setting in settings
            ],
            "policy": sources.detect.policy().record(),
            "notes": list(notes),
        },
    )


def build(context: StepContext) -> None:
    """Score the examples, and write the scores with their notes."""
    settings = _given_settings(context)
    rows = read_examples(context.inputs["examples"])
    seconds: dict[str, float] = {}
    places = context.settings.get("of_held_out", ())
    needs = (*needs_of(settings), *([HeldOut()] if places else []))
    evidence = read_evidence(tuple(dict.fromkeys(needs)), context.inputs, rows)
    scores, detectors_notes = score_rows(
        [row.example_id for row in rows],
        evidence,
        settings,
        protected=context.protected,
        on_scored=seconds.__setitem__,
    )
    record = {
        "policy": context.execution["policy"],
        "notes": [*context.execution["notes"], *detectors_notes],
        "defaults": context.settings["defaults"],
    }
    write_scores(context.out, scores, record=record)
    if places:
        held_out = evidence.of_held_out()
        names = [str(row) for row in range(len(held_out.texts))]
        calibration, _ = score_rows(names, held_out, [settings[place] for place in places])
        write_score_table(context.out / HELD_OUT_SCORES, calibration, record={})
    write_cost(context.out, MeasuredCost(scoring_seconds=seconds))


def _given_settings(context: StepContext) -> list[DetectorSetting]:
    """Return the detectors that define the step.

    Raises:
        InputError: if a plug-in has changed since the step was planned.
    """
    settings: list[DetectorSetting] = []
    named = context.settings.get("plugins", {})
    with unchanged("detect.detectors", lambda: plugin_digests(settings), named):
        for reference, parameters in context.execution["detectors"]:
            entry = get_detector(reference)
            values = entry.detector.parameters.model_validate(parameters)
            settings.append(DetectorSetting(known=entry, parameters=values))
    return settings


def asked_settings(sources: EvidenceSources) -> Runnable:
    """Return the detectors that can run and the control, and notes on those of `all` that cannot.

    Raises:
        InputError: if a named detector's needs cannot be met.
    """
    names = sources.detect.detectors
    settings, notes = runnable(parse_detectors(names), unmet(sources), leave_out=names_all(names))
    return with_control(settings), (*repeated_detectors(names), *notes)


def detectors_left_out(sources: EvidenceSources) -> list[SkippedDetector]:
    """Return the detectors of `all` that cannot run with the arm's sources."""
    return settings_left_out(parse_detectors(sources.detect.detectors), unmet(sources))


def detectors_of(sources: EvidenceSources, scored: Scored) -> list[DetectorSetting]:
    """Return the detectors that score a model, with the requested parameters."""
    settings, _ = asked_settings(sources)
    return [setting for setting in settings if says_something(setting.needs, sources, scored)]


def defaults(settings: Sequence[DetectorSetting]) -> dict[str, str]:
    """Return each detector's default setting: the first requested one."""
    by_name: dict[str, str] = {}
    for setting in settings:
        by_name.setdefault(setting.name, setting.text)
    return by_name
