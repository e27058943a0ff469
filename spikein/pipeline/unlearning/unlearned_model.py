"""The step that makes an unlearned model from the original, by one setting of a method.

Which rows are to be forgotten is read from the sides of the retrained model, so the two cannot
disagree. A method that looks at no other member depends on no retain set.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from inject.errors import InputError
from inject.examples.example import Example, members, read_examples
from inject.examples.forget_set import RetainSet, forgotten_rows, select_members
from inject.examples.parts import UNSPLIT
from inject.model_folder import LOG_FILE
from inject.plan.plan import read_plan
from inject.reading.unchanged import unchanged
from inject.source_digest import root
from spikein.config.sweep import ArmExperiment
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.training import (
    engine_identity,
    model_cost,
    report_training,
    training_libraries,
)
from train.unlearn.registry import MethodSetting

RETAIN_DRAW = 1
"""Which draw of a share the retain set is; the forget set is draw 0."""


class Unlearning(NamedTuple):
    """What unlearned models of one arm are made from."""

    original: Step
    """The arm's contaminated model."""
    examples: Step
    """The arm's pool."""
    membership: Step
    """The pool, with those as members whom the retrained model sees."""
    plan: Step
    """The arm's plan; read where the retain set goes by numbers of copies."""


def unlearned_step(setting: MethodSetting, arm: ArmExperiment, given: Unlearning) -> Step:
    """Make the original forget the forget set by one method."""
    experiment, seed = arm.experiment, arm.seed
    section = experiment.unlearning
    if section is None:
        raise TypeError("an experiment without the section `unlearning`")
    retain = section.retain if setting.needs_retain else None
    counted = retain is not None and retain.copies is not None
    # A share is drawn within each split, so another split is another retain set.
    drawn = retain is not None and retain.share is not None

    def named() -> dict[str, Any] | None:
        return None if retain is None else retain.identity(where="unlearning.retain")

    identity = named()
    # As plain values, which another process reads as well as this one.
    entry = setting.entry()

    def build(context: StepContext) -> None:
        from train.job import StartModel
        from train.unlearn.job import unlearn_job
        from train.unlearn.unlearning_job import UnlearningJob

        inputs = context.inputs
        pool = read_examples(inputs["examples"].path)
        forget = forgotten_rows(pool, read_examples(inputs["membership"].path))
        with unchanged("unlearning.retain.ids", named, identity):
            kept = (
                []
                if retain is None
                else retained_rows(
                    pool,
                    forget,
                    retain,
                    seed=seed,
                    copies=read_plan(inputs["counts"].path).realised() if counted else None,
                )
            )
        job = UnlearningJob(
            out=str(context.out),
            unfinished=str(context.unfinished),
            identity=context.unfinished.name,
            original=StartModel(name=str(inputs["original"].path)),
            examples=str(inputs["examples"].path),
            forget_ids=tuple(one.example_id for one in forget),
            retain_ids=tuple(one.example_id for one in kept),
            method=entry,
            execution=context.execution,
            seed=seed,
        )
        unlearn_job(job, progress=report_training(context), notice=context.notice)

    return Step(
        kind="model",
        label=f"{setting.label}, {arm.label}",
        settings={
            "method": setting.identity(),
            "seed": seed,
            **({} if identity is None else {"retain": identity}),
            **engine_identity(experiment.execution),
        },
        inputs={
            "original": given.original,
            "examples": given.examples,
            "membership": given.membership,
            **({"counts": given.plan} if counted else {}),
        },
        libraries=training_libraries(
            experiment.execution, adapters=setting.settings.mode == "lora"
        ),
        volatile=(LOG_FILE,),
        execution=experiment.execution,
        code=(root(build), *setting.code),
        reads={"membership": UNSPLIT} if drawn else {"examples": UNSPLIT, "membership": UNSPLIT},
        build=build,
        cost=model_cost(experiment),
    )


def retained_rows(
    pool: list[Example],
    forget: list[Example],
    retain: RetainSet,
    *,
    seed: int,
    copies: Mapping[str, int] | None,
) -> list[Example]:
    """Return the rows of the retain set, in the pool's order.

    Args:
        pool: the arm's examples.
        forget: its forget set.
        retain: the rules.
        seed: the arm's seed.
        copies: realised copies by example_id; needed where the rules go by them.

    Raises:
        InputError: as `inject.examples.forget_set.select_members`, or when nobody is left.
    """
    gone = {one.example_id for one in forget}
    rest = [one for one in members(pool) if one.example_id not in gone]
    if not rest:
        raise InputError(
            "unlearning.retain: no member is left outside of the forget set",
            where="unlearning.forget",
            hint="Forget fewer, or leave out the methods that need a retain set.",
        )
    chosen = select_members(
        rest, retain, seed=seed, copies=copies, draw=RETAIN_DRAW, where="unlearning.retain"
    )
    return [one for one in rest if one.example_id in chosen]
