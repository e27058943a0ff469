"""The step of the measures: what every unlearned model of an experiment forgot, kept and relearns.

Its inputs are scores, token statistics and answers that other steps made, and the retrained models'
exposures: one that still held a copy of a forgotten text is refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis.unlearning.evidence import ArmEvidence, ModelEvidence
from analysis.unlearning.settings import MeasureSettings
from analysis.unlearning.table import measure_unlearning, write_tables
from detect.scores.table import default_settings
from inject.examples.example import members, read_examples
from inject.settings import plain
from inject.step import (
    Step,
    StepContext,
    StepGroup,
    numbered_folders,
    numbered_inputs,
    numbered_reads,
)
from inject.stream.exposures import EXPOSURES, read_exposures, require_unexposed, seen_copy_counts


class UnlearntArm(NamedTuple):
    """One arm under one seed."""

    arm: StepGroup
    """Values: `axes` (pairs) and `seed`. Steps: `examples`, `membership` (the sides that hold for
    the retrained model), `original` and `retrained` (the models), and `relearn_half` (the half of
    the forget set that is trained on again; None where nothing is)."""
    models: Sequence[StepGroup]
    """Values: `model`, `method`, `conditions` and `relearning` (what there is of both, in order).
    Steps: `scores`, and of `statistics`, `general`, `accuracy`, `condition NAME` and
    `relearned STEPS` what there is, as in `ModelEvidence`."""


def unlearning_step(
    arms: Sequence[UnlearntArm], settings: MeasureSettings, *, confidence: float, label: str
) -> Step:
    """Measure all unlearned models of an experiment.

    Args:
        arms: of all axes and seeds.
        settings: margins and tests.
        confidence: coverage asked of every interval.
        label: for people.
    """
    inputs = numbered_inputs([group.steps for one in arms for group in (one.arm, *one.models)])
    return Step(
        kind="unlearning",
        label=label,
        function=f"{__name__}:build",
        settings={
            "measures": plain(settings),
            "confidence": confidence,
            "arms": [
                {**one.arm.values, "models": [dict(model.values) for model in one.models]}
                for one in arms
            ],
        },
        inputs=inputs,
        libraries=("numpy", "scipy"),
        reads={
            **numbered_reads(inputs, "original", EXPOSURES),
            **numbered_reads(inputs, "retrained", EXPOSURES),
        },
    )


def build(context: StepContext) -> None:
    """Measure the models, and write both tables."""
    tables = measure_unlearning(
        list(_evidence(context)),
        MeasureSettings.model_validate(context.settings["measures"]),
        confidence=context.settings["confidence"],
        progress=lambda done, total: context.report(done, total, unit="arms"),
    )
    write_tables(context.out, tables)


def _evidence(context: StepContext) -> Iterator[ArmEvidence]:
    """Yield each arm's folders.

    Raises:
        InputError: the retrained model was fed a text of the forget set.
    """
    number = 0
    for arm in context.settings["arms"]:
        folders = numbered_folders(context.inputs, number)
        pool = {one.example_id for one in members(read_examples(folders["examples"]))}
        seen = {one.example_id for one in members(read_examples(folders["membership"]))}
        forget = frozenset(pool - seen)
        require_unexposed(folders["retrained"], forget)
        half = folders.get("relearn_half")
        yield ArmEvidence(
            axes=dict(arm["axes"]),
            seed=arm["seed"],
            examples=folders["examples"],
            forget=forget,
            retain=frozenset(pool & seen),
            copies=seen_copy_counts(read_exposures(folders["original"])),
            relearnt=frozenset(
                () if half is None else (one.example_id for one in members(read_examples(half)))
            ),
            models=tuple(
                _model(model, numbered_folders(context.inputs, number + place))
                for place, model in enumerate(arm["models"], start=1)
            ),
        )
        number += 1 + len(arm["models"])


def _model(values: Mapping[str, Any], folders: Mapping[str, Path]) -> ModelEvidence:
    return ModelEvidence(
        model=values["model"],
        method=values["method"],
        scores=folders["scores"],
        defaults=default_settings(folders["scores"]),
        statistics=folders["statistics"],
        general=folders.get("general"),
        accuracy=folders.get("accuracy"),
        conditions={name: folders[f"condition {name}"] for name in values["conditions"]},
        relearning={steps: folders[f"relearned {steps}"] for steps in values["relearning"]},
    )
