"""The step of the measures: what every unlearned model of an experiment forgot, kept and relearns.

Its inputs are scores, token statistics and answers that other steps made, and the retrained models'
exposures: one that still held a copy of a forgotten text is refused.

One pass over the cohorts (arms that differ only in their seed); at any time the numbers of one are
in memory. Cost: 3 seeds of 200 examples, 7 models and 20 detectors take about ten seconds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from analysis.arm import axis_names, gather_seeds
from analysis.copy_bins import copies_cells
from analysis.findings import question_table, write_findings
from analysis.settings import MeasureSettings
from analysis.unlearning.evidence import ArmEvidence, ModelEvidence, load_cohort
from analysis.unlearning.measure_rows import (
    RowWriter,
    write_forget_quality,
    write_measures,
    write_relearning,
)
from analysis.unlearning.verdict import verdict_rows
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


def unlearning_step(
    arms: Sequence[Sequence[StepGroup]], settings: MeasureSettings, *, confidence: float, label: str
) -> Step:
    """Measure all unlearned models of an experiment.

    Args:
        arms: of all axes and seeds: the arm, then its models. The arm's values are `axes` (pairs)
            and `seed`; its steps `examples`, `membership` (the sides that hold for the retrained
            model), `original` and `retrained` (the models), and `relearn_half` (the half of
            the forget set that is trained on again; None if none is). A model's values are
            `model`, `method`, `conditions` and `relearning` (what there is of both, in order); its
            steps `scores`, and of `statistics`, `general`, `accuracy`, `condition NAME` and
            `relearned STEPS` what there is, as in `ModelEvidence`.
        settings: margins and tests.
        confidence: coverage asked of every interval.
        label: for people.
    """
    inputs = numbered_inputs([group.steps for arm in arms for group in arm])
    return Step(
        kind="unlearning",
        label=label,
        function=f"{__name__}:build",
        settings={
            "measures": plain(settings),
            "confidence": confidence,
            "arms": [
                {**arm.values, "models": [dict(model.values) for model in models]}
                for arm, *models in arms
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
    """Measure the models, and write what was found."""
    tables = measure_unlearning(
        list(_evidence(context)),
        MeasureSettings.model_validate(context.settings["measures"]),
        confidence=context.settings["confidence"],
        progress=lambda done, total: context.report(done, total, unit="arms"),
    )
    write_findings(context.out, tables)


def _evidence(context: StepContext) -> Iterator[ArmEvidence]:
    """Yield each arm's folders.

    Raises:
        InputError: the retrained model was fed a text of the forget set.
    """
    number = 0
    for arm in context.settings["arms"]:
        folders = numbered_folders(context.inputs, number)
        pool = {row.example_id for row in members(read_examples(folders["examples"]))}
        seen = {row.example_id for row in members(read_examples(folders["membership"]))}
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
                () if half is None else (row.example_id for row in members(read_examples(half)))
            ),
            models=tuple(
                _model(model, numbered_folders(context.inputs, number + place))
                for place, model in enumerate(arm["models"], start=1)
            ),
        )
        number += 1 + len(arm["models"])


def _model(values: Mapping[str, Any], folders: Mapping[str, Path]) -> ModelEvidence:
    further = [f"condition {name}" for name in values["conditions"]]
    further += [f"relearned {steps}" for steps in values["relearning"]]
    names = ("scores", "statistics", "general", "accuracy", *further)
    return ModelEvidence(
        model=values["model"],
        method=values["method"],
        defaults=default_settings(folders["scores"]),
        folders={name: folders[name] for name in names if name in folders},
    )


def measure_unlearning(
    arms: Sequence[ArmEvidence],
    settings: MeasureSettings,
    *,
    confidence: float = 0.95,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, pa.Table]:
    """Measure every model of every arm.

    Args:
        arms: of all axes and seeds.
        settings: margins and tests.
        confidence: coverage asked of every interval.
        progress: called with how many of all cohorts are done.

    Returns:
        The tables of the questions `unlearning` and `verdict`.

    Raises:
        InputError: from `load_cohort`.
    """
    axes = axis_names(arms)
    measures, verdicts = [], []
    arms_by_axes = [*gather_seeds(arms).values()]
    for done, seed_arms in enumerate(arms_by_axes):
        progress(done, len(arms_by_axes))
        cohort = load_cohort(seed_arms)
        counts = cohort.copies[cohort.masks["forget"]].tolist()
        # Without a cell of `N+`: no text has so many copies.
        cells = copies_cells(counts, high_copies=1 << 62)
        writer = RowWriter(cohort=cohort, cells=cells, settings=settings, confidence=confidence)
        write_measures(writer)
        write_forget_quality(writer)
        write_relearning(writer)
        measures += writer.rows
        verdicts += verdict_rows(cohort, settings, confidence=confidence)
    tables = {"unlearning": measures, "verdict": verdicts}
    return {question: question_table(question, axes, rows) for question, rows in tables.items()}
