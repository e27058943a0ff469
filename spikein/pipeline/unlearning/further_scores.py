"""What is done to models to see whether they forgot: relearning, rounded weights, other words.

Each makes a model, or a pool, of its own, which is scored as the model was: the measures compare
the scores with those before.
"""

from dataclasses import replace
from typing import NamedTuple

from detect.evidence.needs import EvidenceSources, Role
from detect.scores_step import scores_step
from inject.errors import InputError
from inject.plan.rewritten_pools import paraphrased_step, relearned_step
from inject.step import Step
from spikein.config.sweep import ArmExperiment
from spikein.config.unlearning_section import UnlearningSection
from spikein.pipeline.training import (
    ModelNode,
)
from spikein.pipeline.unlearning.nodes import FurtherScores
from train.models.rounded_weights import rounded_step
from train.unlearn.relearning.relearning_step import relearnt_step


class Probes(NamedTuple):
    """What further scores of an arm's models are made with."""

    arm: ArmExperiment
    section: UnlearningSection
    sources: EvidenceSources
    half: Step | None
    """The half of the forget set that is learnt again."""
    paraphrased: Step | None
    """The pool in other words."""

    def of(self, model: Step, *, role: Role, relearnt: bool) -> FurtherScores:
        """Return the further scores of one model.

        Args:
            model: an artifact.
            role: what it is to its arm.
            relearnt: whether relearning says something of it.
        """
        again: dict[int, Step] = {}
        relearn = self.section.relearn
        if relearn is not None and self.half is not None and relearnt:
            experiment = self.arm.experiment
            trained = relearnt_step(
                model,
                self.half,
                steps=relearn.steps,
                lr=experiment.train.lr if relearn.lr is None else relearn.lr,
                precision=experiment.train.precision,
                seed=self.arm.seed,
                sizes=experiment.model,
                execution=experiment.execution,
            )
            last = relearn.steps[-1]
            for step in relearn.steps:
                node = ModelNode(step=trained, checkpoint=None if step == last else step)
                again[step] = self._scores(node, self.sources, role)
        conditions: dict[str, Step] = {}
        for name in self.section.conditions:
            if name == "paraphrase":
                if self.paraphrased is None:
                    raise TypeError("a pool in other words was not made")
                sources = replace(self.sources, examples=self.paraphrased)
                conditions[name] = self._scores(ModelNode(step=model), sources, role)
            else:
                made = ModelNode(step=rounded_step(model, name, self.arm.experiment.model))
                conditions[name] = self._scores(made, self.sources, role)
        return FurtherScores(relearned=again, conditions=conditions)

    def _scores(self, model: ModelNode, sources: EvidenceSources, role: Role) -> Step:
        scores = scores_step(model, sources, role=role)
        if scores is None:
            raise InputError(
                "no detector that is asked for says anything of a model under a condition of "
                "unlearning",
                where="detect.detectors",
                hint="Add loss to detect.detectors.",
            )
        return scores


def probes_of(
    arm: ArmExperiment,
    section: UnlearningSection,
    sources: EvidenceSources,
    *,
    examples: Step,
    membership: Step,
) -> Probes:
    """Return what the section asks to be done to an arm's models.

    Args:
        arm: the arm.
        section: of its experiment.
        sources: what its detectors' needs are met with.
        examples: its pool.
        membership: the pool, with those as members whom the retrained model sees.
    """
    half = None
    if section.relearn is not None:
        half = relearned_step(section.relearn.share, examples, membership, seed=arm.seed)
    other = None
    if "paraphrase" in section.conditions:
        other = paraphrased_step(examples, seed=arm.seed)
    return Probes(arm, section, sources, half, other)
