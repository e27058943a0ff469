"""The step of what training did to the models: task accuracy, and loss on held-out background."""

from collections.abc import Sequence

from analysis.findings import write_findings
from analysis.settings import AnalysisSettings
from analysis.task_accuracy.background_loss import (
    BACKGROUND_LOSS,
    BackgroundArm,
    background_loss_table,
)
from analysis.task_accuracy.contamination import (
    AccuracyArm,
    accuracy_table,
)
from inject.step import Step, StepContext, StepGroup, compared_models, comparing_step
from inject.stream.exposures import EXPOSURES, read_exposures, seen_copy_counts

_USED = {"confidence", "zero_copies"}


def accuracy_gain_step(
    arms: Sequence[StepGroup], settings: AnalysisSettings, *, label: str
) -> Step:
    """Compare members and non-members, before and after, over all arms of an experiment.

    Args:
        arms: their values are `axes` (pairs) and `seed`; their steps `after` and `before` (the
            answers; no `before` without a base model), `examples`, `model`, and, if the loss on
            background is measured, `background-after` and `background-before`.
        settings: of the analysis.
        label: for people.
    """
    return comparing_step(
        f"{__name__}:build",
        arms,
        kind="accuracy_gain",
        label=label,
        settings={"analysis": settings.model_dump(mode="json", include=_USED)},
        reading=EXPOSURES,
        libraries=("numpy",),
    )


def build(context: StepContext) -> None:
    """Compare the answers and the losses, and write the tables."""
    settings = AnalysisSettings.model_validate(context.settings["analysis"])
    compared = list(compared_models(context.settings["arms"], context.inputs))
    arms = [
        AccuracyArm(
            axes=values["axes"],
            seed=values["seed"],
            before=folders.get("before"),
            after=folders["after"],
            examples=folders["examples"],
            copies=seen_copy_counts(read_exposures(folders["model"])),
        )
        for values, folders in compared
        if "after" in folders
    ]
    backgrounds = [
        BackgroundArm(
            values["axes"],
            values["seed"],
            folders.get("background-before"),
            folders["background-after"],
        )
        for values, folders in compared
        if "background-after" in folders
    ]
    tables = {}
    if arms:
        tables["accuracy"] = accuracy_table(arms, settings)
    if backgrounds:
        tables[BACKGROUND_LOSS] = background_loss_table(backgrounds, confidence=settings.confidence)
    write_findings(context.out, tables)
