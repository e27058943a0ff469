"""What is done to models to see whether they forgot: relearning, rounded weights, other words.

Each makes a model, or a pool, of its own, which is scored as the model was: the measures compare
the scores with those before.
"""

from dataclasses import replace
from typing import NamedTuple

from inject.errors import InputError
from inject.examples.example import members, read_examples
from inject.examples.parts import UNSPLIT
from inject.model_folder import LOG_FILE
from inject.plan.rewritten_pools import paraphrased_step, relearned_step
from inject.source_digest import root
from spikein.config.sweep import ArmExperiment
from spikein.config.unlearning_section import Relearning, UnlearningSection
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Role
from spikein.pipeline.steps.scores import scores_step
from spikein.pipeline.steps.training import (
    ModelNode,
    engine_identity,
    model_cost,
    report_training,
    training_libraries,
)
from spikein.pipeline.unlearning.nodes import FurtherScores
from train.models.rounded_weights import Bits


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
            trained = relearnt_step(model, self.half, relearn, self.arm)
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
                made = ModelNode(step=rounded_step(model, name, self.arm))
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


def relearnt_step(model: Step, half: Step, relearn: Relearning, arm: ArmExperiment) -> Step:
    """Train a model on the half of the forget set, and keep it after each step asked for."""
    experiment, seed = arm.experiment, arm.seed
    steps, precision = relearn.steps, experiment.train.precision
    lr = experiment.train.lr if relearn.lr is None else relearn.lr

    def build(context: StepContext) -> None:
        from train.job import StartModel
        from train.unlearn.job import unlearn_job
        from train.unlearn.relearning.method import relearning_entry
        from train.unlearn.unlearning_job import UnlearningJob

        folder = context.inputs["half"].path
        again = members(read_examples(folder))
        start = context.inputs["model"].path
        job = UnlearningJob(
            out=str(context.out),
            unfinished=str(context.unfinished),
            identity=context.unfinished.name,
            original=StartModel(name=str(start)),
            examples=str(folder),
            forget_ids=tuple(one.example_id for one in again),
            method=relearning_entry(steps=steps, lr=lr, precision=precision),
            execution=context.execution,
            seed=seed,
        )
        unlearn_job(job, progress=report_training(context), notice=context.notice)

    return Step(
        kind="model",
        label=f"relearned-{model.label}",
        settings={
            "relearn": {"steps": steps, "lr": lr, "precision": precision},
            "seed": seed,
            **engine_identity(experiment.execution),
        },
        inputs={"model": model, "half": half},
        libraries=training_libraries(experiment.execution),
        volatile=(LOG_FILE,),
        execution=experiment.execution,
        code=(root(build), "train.unlearn.relearning.method:METHOD"),
        reads={"half": UNSPLIT},
        build=build,
        cost=model_cost(experiment, models=len(steps)),
    )


def rounded_step(model: Step, bits: Bits, arm: ArmExperiment) -> Step:
    """Write a model with its weights rounded."""

    def build(context: StepContext) -> None:
        from train.models.rounded_weights import write_rounded

        write_rounded(context.inputs["model"].path, context.out, bits)

    return Step(
        kind="model",
        label=f"{bits}-{model.label}",
        settings={"rounded": bits},
        inputs={"model": model},
        libraries=("torch", "transformers"),
        code=(root(build),),
        build=build,
        cost=model_cost(arm.experiment),
    )
