"""The step that trains a model on forgotten texts again, and keeps it on the way."""

from inject.examples.example import members, read_examples
from inject.examples.parts import UNSPLIT
from inject.model_folder import LOG_FILE
from inject.settings import plain
from inject.step import Step, StepContext
from train.execution import ExecutionSettings, engine_identity, training_libraries
from train.job import StartModel, report_training
from train.models.model_sizes import model_cost
from train.settings import ModelSettings, Precision
from train.unlearn.job import unlearn_job
from train.unlearn.relearning_method import relearning_entry
from train.unlearn.unlearning_job import UnlearningJob


def relearnt_step(
    model: Step,
    half: Step,
    *,
    steps: tuple[int, ...],
    lr: float,
    precision: Precision,
    seed: int,
    sizes: ModelSettings,
    execution: ExecutionSettings,
) -> Step:
    """Train a model on the half of the forget set, and keep it after each step asked for.

    Args:
        model: which.
        half: the pool, with those as members who are learnt again.
        steps: optimiser steps after which the model is kept, ascending; the last ends the run.
        lr: learning rate, constant.
        precision: arithmetic of the passes.
        seed: of the order of the texts.
        sizes: what the model was made from, for its costs.
        execution: where, and in how many processes.
    """
    return Step(
        kind="model",
        label=f"relearned-{model.label}",
        function=f"{__name__}:build",
        settings={
            "relearn": {"steps": list(steps), "lr": lr, "precision": precision},
            "seed": seed,
            **engine_identity(execution),
        },
        inputs={"model": model, "half": half},
        libraries=training_libraries(execution),
        volatile=(LOG_FILE,),
        execution={"training": plain(execution)},
        processes=execution.processes,
        reads={"half": UNSPLIT},
        cost=model_cost(sizes, models=len(steps)),
    )


def build(context: StepContext) -> None:
    """Train on the half."""
    relearn, folder = context.settings["relearn"], context.inputs["half"]
    job = UnlearningJob(
        out=str(context.out),
        unfinished=str(context.unfinished),
        identity=context.unfinished.name,
        original=StartModel(name=str(context.inputs["model"])),
        examples=str(folder),
        forget_ids=tuple(one.example_id for one in members(read_examples(folder))),
        method=relearning_entry(**{**relearn, "steps": tuple(relearn["steps"])}),
        execution=ExecutionSettings.model_validate(context.execution["training"]),
        seed=context.settings["seed"],
    )
    unlearn_job(job, progress=report_training(context.report), notice=context.notice)
