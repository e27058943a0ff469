"""The step of the measures: what every unlearned model of an experiment forgot, kept and relearns.

Its inputs are scores, token statistics and answers that other steps made, and the retrained models'
exposures: one that still held a copy of a forgotten text is refused.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis.figures.unlearning.figures import unlearning_figures
from analysis.unlearning.evidence import NO_METHOD, ArmEvidence, ModelEvidence, ModelName
from analysis.unlearning.settings import MeasureSettings
from analysis.unlearning.table import measure_unlearning, write_tables
from detect.evidence.views import statistics_step
from detect.task_accuracy.accuracy_step import accuracy_step
from inject.examples.example import members, read_examples
from inject.settings import plain
from inject.source_digest import root
from inject.stream.exposures import EXPOSURES, read_exposures, seen_copy_counts
from inject.stream.forgotten import require_unexposed
from spikein.config.schema import Experiment
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.inputs import numbered_folders, numbered_inputs, numbered_reads
from spikein.pipeline.steps.results import figures_record
from spikein.pipeline.steps.training import ModelNode
from spikein.pipeline.unlearning.nodes import FurtherScores, UnlearningNodes

_TEXT_VIEW = "view-text"
"""How the scores know the token statistics of the texts as they are."""
_CONDITION, _RELEARNED = "condition ", "relearned "


class _Model(NamedTuple):
    """One model of an arm with the steps that are read of it."""

    name: ModelName
    method: str
    defaults: Mapping[str, str]
    steps: Mapping[str, Step | None]


def unlearning_step(
    arms: Sequence[UnlearningNodes],
    settings: MeasureSettings,
    *,
    confidence: float,
    label: str,
) -> Step:
    """Measure all unlearned models of an experiment.

    Args:
        arms: of all axes and seeds.
        settings: margins and tests.
        confidence: coverage asked of every interval.
        label: for people.
    """
    models = [_models(one) for one in arms]
    groups = [group for arm, own in zip(arms, models, strict=True) for group in _groups(arm, own)]
    inputs = numbered_inputs(groups)

    def build(context: StepContext) -> None:
        found, start = [], 0
        for arm, own in zip(arms, models, strict=True):
            found.append(_evidence(arm, own, context.inputs, start))
            start += 1 + len(own)
        tables = measure_unlearning(
            found,
            settings,
            confidence=confidence,
            progress=lambda done, total: context.report(done, total, unit="arms"),
        )
        write_tables(context.out, tables)
        drawn = unlearning_figures(context.out, tables.measures.to_pylist())
        figures_record(context.out, drawn)

    return Step(
        kind="unlearning",
        label=label,
        settings={
            "measures": plain(settings),
            "confidence": confidence,
            "arms": [
                {
                    "axes": dict(arm.arm.labels),
                    "seed": arm.arm.seed,
                    "models": [[one.name, one.method] for one in own],
                }
                for arm, own in zip(arms, models, strict=True)
            ],
        },
        inputs=inputs,
        libraries=("numpy", "scipy", "matplotlib"),
        code=(root(build),),
        reads={
            **numbered_reads(inputs, "original", EXPOSURES),
            **numbered_reads(inputs, "retrained", EXPOSURES),
        },
        build=build,
    )


def _models(arm: UnlearningNodes) -> list[_Model]:
    """Return the models of an arm, the original and the retrained one first."""
    nothing = FurtherScores()
    original, retrained = ModelNode(step=arm.original), ModelNode(step=arm.retrained.trained)
    found = [
        _model(arm, "original", NO_METHOD, original, arm.original_scores, arm.original_further),
        _model(arm, "retrained", NO_METHOD, retrained, arm.retrained_scores, arm.retrained_further),
    ]
    found += [
        _model(arm, "unlearned", one.setting.label, ModelNode(step=one.trained), one.scores,
               one.further)
        for one in arm.unlearned
    ]  # fmt: skip
    if arm.base is not None and arm.base_scores is not None:
        found.append(_model(arm, "base", NO_METHOD, arm.base, arm.base_scores, nothing))
    return found


def _model(
    arm: UnlearningNodes,
    name: ModelName,
    method: str,
    model: ModelNode,
    scores: Step,
    further: FurtherScores,
) -> _Model:
    experiment: Experiment = arm.arm.experiment
    detect = arm.sources.detect
    asked = experiment.analysis.task_accuracy
    # The very step that the scores are drawn from, where some detector reads it.
    texts = statistics_step(model, arm.examples, view="text", detect=detect)
    general = arm.general
    steps: dict[str, Step | None] = {
        "scores": scores,
        "statistics": texts,
        "general": None
        if general is None
        else statistics_step(model, general, view="text", detect=detect),
        "accuracy": accuracy_step(model, arm.examples, experiment.contaminants, detect)
        if asked
        else None,
    }
    for condition, step in further.conditions.items():
        steps[f"{_CONDITION}{condition}"] = step
    for number, step in further.relearned.items():
        # Relearning is read of the texts' statistics; detectors that read none say nothing of it.
        if _TEXT_VIEW in step.inputs:
            steps[f"{_RELEARNED}{number}"] = step.inputs[_TEXT_VIEW]
    return _Model(name, method, dict(scores.settings["defaults"]), steps)


def _groups(arm: UnlearningNodes, models: Sequence[_Model]) -> list[Mapping[str, Step | None]]:
    """Return the inputs of an arm, then those of each of its models."""
    return [
        {
            "examples": arm.examples,
            "membership": arm.retrained.membership,
            "original": arm.original,
            "retrained": arm.retrained.trained,
            "relearn_half": arm.relearn_half,
        },
        *(one.steps for one in models),
    ]


def _evidence(
    arm: UnlearningNodes, models: Sequence[_Model], inputs: Mapping[str, Any], start: int
) -> ArmEvidence:
    """Return an arm's folders.

    Args:
        arm: its steps.
        models: its models.
        inputs: the finished inputs.
        start: the number of its group of inputs.

    Raises:
        InputError: the retrained model was fed a text of the forget set.
    """
    folders = numbered_folders(inputs, start)
    pool = {one.example_id for one in members(read_examples(folders["examples"]))}
    seen = {one.example_id for one in members(read_examples(folders["membership"]))}
    forget = frozenset(pool - seen)
    require_unexposed(folders["retrained"], forget)
    half = folders.get("relearn_half")
    return ArmEvidence(
        axes=arm.arm.labels,
        seed=arm.arm.seed,
        examples=folders["examples"],
        forget=forget,
        retain=frozenset(pool & seen),
        copies=seen_copy_counts(read_exposures(folders["original"])),
        relearnt=frozenset(
            () if half is None else (one.example_id for one in members(read_examples(half)))
        ),
        models=tuple(
            _model_evidence(one, numbered_folders(inputs, start + 1 + at))
            for at, one in enumerate(models)
        ),
    )


def _model_evidence(model: _Model, folders: Mapping[str, Path]) -> ModelEvidence:
    return ModelEvidence(
        model=model.name,
        method=model.method,
        scores=folders["scores"],
        defaults=model.defaults,
        statistics=folders["statistics"],
        general=folders.get("general"),
        accuracy=folders.get("accuracy"),
        conditions={
            name.removeprefix(_CONDITION): folder
            for name, folder in folders.items()
            if name.startswith(_CONDITION)
        },
        relearning={
            int(name.removeprefix(_RELEARNED)): folder
            for name, folder in folders.items()
            if name.startswith(_RELEARNED)
        },
    )
