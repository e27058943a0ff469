"""Twins as nodes of the graph: the clean twin, the retrained model, shadow models.

A twin is an arm with other members: the same corpus, start, settings, order of windows and seed.
Copy counts are drawn before examples are left out, so an example that is spiked in the retrained
model has the copies, and but for recorded re-draws the anchors, of the arm. Each pair of shadow
models has a draw of copy counts of its own: with those of the arm, LiRA's scores would reveal how
many copies a member has there, and the rows by copies would compare counts in place of sides. A
stream without copies does not depend on how copies would be drawn and placed, so arms that differ
in nothing else share one clean twin. Shadow models are trained where a detector reads them.
"""

from dataclasses import dataclass, replace

from detect.evidence.needs import TWIN, EvidenceSources
from detect.scores_step import scores_step
from inject.examples.twin_membership import TwinMembership
from inject.plan.audit_step import audit_step
from inject.plan.make_plan import PlanSettings
from inject.plan.plan_step import CopyCountDraw, plan_step
from inject.plan.rewritten_pools import twin_membership_step
from inject.plan.settings import Copies, Placement
from inject.step import Step
from inject.variants.settings import Variants
from spikein.config.schema import Experiment
from spikein.pipeline.models import RETRAINED, SHADOW, Model
from spikein.pipeline.training import ModelNode, arm_step

_ROLE_OF = {"clean": TWIN, "retrained": RETRAINED, "shadow": SHADOW}


@dataclass(frozen=True)
class TwinNodes:
    """The models beside one arm, and those of each role."""

    models: tuple[Model, ...]

    @property
    def clean(self) -> Model | None:
        """The clean twin."""
        return next(iter(self._of(TWIN)), None)

    @property
    def retrained(self) -> Model | None:
        """The model that never saw the forget set."""
        return next(iter(self._of(RETRAINED)), None)

    @property
    def shadows(self) -> tuple[Model, ...]:
        """The shadow models."""
        return tuple(self._of(SHADOW))

    def scored(self, sources: EvidenceSources) -> "TwinNodes":
        """Return the same with the scores of all but the shadow models."""
        return TwinNodes(
            tuple(
                model
                if model.role == SHADOW
                else replace(model, scores=scores_step(model.node, sources, role=model.scored.role))
                for model in self.models
            )
        )

    def _of(self, role: str) -> list[Model]:
        return [model for model in self.models if model.role == role]


def plan_settings(
    experiment: Experiment, variants: Step | None, *, seed: int, draw_number: int = 0
) -> PlanSettings:
    """Return what decides the copies of an arm, or of a twin of it.

    Args:
        experiment: of the arm.
        variants: what copies can carry; None where all carry whole examples.
        seed: the arm's.
        draw_number: which draw of copy counts it is.
    """
    return PlanSettings(
        copies=experiment.copies,
        placement=experiment.placement,
        budget=experiment.corpus.tokens,
        context=experiment.train.context,
        seed=seed,
        variants=experiment.variants if variants else Variants(),
        draw_number=draw_number,
    )


def twins_of(
    contaminated: Model,
    *,
    corpus: Step,
    examples: Step,
    variants: Step | None,
    base: ModelNode | None,
) -> TwinNodes:
    """Return the twins that an arm's experiment asks for.

    Args:
        contaminated: the arm's own model, by whose copies a forget set can be selected.
        corpus: its corpus.
        examples: its pool.
        variants: what its copies can carry.
        base: the model that it starts from.
    """
    arm, plan = contaminated.arm, contaminated.plan
    experiment, seed = _trained_to_the_end(arm.experiment), arm.seed
    asked = experiment.twins

    def twin(
        membership: TwinMembership,
        settings: Experiment,
        count_draw: CopyCountDraw | None,
        *,
        plan_label: str,
        label: str,
    ) -> Model:
        seen = twin_membership_step(examples, membership, seed=seed, plan=plan)
        carried = variants if membership.kind == "retrained" else None
        drawn = plan_step(
            plan_settings(
                settings, carried, seed=seed, draw_number=count_draw.number if count_draw else 0
            ),
            corpus,
            seen,
            carried,
            count_draw=count_draw,
            label=plan_label,
        )
        audit = audit_step(settings.audit, corpus, seen, drawn)
        trained = arm_step(
            settings,
            corpus=corpus,
            examples=seen,
            plan=drawn,
            audit=audit,
            base=base,
            seed=seed,
            label=label,
        )
        return Model(
            arm=arm,
            role=_ROLE_OF[membership.kind],
            node=ModelNode(step=trained),
            steps={"membership": seen, "plan": drawn, "audit": audit},
        )

    def with_copies(membership: TwinMembership) -> Model:
        count_draw = CopyCountDraw(
            pool=examples, number=0 if membership.number is None else membership.number // 2 + 1
        )
        copies = f"{experiment.copies.label()}-{experiment.placement.label()}-seed{seed}"
        return twin(
            membership,
            experiment,
            count_draw,
            plan_label=f"{membership.label()}-{copies}",
            label=f"{membership.label()}, {arm.label}",
        )

    models = []
    if asked.clean:
        nothing = {"copies": Copies(fixed=1), "placement": Placement(), "variants": Variants()}
        empty = experiment.model_copy(update=nothing)
        name = f"{TWIN}-seed{seed}"
        models.append(twin(TwinMembership(kind="clean"), empty, None, plan_label=name, label=name))
    if experiment.forget_set is not None:
        models.append(with_copies(TwinMembership.retrained(experiment.forget_set)))
    models += [
        with_copies(TwinMembership(kind="shadow", number=number)) for number in range(asked.shadows)
    ]
    return TwinNodes(tuple(models))


def _trained_to_the_end(experiment: Experiment) -> Experiment:
    """Return the experiment without checkpoints, which twins do not keep."""
    train = experiment.train.model_copy(update={"checkpoints": None})
    return experiment.model_copy(update={"train": train})
