"""Unlearning of a model: the step, and its job in this process or in several started for it.

The rows to forget are read from the sides of the retrained model, so the two cannot disagree. A
method that uses no other members does not depend on a retain set. `unlearn_job` writes a model
folder as `train.job.run` does: weights, tokenizer, `log.parquet`, `exposures.parquet`. A method
with a first stage trains two models one after the other; the first is sealed in the folder that
survives a kill.
"""

import shutil
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from inject.errors import InputError
from inject.examples.example import UNSPLIT, Example, members, read_examples
from inject.examples.forget_set import RetainSet, forgotten_rows, select_members
from inject.model_folder import LOG_FILE
from inject.plan.plan import read_plan
from inject.reading.change_guard import unchanged
from inject.settings import plain
from inject.step import Step, StepContext
from inject.verified_files import seal, verified_facts
from train.execution import ExecutionSettings, engine_identity, training_libraries
from train.job import report_training, run_job
from train.models.model_node import GivenModel
from train.models.model_sizes import model_cost
from train.settings import ModelSettings
from train.unlearn.registry import MethodSetting
from train.unlearn.unlearning_job import (
    FIRST_STAGE,
    UnlearningJob,
    chosen_examples,
    first_model,
    stage_unfinished,
)

if TYPE_CHECKING:
    from train.loop.record import Progress

RETAIN_DRAW = 1
"""Index of the retain set among the draws of shares; the forget set is draw 0."""
_RETAIN = "unlearning.retain"


def unlearned_step(
    setting: MethodSetting,
    inputs: Mapping[str, Step],
    retain: RetainSet,
    *,
    seed: int,
    label: str,
    sizes: ModelSettings,
    execution: ExecutionSettings,
) -> Step:
    """Make the original forget the forget set by one method.

    Args:
        setting: the method.
        inputs: of the arm: `original`, its contaminated model; `examples`, its pool; `membership`,
            the pool with the retrained model's members; `counts`, its plan, which is read if the
            retain set depends on numbers of copies.
        retain: the rules of the retain set; unused if the method needs none.
        seed: the arm's seed.
        label: label for display.
        sizes: settings of the original's sizes, for the costs.
        execution: device, and number of processes.
    """
    rules = retain if setting.needs_retain else None
    reads = {"examples": UNSPLIT, "membership": UNSPLIT}
    if rules is not None and rules.share is not None:
        # A share is drawn within each split, so another split gives another retain set.
        del reads["examples"]
    return Step(
        kind="model",
        label=label,
        function=f"{__name__}:build",
        settings={
            "method": setting.identity(),
            "seed": seed,
            **({} if rules is None else {"retain": rules.identity(key=_RETAIN)}),
            **engine_identity(execution),
        },
        inputs={
            name: step
            for name, step in inputs.items()
            if name != "counts" or (rules is not None and rules.copies is not None)
        },
        libraries=training_libraries(execution, adapters=setting.settings.mode == "lora"),
        volatile=(LOG_FILE,),
        execution={
            "training": plain(execution),
            "method": setting.entry(),
            "retain": None if rules is None else plain(rules),
        },
        processes=execution.processes,
        code=setting.code,
        reads=reads,
        cost=model_cost(sizes),
    )


def build(context: StepContext) -> None:
    """Unlearn by the method."""
    inputs = context.inputs
    pool = read_examples(inputs["examples"])
    forget = forgotten_rows(pool, read_examples(inputs["membership"]))
    job = UnlearningJob(
        out=str(context.out),
        unfinished=str(context.unfinished),
        identity=context.unfinished.name,
        original=GivenModel(path=str(inputs["original"])),
        examples=str(inputs["examples"]),
        forget_ids=tuple(example.example_id for example in forget),
        retain_ids=tuple(example.example_id for example in _retain(context, pool, forget)),
        method=context.execution["method"],
        execution=ExecutionSettings.model_validate(context.execution["training"]),
        seed=context.settings["seed"],
    )
    unlearn_job(job, progress=report_training(context.report), notice=context.notice)


def _retain(context: StepContext, pool: list[Example], forget: list[Example]) -> list[Example]:
    rules = context.execution["retain"]
    if rules is None:
        return []
    retain, inputs = RetainSet.model_validate(rules), context.inputs
    copies = read_plan(inputs["counts"]).realised() if "counts" in inputs else None
    named = context.settings["retain"]
    with unchanged(f"{_RETAIN}.ids", lambda: retain.identity(key=_RETAIN), named):
        return retained_rows(pool, forget, retain, seed=context.settings["seed"], copies=copies)


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
        copies: realised copies by example_id; required if the rules depend on them.

    Raises:
        InputError: as `inject.examples.forget_set.select_members`, or if no member remains.
    """
    forgotten = {example.example_id for example in forget}
    others = [example for example in members(pool) if example.example_id not in forgotten]
    if not others:
        raise InputError(
            f"{_RETAIN}: no member remains outside the forget set",
            where="unlearning.forget",
            hint="Forget fewer, or remove the methods that need a retain set.",
        )
    chosen = select_members(others, retain, seed=seed, copies=copies, draw=RETAIN_DRAW, key=_RETAIN)
    return [example for example in others if example.example_id in chosen]


def unlearn_job(
    job: UnlearningJob,
    *,
    progress: "Progress | None" = None,
    notice: Callable[[str], None] | None = None,
) -> None:
    """Make a model forget, by the job's execution settings: in this process or in several.

    Args:
        job: the job.
        progress: called with the progress of the current stage.
        notice: called with notices for the user.

    Raises:
        InputError: forget or retain texts that are not among the members, an empty retain set if
            the method needs one, texts without tokens, settings that do not fit; before any
            training.
        TrainingDiverged: if a training loss is infinite or not a number.
        ProcessFailed: one of several processes died or hangs.
        Preempted: SIGTERM came, and a restart checkpoint was written.
    """
    from train.unlearn.stages import finish, run_stage

    def run(*stage: str) -> None:
        unfinished = stage_unfinished(job, *stage)
        run_job(run_stage, job, unfinished, *stage, progress=progress, notice=notice)

    setting = job.setting()
    chosen_examples(job, setting)
    if setting.method.first is not None:
        out = first_model(job)
        facts = verified_facts(out)
        if facts is None or facts["identity"] != job.identity:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            run(FIRST_STAGE)
            seal(out, {"identity": job.identity})
    run()
    finish(job, setting)
