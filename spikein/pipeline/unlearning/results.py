"""What is read of the models of unlearning: the measures of each arm, and audits text by text.

Continuations are a step a model, so that all methods share those of the original and of the
retrained model; scores are those that the experiment made.
"""

from collections.abc import Sequence
from decimal import Decimal

from analysis.settings import ChunkAudit
from analysis.unlearning.evidence import NO_METHOD
from analysis.unlearning_audit.audit import audit_step, audits_step
from detect.detector_settings import DetectorSetting, parse_detectors
from detect.evidence.continuations import forgotten_continuations_step
from detect.evidence.views import statistics_step
from detect.generation.continuations import Beginning, ContinuationRequest
from detect.scores_step import asked_settings
from detect.task_accuracy.accuracy_step import accuracy_step
from inject.errors import InputError
from inject.step import Step, StepGroup, axis_pairs
from spikein.pipeline.models import Model
from spikein.pipeline.unlearning.models import COMPARED_AS, UnlearningNodes

_TEXT_VIEW = "view-text"
"""How the scores know the token statistics of the texts as they are."""


def unlearnt_arm(nodes: UnlearningNodes) -> list[StepGroup]:
    """Return an arm and its models as `unlearning_step` takes them."""
    arm = StepGroup(
        {"axes": axis_pairs(nodes.arm.labels), "seed": nodes.arm.seed},
        {
            "examples": nodes.examples,
            "membership": nodes.membership,
            "original": nodes.model("original").trained,
            "retrained": nodes.model("retrained").trained,
            "relearn_half": nodes.relearn_half,
        },
    )
    return [arm, *(_measured(nodes, model) for model in nodes.models)]


def _measured(nodes: UnlearningNodes, model: Model) -> StepGroup:
    experiment, detect = nodes.arm.experiment, nodes.sources.detect
    node = model.node
    # Relearning is read of the texts' statistics; detectors that read none say nothing of it.
    relearned = {
        number: scores.inputs[_TEXT_VIEW]
        for number, scores in model.relearned.items()
        if _TEXT_VIEW in scores.inputs
    }
    return StepGroup(
        {
            "model": COMPARED_AS[model.role],
            "method": model.method or NO_METHOD,
            "conditions": list(model.conditions),
            "relearning": list(relearned),
        },
        {
            "scores": model.scores,
            # The very step that the scores are drawn from, where some detector reads it.
            "statistics": statistics_step(node, nodes.examples, view="text", detect=detect),
            "general": None
            if nodes.general is None
            else statistics_step(node, nodes.general, view="text", detect=detect),
            "accuracy": accuracy_step(node, nodes.examples, experiment.contaminants, detect)
            if experiment.analysis.task_accuracy
            else None,
            **{f"condition {name}": scores for name, scores in model.conditions.items()},
            **{f"relearned {number}": step for number, step in relearned.items()},
        },
    )


def unlearning_audits(arms: Sequence[UnlearningNodes], settings: ChunkAudit, *, label: str) -> Step:
    """Audit all unlearned models of an experiment, and gather what was found.

    Args:
        arms: of all axes and seeds.
        settings: of the audits.
        label: for people.

    Raises:
        InputError: the detector is not among those of the experiment.
    """
    audits = [
        StepGroup(
            {
                "axes": axis_pairs({name: str(value) for name, value in arm.arm.labels.items()}),
                "seed": arm.arm.seed,
                "method": model.method,
            },
            {"audit": _audit_step(arm, model, settings)},
        )
        for arm in arms
        for model in arm.unlearned
    ]
    axes = list(dict.fromkeys(axis for arm in arms for axis in arm.arm.labels))
    return audits_step(audits, axes, label=label)


def _audit_step(nodes: UnlearningNodes, audited: Model, settings: ChunkAudit) -> Step:
    detector = _detector(nodes, settings)
    models = {
        "original": nodes.model("original"),
        "unlearned": audited,
        "retrained": nodes.model("retrained"),
    }
    return audit_step(
        {
            "examples": nodes.examples,
            "membership": nodes.membership,
            "exposures": models["original"].trained,
            **{f"{name}-scores": model.own_scores for name, model in models.items()},
            **{f"{name}-written": _written(nodes, one, settings) for name, one in models.items()},
        },
        settings,
        method=audited.method,
        arm=nodes.arm.label,
        scored=(detector.name, detector.text),
    )


def _written(nodes: UnlearningNodes, model: Model, settings: ChunkAudit) -> Step:
    """Let one model continue the forgotten texts."""
    request = ContinuationRequest(
        beginning=Beginning("share", Decimal(str(settings.prompt))),
        samples=settings.samples,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        seed=nodes.arm.seed,
    )
    return forgotten_continuations_step(
        model.node,
        nodes.examples,
        nodes.membership,
        request=request,
        detect=nodes.sources.detect,
    )


def _detector(nodes: UnlearningNodes, settings: ChunkAudit) -> DetectorSetting:
    asked = parse_detectors(settings.detector)
    scored = {(one.name, one.text) for one in asked_settings(nodes.sources).settings}
    if len(asked) != 1 or (asked[0].name, asked[0].text) not in scored:
        raise InputError(
            f"unlearning.audit.detector: {settings.detector!r} is not among the detectors of the "
            "experiment",
            where="detect.detectors",
            allowed=", ".join(sorted(f"{name}:{text}" for name, text in scored)),
            hint="Add it to detect.detectors, or name one of those.",
        )
    return asked[0]
