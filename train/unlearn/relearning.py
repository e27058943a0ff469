"""Relearning: plain training on some of the forgotten texts, to measure how soon the rest returns.

Hidden knowledge returns within a few steps, also for texts that are not trained on; removed
knowledge must be learnt as by a model that never had it (Tarun et al. 2023, relearn time; Lynch et
al. 2024, section 4). Each optimiser step sees every text once, so its number is the number of
exposures, and models are kept after the requested steps. For the loop it is a method like the
others, but experiment files cannot list it among those that forget.
"""

from typing import Any

from pydantic import model_validator

from inject.examples.example import UNSPLIT, members, read_examples
from inject.model_folder import LOG_FILE
from inject.settings import plain
from inject.step import Step, StepContext
from train.execution import ExecutionSettings, engine_identity, training_libraries
from train.job import report_training
from train.models.model_node import GivenModel
from train.models.model_sizes import model_cost
from train.settings import CheckpointSettings, ModelSettings, Precision, TrainSettings
from train.unlearn.job import unlearn_job
from train.unlearn.method import Batch, MethodSettings, Tensor, UnlearningMethod
from train.unlearn.unlearning_job import UnlearningJob


class RelearningSettings(MethodSettings):
    """Settings for learning texts again."""

    kept: tuple[int, ...] = ()
    """Optimiser steps after which a model is kept, in addition to the last one."""

    @model_validator(mode="after")
    def _all_texts_make_a_step(self) -> "RelearningSettings":
        if "batch_texts" in self.model_fields_set:
            raise ValueError("each step contains all texts, so batch_texts does not apply")
        return self

    def training(self, length: int) -> TrainSettings:
        """Return these settings as the loop's, with the intermediate models to keep."""
        settings = super().training(length)
        checkpoints = CheckpointSettings(steps=self.kept) if self.kept else None
        return settings.model_copy(update={"checkpoints": checkpoints})


def loss(batch: Batch) -> Tensor:
    """Return the usual loss of each text, [texts]."""
    return batch.forget.loss


METHOD = UnlearningMethod(name="relearn", loss=loss, settings=RelearningSettings, whole_steps=True)


def relearning_entry(*, steps: tuple[int, ...], lr: float, precision: str) -> dict[str, Any]:
    """Return the entry of an `UnlearningJob` that trains on all of its texts in each step.

    Args:
        steps: optimiser steps after which a model is kept, ascending; the last ends the run.
        lr: learning rate, constant.
        precision: arithmetic of the passes.
    """
    return {
        "method": METHOD.name,
        "lr": lr,
        "schedule": "constant",
        "weight_decay": 0.0,
        "epochs": steps[-1],
        "precision": precision,
        "kept": steps[:-1],
    }


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
    """Train a model on half of the forget set, and keep it after each requested step.

    Args:
        model: the model.
        half: the pool, with the relearnt examples as members.
        steps: optimiser steps after which the model is kept, ascending; the last ends the run.
        lr: learning rate, constant.
        precision: arithmetic of the passes.
        seed: seed of the order of the texts.
        sizes: settings of the model's sizes, for its costs.
        execution: device, and number of processes.
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
        original=GivenModel(path=str(context.inputs["model"])),
        examples=str(folder),
        forget_ids=tuple(example.example_id for example in members(read_examples(folder))),
        method=relearning_entry(**{**relearn, "steps": tuple(relearn["steps"])}),
        execution=ExecutionSettings.model_validate(context.execution["training"]),
        seed=context.settings["seed"],
    )
    unlearn_job(job, progress=report_training(context.report), notice=context.notice)
