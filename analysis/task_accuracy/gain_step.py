"""The step of accuracy gain: what task accuracy gained by training, over all arms."""

from collections.abc import Sequence

from analysis.findings import write_findings
from analysis.settings import AnalysisSettings
from analysis.task_accuracy.contamination import (
    AccuracyArm,
    accuracy_cells,
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
            answers; no `before` where there is no base model), `examples`, and `model`.
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
    """Compare the answers, and write the table."""
    settings = AnalysisSettings.model_validate(context.settings["analysis"])
    arms = [
        AccuracyArm(
            axes=values["axes"],
            seed=values["seed"],
            before=folders.get("before"),
            after=folders["after"],
            examples=folders["examples"],
            copies=seen_copy_counts(read_exposures(folders["model"])),
        )
        for values, folders in compared_models(context.settings["arms"], context.inputs)
    ]
    write_findings(context.out, {"accuracy": accuracy_table(accuracy_cells(arms, settings))})
