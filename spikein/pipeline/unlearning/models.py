"""From an arm that is there to what the section `unlearning` adds to it: models, and their scores.

- The original is the arm's contaminated model; each unlearned model is made from it by one setting
  of a method; the retrained model never saw the forget set; the base model saw no member at all.
- The forget set of an arm is everybody who is a member in `examples` and a non-member in
  `membership`. The retain set is what a method holds on to: among the other members, as the setting
  of the experiment says. The holdout are the non-members of `examples`, whom no model saw.
- All scores are over all rows of `examples`, by `example_id`, of the same detectors; those under
  the condition `paraphrase` over the rows that have one.
- Relearning, rounded weights and other words each make a model, or a pool, of its own, which is
  scored as the model was: the measures compare the scores with those before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from analysis.unlearning.evidence import NO_METHOD, ModelName
from detect.evidence.needs import EvidenceSources, Role
from detect.scores_step import scores_step
from inject.errors import InputError
from inject.plan.rewritten_pools import paraphrased_step, relearned_step
from inject.step import Step
from spikein.config.sweep import ArmExperiment
from spikein.config.unlearning_section import UnlearningSection
from spikein.pipeline.training import ModelNode
from spikein.pipeline.twin_models import RETRAINED, Reported, TwinNodes
from train.device import Device
from train.models.block_count import block_count
from train.models.rounded_weights import rounded_step
from train.unlearn.job import Unlearning, unlearned_step
from train.unlearn.registry import MethodSetting, parse_methods
from train.unlearn.relearning.relearning_step import relearnt_step

_ROLES: Mapping[ModelName, Role] = {
    "original": "arm",
    "retrained": "retrained",
    "unlearned": "unlearned",
    "base": "base",
}
"""What each model is to its arm, as scores know it."""


@dataclass(frozen=True, kw_only=True)
class ScoredArm:
    """What an arm has already."""

    arm: ArmExperiment
    examples: Step
    plan: Step
    trained: Step
    scores: Step
    base: ModelNode | None
    base_scores: Step | None
    twins: TwinNodes
    reported: tuple[Reported, ...]
    sources: EvidenceSources
    device: Device
    """What it will run on; decides the number format that `auto` stands for."""


@dataclass(frozen=True, kw_only=True)
class ComparedModel:
    """A model of an arm, as the measures of unlearning compare it."""

    role: ModelName
    node: ModelNode
    scores: Step
    setting: MethodSetting | None = None
    """The method that made it; its label is unique in the arm."""
    relearned: Mapping[int, Step] = field(default_factory=dict)
    """Optimiser steps of plain training on one half of the forget set to the scores after them,
    ascending."""
    conditions: Mapping[str, Step] = field(default_factory=dict)
    """A name of `unlearning.conditions` to the scores under it."""

    @property
    def method(self) -> str:
        """The label of the method's setting."""
        return NO_METHOD if self.setting is None else self.setting.label

    @property
    def trained(self) -> Step:
        """A `model` artifact: checkpoint, tokenizer, `log.parquet`, `exposures.parquet`."""
        if self.node.step is None:
            raise TypeError("a pretrained model was not trained here")
        return self.node.step


@dataclass(frozen=True, kw_only=True)
class UnlearningNodes:
    """The models of one arm that the measures of unlearning compare."""

    arm: ArmExperiment
    examples: Step
    """The arm's pool."""
    membership: Step
    """The pool, with those as members whom the retrained model sees."""
    models: tuple[ComparedModel, ...]
    """The original, the retrained one, the unlearned ones, and the base model where there is one
    with scores."""
    sources: EvidenceSources
    """What the detectors' needs are met with."""
    relearn_half: Step | None
    """The half of the forget set that models learn again, as members; the forgotten rows outside of
    it are those that `relearned` scores are read of. None without `unlearning.relearn`."""
    general: Step | None
    """General text, which no model was fed: an `examples` artifact."""

    def model(self, role: ModelName) -> ComparedModel:
        """Return the one model of a role."""
        return next(model for model in self.models if model.role == role)

    @property
    def unlearned(self) -> tuple[ComparedModel, ...]:
        """The models that were made to forget."""
        return tuple(model for model in self.models if model.role == "unlearned")

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step that is there for unlearning alone: unlearned models, and all scores."""
        found = [self.model("retrained").scores]
        for model in self.unlearned:
            found += [model.trained, model.scores]
        for model in self.models:
            found += [*model.relearned.values(), *model.conditions.values()]
        return tuple(found)


def unlearning_nodes(given: ScoredArm, general: Step | None) -> UnlearningNodes | None:
    """Return the unlearned models of an arm and their scores; None without the section.

    Args:
        given: what the arm has already.
        general: text that no model was fed.

    Raises:
        InputError: no detector that is asked for looks at a model, a method cannot be found, or
            looks at a block that the model lacks.
    """
    section = given.arm.experiment.unlearning
    if section is None:
        return None
    retrained = given.twins.retrained
    if retrained is None:
        raise TypeError("a forget set without a retrained model")
    probes = _Probes(given, section, retrained.membership)
    known = {one.model: one.scores for one in given.reported}
    models = [
        probes.model("original", given.trained, given.scores),
        probes.model("retrained", retrained.trained, known[RETRAINED]),
        *(probes.unlearned(setting) for setting in _settings(given, section)),
    ]
    if given.base is not None and given.base_scores is not None:
        models.append(ComparedModel(role="base", node=given.base, scores=given.base_scores))
    return UnlearningNodes(
        arm=given.arm,
        examples=given.examples,
        membership=retrained.membership,
        models=tuple(models),
        sources=given.sources,
        relearn_half=probes.half,
        general=general,
    )


def _settings(given: ScoredArm, section: UnlearningSection) -> list[MethodSetting]:
    """Return the methods, with the number format that `auto` stands for in its place."""
    blocks = block_count(given.arm.experiment.model)
    found = []
    for setting in parse_methods(section.methods):
        if blocks is not None:
            setting.require_block(blocks)
        precision = given.device.training_precision(setting.settings.precision)
        own = setting.settings.model_copy(update={"precision": precision})
        found.append(replace(setting, settings=own))
    return found


class _Probes:
    """Makes the models of an arm, and what is done to each to see whether it forgot."""

    def __init__(self, given: ScoredArm, section: UnlearningSection, membership: Step) -> None:
        seed, examples = given.arm.seed, given.examples
        self._given, self._section, self._membership = given, section, membership
        self.half = self._paraphrased = None
        if section.relearn is not None:
            self.half = relearned_step(section.relearn.share, examples, membership, seed=seed)
        if "paraphrase" in section.conditions:
            self._paraphrased = paraphrased_step(examples, seed=seed)

    def unlearned(self, setting: MethodSetting) -> ComparedModel:
        """Make the arm's model forget by one setting of a method."""
        given, experiment = self._given, self._given.arm.experiment
        trained = unlearned_step(
            setting,
            Unlearning(given.trained, given.examples, self._membership, given.plan),
            self._section.retain,
            seed=given.arm.seed,
            label=f"{setting.label}, {given.arm.label}",
            sizes=experiment.model,
            execution=experiment.execution,
        )
        scores = self._scores(ModelNode(step=trained), "unlearned", given.sources)
        return replace(self.model("unlearned", trained, scores), setting=setting)

    def model(self, role: ModelName, trained: Step, scores: Step) -> ComparedModel:
        """Return a model with its further scores; what the original relearns says nothing."""
        original = role == "original"
        node, scored = ModelNode(step=trained), _ROLES[role]
        conditions: dict[str, Step] = {}
        for name in self._section.conditions:
            other, sources = node, self._given.sources
            if name != "paraphrase":
                rounded = rounded_step(trained, name, self._given.arm.experiment.model)
                other = ModelNode(step=rounded)
            elif self._paraphrased is not None:
                sources = replace(sources, examples=self._paraphrased)
            conditions[name] = self._scores(other, scored, sources)
        return ComparedModel(
            role=role,
            node=node,
            scores=scores,
            relearned={} if original else self._relearned(trained, scored),
            conditions=conditions,
        )

    def _relearned(self, model: Step, role: Role) -> dict[int, Step]:
        relearn, experiment = self._section.relearn, self._given.arm.experiment
        if relearn is None or self.half is None:
            return {}
        trained = relearnt_step(
            model,
            self.half,
            steps=relearn.steps,
            lr=experiment.train.lr if relearn.lr is None else relearn.lr,
            precision=experiment.train.precision,
            seed=self._given.arm.seed,
            sizes=experiment.model,
            execution=experiment.execution,
        )
        found = {}
        for step in relearn.steps:
            last = step == relearn.steps[-1]
            node = ModelNode(step=trained, checkpoint=None if last else step)
            found[step] = self._scores(node, role, self._given.sources)
        return found

    def _scores(self, model: ModelNode, role: Role, sources: EvidenceSources) -> Step:
        scores = scores_step(model, sources, role=role)
        if scores is None:
            raise InputError(
                "no detector that is asked for looks at a model, so there is nothing to hold "
                "unlearned models against the retrained one by",
                where="detect.detectors",
                hint="Add loss to detect.detectors.",
            )
        return scores
