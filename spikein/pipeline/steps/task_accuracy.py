"""The step of what each model gained in answering the benchmarks' questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.figures.accuracy import draw_accuracy_gain
from analysis.settings import AnalysisSettings
from analysis.task_accuracy.accuracy_gain import accuracy_gain_tables
from inject.source_digest import root
from inject.stream.exposures import EXPOSURES, read_exposures, seen_copy_counts
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.inputs import numbered_folders, numbered_inputs, numbered_reads
from spikein.pipeline.steps.results import figures_record

_USED = {"confidence", "zero_copies"}


@dataclass(frozen=True, kw_only=True)
class AccuracySteps:
    """The steps of one arm that its gain is computed from."""

    axes: Mapping[str, str]
    seed: int
    before: Step | None
    """The base model's answers; None where there is no base model."""
    after: Step
    examples: Step
    trained: Step


def accuracy_gain_step(
    arms: Sequence[AccuracySteps], settings: AnalysisSettings, *, label: str
) -> Step:
    """Compare members and non-members, before and after, over all arms of an experiment."""
    inputs = numbered_inputs(
        [
            {
                "after": arm.after,
                "examples": arm.examples,
                "model": arm.trained,
                "before": arm.before,
            }
            for arm in arms
        ]
    )

    def build(context: StepContext) -> None:
        from analysis.task_accuracy.contamination import (
            accuracy_cells,
            accuracy_table,
            write_accuracy_table,
        )

        found = [_opened(arm, number, context.inputs) for number, arm in enumerate(arms)]
        table = accuracy_table(accuracy_cells(found, settings))
        write_accuracy_table(context.out, table)
        axes = list(dict.fromkeys(key for arm in arms for key in arm.axes))
        figure = draw_accuracy_gain(context.out / "figures", accuracy_gain_tables(table, axes))
        figures_record(context.out, [] if figure is None else [figure])

    return Step(
        kind="accuracy_gain",
        label=label,
        settings={
            "analysis": settings.model_dump(mode="json", include=_USED),
            "arms": [{"axes": dict(arm.axes), "seed": arm.seed} for arm in arms],
        },
        inputs=inputs,
        libraries=("numpy", "matplotlib"),
        code=(root(build),),
        reads=numbered_reads(inputs, "model", EXPOSURES),
        build=build,
    )


def _opened(arm: AccuracySteps, number: int, inputs: Mapping[str, Any]) -> Any:
    from analysis.task_accuracy.contamination import AccuracyArm

    folders = numbered_folders(inputs, number)
    return AccuracyArm(
        axes=arm.axes,
        seed=arm.seed,
        before=folders.get("before"),
        after=folders["after"],
        examples=folders["examples"],
        copies=seen_copy_counts(read_exposures(folders["model"])),
    )
