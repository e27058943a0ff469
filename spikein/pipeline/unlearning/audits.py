"""The audits of unlearned models: what each still writes of the forget set, and the ratio rule.

Continuations are a step a model, so that all methods share those of the original and of the
retrained model; scores are those that the experiment made.
"""

from collections.abc import Sequence
from decimal import Decimal

from analysis.unlearning_audit.audit_step import audit_step, audits_step
from analysis.unlearning_audit.settings import ChunkAudit
from detect.detector_settings import DetectorSetting, parse_detectors
from detect.generation.continuations import Beginning, ContinuationRequest
from detect.generation.continuations_step import forgotten_continuations_step
from detect.scores_step import asked_settings
from inject.errors import InputError
from inject.step import Step, StepGroup, axis_pairs
from spikein.pipeline.unlearning.nodes import UnlearnedModel, UnlearningNodes
from train.models.model_node import ModelNode


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
                "method": one.setting.label,
                "page": f"{one.setting.label}, {arm.arm.label}.html",
            },
            {"audit": _audit_step(arm, one, settings)},
        )
        for arm in arms
        for one in arm.unlearned
    ]
    axes = list(dict.fromkeys(axis for arm in arms for axis in arm.arm.labels))
    return audits_step(audits, axes, label=label)


def _audit_step(nodes: UnlearningNodes, one: UnlearnedModel, settings: ChunkAudit) -> Step:
    detector = _detector(nodes, settings)
    inputs = {
        "examples": nodes.examples,
        "membership": nodes.retrained.membership,
        "exposures": nodes.original,
    }
    for name, model, scores in (
        ("original", nodes.original, nodes.original_scores),
        ("unlearned", one.trained, one.scores),
        ("retrained", nodes.retrained.trained, nodes.retrained_scores),
    ):
        inputs[f"{name}-scores"] = scores
        inputs[f"{name}-written"] = _written_step(nodes, model, settings)
    return audit_step(
        inputs,
        settings,
        method=one.setting.label,
        arm=nodes.arm.label,
        scored=(detector.name, detector.text),
    )


def _written_step(nodes: UnlearningNodes, model: Step, settings: ChunkAudit) -> Step:
    """Let one model continue the forgotten texts."""
    request = ContinuationRequest(
        beginning=Beginning("share", Decimal(str(settings.prompt))),
        samples=settings.samples,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        seed=nodes.arm.seed,
    )

    return forgotten_continuations_step(
        ModelNode(step=model),
        nodes.examples,
        nodes.retrained.membership,
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
