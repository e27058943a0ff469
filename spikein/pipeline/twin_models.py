"""Twins as nodes of the graph: the clean twin, the retrained model, shadow models.

A twin is an arm with other members: the same corpus, start, settings, order of windows and seed.
Copy counts are drawn before examples are excluded, so an example that is spiked in the retrained
model has the copies of the arm and, except for recorded re-draws, its anchors. Each pair of shadow
models has its own draw of copy counts: with those of the arm, LiRA's scores would reveal a member's
copies in the arm, and the rows by copies would compare counts instead of sides. A stream without
copies does not depend on the draw and placement of copies, so arms that differ only in these share
one clean twin. Shadow models are trained if a detector reads them.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from detect.evidence.needs import TWIN, EvidenceSources
from detect.scores_step import scores_step
from inject.examples.twin_membership import TwinMembership
from inject.plan.audit_step import audit_step
from inject.plan.make_plan import PlanSettings, plan_step
from inject.plan.rewritten_pools import twin_membership_step
from inject.plan.settings import Copies, Placement
from inject.step import Step
from inject.variants.settings import Variants
from spikein.config.schema import Experiment
from spikein.config.sweep import ArmExperiment
from spikein.pipeline.models import RETRAINED, SHADOW, Model
from train.models.model_node import ModelNode
from train.training_step import Training, arm_step

_ROLE_OF = {"clean": TWIN, "retrained": RETRAINED, "shadow": SHADOW}


@dataclass(frozen=True)
class TwinNodes:
    """The twins of one arm, also by role."""

    models: tuple[Model, ...]

    @property
    def clean(self) -> Model | None:
        """The clean twin."""
        return next(iter(self._select_role(TWIN)), None)

    @property
    def retrained(self) -> Model | None:
        """The model that never saw the forget set."""
        return next(iter(self._select_role(RETRAINED)), None)

    @property
    def shadows(self) -> tuple[Model, ...]:
        """The shadow models."""
        return tuple(self._select_role(SHADOW))

    def scored(self, sources: EvidenceSources) -> "TwinNodes":
        """Return the twins with scores for all except the shadow models."""
        return TwinNodes(
            tuple(
                model
                if model.role == SHADOW
                else replace(model, scores=scores_step(model.node, sources, role=model.scored.role))
                for model in self.models
            )
        )

    def _select_role(self, role: str) -> list[Model]:
        return [model for model in self.models if model.role == role]


class ArmInputs(NamedTuple):
    """The inputs of an arm's models."""

    corpus: Step
    examples: Step
    """The pool, with the sides of the model."""
    variants: Step | None
    """The variants that copies can carry; None if all carry whole examples."""
    base: ModelNode | None
    """The model that training starts from."""


def spiked_model(
    arm: ArmExperiment,
    role: str,
    experiment: Experiment,
    inputs: ArmInputs,
    *,
    label: str,
    plan_label: str | None = None,
    pool: Step | None = None,
    draw_number: int = 0,
) -> Model:
    """Return a model that is trained on a stream with copies, after its plan and audit.

    Args:
        arm: the arm of the model.
        role: of the model.
        experiment: its training settings and copies.
        inputs: the inputs of its steps.
        label: of the training, for display.
        plan_label: of the plan; None for that of the rule.
        pool: the arm's own examples, if others than the members of `inputs` get copy counts.
        draw_number: the number of the draw of copy counts (`PlanSettings.draw_number`).
    """
    corpus, examples, variants, base = inputs
    plan = plan_step(
        PlanSettings(
            copies=experiment.copies,
            placement=experiment.placement,
            budget=experiment.corpus.tokens,
            context=experiment.train.context,
            seed=arm.seed,
            variants=experiment.variants if variants else Variants(),
            draw_number=draw_number,
            repeat=experiment.corpus.repeat,
        ),
        corpus,
        examples,
        variants,
        pool=pool,
        label=plan_label,
    )
    audit = audit_step(experiment.audit, corpus, examples, plan)
    training = Training(
        model=experiment.model,
        train=experiment.train,
        tokens=experiment.corpus.tokens,
        execution=experiment.training_runtime,
        seed=arm.seed,
    )
    trained = arm_step(training, plan, audit, experiment.variants, start=base, label=label)
    steps = {"plan": plan, "audit": audit}
    return Model(arm=arm, role=role, node=ModelNode(step=trained), steps=steps)


def twins_of(contaminated: Model, *, inputs: ArmInputs) -> TwinNodes:
    """Return the twins that an arm's experiment requests.

    Args:
        contaminated: the arm's own model, whose copies can select a forget set.
        inputs: the inputs of its steps.
    """
    arm, examples = contaminated.arm, inputs.examples
    experiment = _trained_to_the_end(arm.experiment)
    twins = experiment.twins

    def twin(membership: TwinMembership, settings: Experiment, **more: Any) -> Model:
        seen = twin_membership_step(examples, membership, seed=arm.seed, plan=contaminated.plan)
        carried = inputs.variants if membership.kind == "retrained" else None
        own = inputs._replace(examples=seen, variants=carried)
        model = spiked_model(arm, _ROLE_OF[membership.kind], settings, own, **more)
        return replace(model, steps={"membership": seen, **model.steps})

    def with_copies(membership: TwinMembership) -> Model:
        number = 0 if membership.number is None else membership.number // 2 + 1
        copies = f"{experiment.copies.label()}-{experiment.placement.label()}-seed{arm.seed}"
        return twin(
            membership,
            experiment,
            label=f"{membership.label()}, {arm.label}",
            plan_label=f"{membership.label()}-{copies}",
            pool=examples,
            draw_number=number,
        )

    models = []
    if twins.clean:
        nothing = {"copies": Copies(fixed=1), "placement": Placement(), "variants": Variants()}
        empty = experiment.model_copy(update=nothing)
        name = f"{TWIN}-seed{arm.seed}"
        models.append(twin(TwinMembership(kind="clean"), empty, label=name, plan_label=name))
    if experiment.forget_set is not None:
        models.append(with_copies(TwinMembership.retrained(experiment.forget_set)))
    models += [
        with_copies(TwinMembership(kind="shadow", number=number)) for number in range(twins.shadows)
    ]
    return TwinNodes(tuple(models))


def _trained_to_the_end(experiment: Experiment) -> Experiment:
    """Return the experiment without scored checkpoints, which twins do not keep."""
    train = experiment.train.model_copy(update={"checkpoints": None})
    return experiment.model_copy(update={"train": train})
