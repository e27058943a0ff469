"""The section `unlearning`: the models that it adds to an arm, and their scores.

- The original is the arm's contaminated model; each unlearned model is made from it by one setting
  of a method; the retrained model never saw the forget set; the base model saw no member at all.
- The forget set of an arm contains the examples that are members in `examples` and non-members in
  `membership`. The retain set is the part of the other members that a method preserves, by the
  experiment's setting. The holdout consists of the non-members of `examples`, which no model saw.
- All scores are over all rows of `examples`, by `example_id`, of the same detectors; those under
  the condition `paraphrase` over the rows that have one.
- Relearning, rounded weights and paraphrases each create a further model, or pool, which is scored
  like the model: the measures compare both scores.

The models are compared by the measures of each arm, and audited text by text. Continuations are
one step per model, so that all methods share those of the original and of the retrained model;
scores are those of the experiment.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from analysis.settings import ChunkAudit
from analysis.unlearning.evidence import NO_METHOD, ModelName
from analysis.unlearning_audit.audit import audit_step, audits_step
from detect.detector_settings import DetectorSetting, parse_detectors
from detect.evidence.continuations import forgotten_continuations_step
from detect.evidence.needs import EvidenceSources
from detect.evidence.views import statistics_step
from detect.generation.continuations import ContinuationRequest, PromptLength
from detect.ground_truth.ground_truth import BASE, CONTAMINATED
from detect.scores_step import asked_settings, scores_step
from detect.task_accuracy.accuracy_step import accuracy_step
from inject.errors import InputError
from inject.plan.rewritten_pools import paraphrased_step, relearned_step
from inject.step import Step, StepGroup, axis_pairs
from spikein.config.schema import UnlearningSection
from spikein.config.sweep import ArmExperiment
from spikein.pipeline.models import RETRAINED, UNLEARNED, Model, scored_as
from spikein.pipeline.twin_models import TwinNodes
from train.device import Device
from train.models.model_node import ModelNode
from train.models.model_sizes import block_count
from train.models.rounded_weights import rounded_step
from train.unlearn.job import unlearned_step
from train.unlearn.registry import MethodSetting, parse_methods
from train.unlearn.relearning import relearnt_step

COMPARED_AS: Mapping[str, ModelName] = {
    CONTAMINATED: "original",
    RETRAINED: "retrained",
    UNLEARNED: "unlearned",
    BASE: "base",
}
"""Names of the roles in the measures of unlearning."""
_TEXT_VIEW = "view-text"
"""Name of the unmodified texts' token statistics in the scores."""


@dataclass(frozen=True, kw_only=True)
class UnlearningNodes:
    """The models of one arm that the measures of unlearning compare."""

    arm: ArmExperiment
    examples: Step
    """The arm's pool."""
    membership: Step
    """The pool, with the members that the retrained model sees."""
    models: tuple[Model, ...]
    """The original, the retrained one, the unlearned ones, and the base model if it has scores."""
    sources: EvidenceSources
    """The sources of the detectors' evidence."""
    relearn_half: Step | None
    """The half of the forget set that models learn again, as members; the forgotten rows outside of
    it are those that `relearned` scores are read of. None without `unlearning.relearn`."""
    general: Step | None
    """General text, which no model was trained on: an `examples` artifact."""

    def model(self, name: ModelName) -> Model:
        """Return the one model of a name."""
        return next(model for model in self.models if COMPARED_AS[model.role] == name)

    @property
    def unlearned(self) -> tuple[Model, ...]:
        """The unlearned models."""
        return tuple(model for model in self.models if model.role == UNLEARNED)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step that exists only for unlearning: unlearned models, and all scores."""
        collected = [self.model("retrained").own_scores]
        for model in self.unlearned:
            collected += [model.trained, model.own_scores]
        for model in self.models:
            collected += [*model.relearned.values(), *model.conditions.values()]
        return tuple(collected)


def unlearning_nodes(
    contaminated: Model,
    base: Model | None,
    twins: TwinNodes,
    sources: EvidenceSources,
    *,
    general: Step | None,
    device: Device,
) -> UnlearningNodes:
    """Return the unlearned models of an arm and their scores.

    Args:
        contaminated: the arm's own model, with scores.
        base: the model that it starts from.
        twins: of the arm, with scores.
        sources: of the detectors' evidence.
        general: text that no model was trained on.
        device: the device of the steps, which determines the number format for `auto`.

    Raises:
        InputError: when no requested detector looks at a model, or for a method that is unknown or
            needs a block that the model lacks.
    """
    section, retrained = contaminated.arm.experiment.unlearning, twins.retrained
    if section is None or retrained is None:
        raise TypeError("unlearning needs a forget set, and a retrained model")
    probes = _Probes(contaminated, sources, section, retrained.membership)
    models = [
        probes.probed(contaminated),
        probes.probed(retrained),
        *(probes.unlearned(setting) for setting in _settings(contaminated, section, device)),
    ]
    if base is not None and base.scores is not None:
        models.append(base)
    return UnlearningNodes(
        arm=contaminated.arm,
        examples=sources.examples,
        membership=retrained.membership,
        models=tuple(models),
        sources=sources,
        relearn_half=probes.half,
        general=general,
    )


def _settings(
    contaminated: Model, section: UnlearningSection, device: Device
) -> Iterator[MethodSetting]:
    """Yield the methods, with `auto` replaced by a number format."""
    blocks = block_count(contaminated.arm.experiment.model)
    for setting in parse_methods(section.methods):
        if blocks is not None:
            setting.require_block(blocks)
        precision = device.training_precision(setting.settings.precision)
        own = setting.settings.model_copy(update={"precision": precision})
        yield replace(setting, settings=own)


class _Probes:
    """Builds the unlearned models of an arm, and their changed versions that test forgetting."""

    def __init__(
        self,
        contaminated: Model,
        sources: EvidenceSources,
        section: UnlearningSection,
        membership: Step,
    ) -> None:
        arm, examples = contaminated.arm, sources.examples
        self._original, self._sources, self._section = contaminated, sources, section
        self._arm, self._membership = arm, membership
        self.half = self._paraphrased = None
        if section.relearn is not None:
            self.half = relearned_step(section.relearn.share, examples, membership, seed=arm.seed)
        if "paraphrase" in section.conditions:
            self._paraphrased = paraphrased_step(examples, seed=arm.seed)

    def unlearned(self, setting: MethodSetting) -> Model:
        """Return the arm's model unlearned by one setting of a method."""
        arm, original = self._arm, self._original
        trained = unlearned_step(
            setting,
            {
                "original": original.trained,
                "examples": self._sources.examples,
                "membership": self._membership,
                "counts": original.plan,
            },
            self._section.retain,
            seed=arm.seed,
            label=f"{setting.label}, {arm.label}",
            sizes=arm.experiment.model,
            execution=arm.experiment.training_runtime,
        )
        node = ModelNode(step=trained)
        return self.probed(
            Model(
                arm=arm,
                role=UNLEARNED,
                node=node,
                scores=self._scores(node, UNLEARNED, self._sources),
                method=setting.label,
                setting=setting,
            )
        )

    def probed(self, model: Model) -> Model:
        """Return a model with its further scores; the original does not relearn."""
        conditions: dict[str, Step] = {}
        for name in self._section.conditions:
            node, sources = model.node, self._sources
            if name != "paraphrase":
                sizes = self._arm.experiment.model
                node = ModelNode(step=rounded_step(model.trained, name, sizes))
            elif self._paraphrased is not None:
                sources = replace(sources, examples=self._paraphrased)
            conditions[name] = self._scores(node, model.role, sources)
        relearned = {} if model is self._original else self._relearning_steps(model)
        return replace(model, relearned=relearned, conditions=conditions)

    def _relearning_steps(self, model: Model) -> dict[int, Step]:
        relearn, experiment = self._section.relearn, self._arm.experiment
        if relearn is None or self.half is None:
            return {}
        trained = relearnt_step(
            model.trained,
            self.half,
            steps=relearn.steps,
            lr=experiment.train.lr if relearn.lr is None else relearn.lr,
            precision=experiment.train.precision,
            seed=self._arm.seed,
            sizes=experiment.model,
            execution=experiment.training_runtime,
        )
        by_steps = {}
        for step in relearn.steps:
            last = step == relearn.steps[-1]
            node = ModelNode(step=trained, checkpoint=None if last else step)
            by_steps[step] = self._scores(node, model.role, self._sources)
        return by_steps

    def _scores(self, node: ModelNode, role: str, sources: EvidenceSources) -> Step:
        scores = scores_step(node, sources, role=scored_as(role))
        if scores is None:
            raise InputError(
                "no requested detector looks at a model, so unlearned models cannot be compared "
                "with the retrained one",
                where="detect.detectors",
                hint="Add loss to detect.detectors.",
            )
        return scores


def unlearnt_arm(nodes: UnlearningNodes) -> list[StepGroup]:
    """Return an arm and its models as inputs of `unlearning_step`."""
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
    return [arm, *(_measure_group(nodes, model) for model in nodes.models)]


def _measure_group(nodes: UnlearningNodes, model: Model) -> StepGroup:
    experiment, detect = nodes.arm.experiment, nodes.sources.detect
    node = model.node
    # Relearning is measured by the texts' statistics; detectors that read none cannot show it.
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
            # The same step that the scores use, if some detector reads it.
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
    """Audit all unlearned models of an experiment, and collect the results.

    Args:
        arms: of all axes and seeds.
        settings: of the audits.
        label: for display.

    Raises:
        InputError: for a detector that is not among those of the experiment.
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
            **{
                f"{name}-written": _continuation_step(nodes, model, settings)
                for name, model in models.items()
            },
        },
        settings,
        method=audited.method,
        arm=nodes.arm.label,
        scored=(detector.name, detector.text),
    )


def _continuation_step(nodes: UnlearningNodes, model: Model, settings: ChunkAudit) -> Step:
    """Let one model continue the forgotten texts."""
    request = ContinuationRequest(
        beginning=PromptLength("share", Decimal(str(settings.prompt))),
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
    requested = parse_detectors(settings.detector)
    detectors, _ = asked_settings(nodes.sources)
    scored = {(setting.name, setting.text) for setting in detectors}
    if len(requested) != 1 or (requested[0].name, requested[0].text) not in scored:
        raise InputError(
            f"unlearning.audit.detector: {settings.detector!r} is not among the detectors of the "
            "experiment",
            where="detect.detectors",
            allowed=", ".join(sorted(f"{name}:{text}" for name, text in scored)),
            hint="Add it to detect.detectors, or name one of those.",
        )
    return requested[0]
