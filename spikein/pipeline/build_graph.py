"""Build the graph of a checked experiment: the steps of its arms, and the goals.

base → corpus, examples, plan → audit → model → token statistics → scores → results. Arms share
every step with the same identity: one corpus, one base model, one pool per seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis.correction.question import ANSWERS, BASE_ANSWERS, TWIN_ANSWERS
from analysis.results import results_step
from analysis.studies.verdicts import StudyClaims
from analysis.task_accuracy.gain_step import accuracy_gain_step
from analysis.trajectory.checkpoints import trajectory_step
from analysis.unlearning.unlearning_step import unlearning_step
from detect.evidence.needs import TWIN, EvidenceSources, Shadow
from detect.evidence.token_counts import frequency_step
from detect.evidence.views import statistics_step
from detect.ground_truth.ground_truth import BASE, CONTAMINATED
from detect.scores_step import asked_settings, detectors_left_out, scores_step
from detect.task_accuracy.accuracy_step import accuracy_step
from detect.views import TEXT
from inject.corpus.separators import Separation
from inject.errors import InputError
from inject.examples.datasets.registry import get_dataset
from inject.examples.examples_step import examples_step
from inject.overlap.general_text_step import general_text_step
from inject.plan.settings import separations
from inject.reading.rows import unread_note
from inject.step import Step
from inject.variants.variants_step import LocalModels, variants_step
from spikein.config.copy_checkpoints import notes_on_steps_beyond, with_counted_steps
from spikein.config.design_rows import design_rows, log_columns
from spikein.config.load import CheckedExperiment
from spikein.config.schema import Experiment
from spikein.config.sweep import ArmExperiment
from spikein.pipeline.arm_nodes import ArmNodes, further_steps
from spikein.pipeline.background import Background, background_of, shared_key
from spikein.pipeline.graph import Graph
from spikein.pipeline.models import (
    Model,
    base_groups,
    checkpoint_groups,
    checkpoints_of,
    twin_groups,
)
from spikein.pipeline.twin_models import ArmInputs, spiked_model, twins_of
from spikein.pipeline.unlearning import (
    UnlearningNodes,
    unlearning_audits,
    unlearning_nodes,
    unlearnt_arm,
)
from train.device import Device, default_device
from train.models.model_node import ModelNode

_AGAINST_THE_TWIN = (
    "reference compares with the clean twin. An auditor of another's model has no such twin, so "
    "read it as an upper bound."
)
_LOCAL_MODELS = LocalModels(
    "train.models.pretrained:model_identity", "train.models.generation:LocalWriter"
)


@dataclass(frozen=True, kw_only=True)
class ExperimentGraph:
    """An experiment as a graph."""

    experiment: Experiment
    nodes: tuple[ArmNodes, ...]
    results: Step
    accuracy_gain: Step | None
    """Effects of training on task accuracy and on the loss on held-out background; None if neither
    is measured."""
    trajectory: Step | None
    """Detection at every scored checkpoint; None if no arm keeps any."""
    unlearning: Step | None
    """Effects of unlearning; None without the section `unlearning`."""
    unlearning_audits: Step | None
    """Audits of unlearned models; None without `unlearning.audit`."""
    graph: Graph
    notes: tuple[str, ...]
    """Skipped parts with their reasons, and names that could mean another file."""

    @property
    def page_steps(self) -> dict[str, Step]:
        """The inputs of the results that the page also reads, by name: all except answers."""
        return _page_steps(self.results)

    @property
    def short_notes(self) -> list[str]:
        """The notes, one for all detectors of `all` that lack the same requirement."""
        left_out = [skipped for node in self.nodes for skipped in detectors_left_out(node.sources)]
        lacking: dict[str, dict[str, None]] = {}
        for skipped in left_out:
            lacking.setdefault(skipped.hint, {})[skipped.detector] = None
        shortened = {skipped.note for skipped in left_out}
        return [note for note in self.notes if note not in shortened] + [
            f"{', '.join(names)} of `all` {'are' if len(names) > 1 else 'is'} left out. {hint}"
            for hint, names in lacking.items()
        ]


def _page_steps(results: Step) -> dict[str, Step]:
    return {name: step for name, step in results.inputs.items() if step.kind != "accuracy"}


def build_graph(checked: CheckedExperiment, *, device: Device | None = None) -> ExperimentGraph:
    """Build the graph of an experiment; read the content of its sources to name the steps.

    Args:
        checked: the experiment.
        device: the device of the steps; None for this machine's. It determines the number formats
            for `auto`: they are part of a step's identity, and the step computes in them on any
            machine.

    Raises:
        InputError: for a source that cannot be read or reached.
    """
    experiment = checked.experiment
    device = device or default_device()
    arms = [_resolve_formats(arm, device) for arm in checked.arms]
    tokens = _corpus_tokens(arms)
    separated = separations(arm.experiment.placement for arm in arms)
    backgrounds: dict[str, Background] = {}

    def background(arm: Experiment) -> Background:
        # Naming the steps that arms share reads their sources, which is done once.
        if (key := shared_key(arm)) not in backgrounds:
            backgrounds[key] = background_of(arm, tokens=tokens, seeds=experiment.seeds)
        return backgrounds[key]

    nodes = tuple(_arm_nodes(arm, background(arm.experiment), separated, device) for arm in arms)
    compared = [
        node.contaminated.group(
            {
                "scores": node.contaminated.scores,
                "examples": node.examples,
                "model": node.trained,
                **node.further,
                **node.answers,
            },
            model=CONTAMINATED,
            fixed_levels=node.arm.experiment.copies.levels is not None,
        )
        for node in nodes
    ]
    compared += base_groups([(node.base, node.examples) for node in nodes if node.base])
    compared += twin_groups([(twin, node.examples) for node in nodes for twin in node.reported])
    results = results_step(
        compared, experiment.analysis, label=experiment.name, claims=_study_claims(checked)
    )
    accuracy_gain = _accuracy_gain(nodes, experiment)
    checkpoints = [
        group
        for node in nodes
        for group in checkpoint_groups(node.checkpoints, node.trained, node.examples)
    ]
    trajectory = (
        trajectory_step(checkpoints, experiment.analysis, label=experiment.name)
        if checkpoints
        else None
    )
    unlearned = [node.unlearning for node in nodes if node.unlearning is not None]
    unlearning, audits = _unlearning_results(unlearned, experiment)
    goals = [results, *(step for step in (accuracy_gain, trajectory, unlearning, audits) if step)]
    # The inputs of the page and the run's folder are also goals.
    goals += [step for _, step in sorted(_page_steps(results).items())]
    for node in nodes:
        goals += [node.corpus, node.examples, node.plan, node.audit, node.trained]
        goals += [node.base.node.step] if node.base and node.base.node.step else []
        goals += node.unlearning.steps if node.unlearning else []
    # The page shows every stream that a model was trained on, those of shadow models included.
    for step in Graph(goals=tuple(goals)).steps:
        if step.kind == "model":
            goals += [
                step,
                *(step.inputs[name] for name in ("audit", "plan") if name in step.inputs),
            ]
    return ExperimentGraph(
        experiment=experiment,
        nodes=nodes,
        results=results,
        accuracy_gain=accuracy_gain,
        trajectory=trajectory,
        unlearning=unlearning,
        unlearning_audits=audits,
        graph=Graph(goals=tuple(goals), name=experiment.name),
        notes=(
            *checked.notes,
            *dict.fromkeys(notes_on_steps_beyond(checked.arms)),
            *_notes(nodes),
        ),
    )


def _study_claims(checked: CheckedExperiment) -> StudyClaims | None:
    """Return the claims of an experiment with what they refer to; None without any."""
    claims = checked.experiment.claims
    if not claims:
        return None
    effects = [claim.effect for claim in claims.values() if claim.effect is not None]
    used = {column for effect in effects for column in effect.columns}
    design = {
        arm: {column: value for column, value in row.items() if column in used}
        for arm, row in log_columns(design_rows(checked.arms)).items()
        if used
    }
    arms = {arm.name: arm.labels for arm in checked.arms}
    return StudyClaims(claims=claims, arms=arms, design=design)


def _unlearning_results(
    arms: Sequence[UnlearningNodes], experiment: Experiment
) -> tuple[Step | None, Step | None]:
    """Return the measures of unlearned models, and their audits."""
    section, label = experiment.unlearning, experiment.name
    if section is None or not arms:
        return None, None
    confidence = experiment.analysis.confidence
    measured = [unlearnt_arm(arm) for arm in arms]
    return (
        unlearning_step(measured, section.measures, confidence=confidence, label=label),
        unlearning_audits(arms, section.audit, label=label) if section.audit else None,
    )


def _arm_nodes(
    arm: ArmExperiment, background: Background, separated: tuple[Separation, ...], device: Device
) -> ArmNodes:
    experiment, seed = arm.experiment, arm.seed
    tokenizer, corpus, base = background
    examples = examples_step(
        experiment.contaminants,
        experiment.pool,
        tokenizer,
        context=experiment.train.context,
        separations=separated,
        tune_share=experiment.detect.tune_share,
        seed=seed,
    )
    variants = variants_step(
        experiment.variants, examples, tokenizer, seed=seed, local=_LOCAL_MODELS
    )
    inputs = ArmInputs(corpus, examples, variants, base)
    contaminated = spiked_model(arm, CONTAMINATED, experiment, inputs, label=arm.label)
    twins = twins_of(contaminated, inputs=inputs)
    sources = EvidenceSources(
        detect=experiment.detect,
        examples=examples,
        base=base,
        frequency=frequency_step(corpus, experiment.detect),
        twin=None if twins.clean is None else twins.clean.node,
        shadows=tuple(Shadow(shadow.node, shadow.membership) for shadow in twins.shadows),
        held_out=max(contaminant.held_out for contaminant in experiment.contaminants),
        known_members=experiment.detect.tune_share > 0,
        paraphrased=any(
            get_dataset(contaminant.dataset).paraphrases for contaminant in experiment.contaminants
        ),
    )
    scores = scores_step(contaminated.node, sources, role="arm")
    if scores is None:
        raise InputError(
            "no requested detector looks at the model",
            where="detect.detectors",
            hint="Name one that does, such as loss; blind always runs.",
        )
    twins = twins.scored(sources)
    contaminated = replace(contaminated, scores=scores)
    start = None
    if base is not None:
        base_scores = scores_step(base, sources, role="base")
        start = Model(arm=arm, role=BASE, node=base, scores=base_scores)
    answering = {
        ANSWERS: contaminated.node,
        BASE_ANSWERS: base,
        TWIN_ANSWERS: None if twins.clean is None else twins.clean.node,
    }
    further, further_notes = further_steps(contaminated.node, sources, experiment.analysis)
    return ArmNodes(
        arm=arm,
        tokenizer=tokenizer,
        corpus=corpus,
        contaminated=contaminated,
        base=start,
        checkpoints=checkpoints_of(
            contaminated, start, lambda model: scores_step(model, sources, role="arm")
        ),
        twins=twins,
        sources=sources,
        answers=_answers(answering, examples, experiment),
        background=_background(contaminated.node, base, corpus, experiment),
        further=further,
        further_notes=further_notes,
        unlearning=None
        if experiment.unlearning is None
        else unlearning_nodes(
            contaminated,
            start,
            twins,
            sources,
            # No model was trained on it.
            general=general_text_step(corpus, experiment.unlearning.general_tokens),
            device=device,
        ),
    )


def _background(
    trained: ModelNode, base: ModelNode | None, corpus: Step, experiment: Experiment
) -> dict[str, Step]:
    """Return the statistics of held-out background under both models; empty unless measured."""
    texts = general_text_step(corpus, experiment.analysis.background_tokens)
    models = {"before": base, "after": trained}
    return {
        f"background-{moment}": statistics_step(model, texts, view=TEXT, detect=experiment.detect)
        for moment, model in models.items()
        if model is not None and texts is not None
    }


def _answers(
    models: Mapping[str, ModelNode | None], examples: Step, experiment: Experiment
) -> dict[str, Step]:
    """Return the models' answers to the benchmarks' questions; empty if they are not queried."""
    steps = {
        name: accuracy_step(model, examples, experiment.contaminants, experiment.detect)
        for name, model in models.items()
        if model is not None and experiment.analysis.task_accuracy
    }
    return {name: step for name, step in steps.items() if step is not None}


def _accuracy_gain(nodes: tuple[ArmNodes, ...], experiment: Experiment) -> Step | None:
    arms = [
        node.contaminated.group(
            {
                "before": node.answers.get(BASE_ANSWERS),
                "after": node.answers.get(ANSWERS),
                "examples": node.examples,
                "model": node.trained,
                **node.background,
            },
        )
        for node in nodes
        if node.answers or node.background
    ]
    return accuracy_gain_step(arms, experiment.analysis, label=experiment.name) if arms else None


def _resolve_formats(arm: ArmExperiment, device: Device) -> ArmExperiment:
    """Return an arm with `auto` replaced by number formats, and checkpoints by their steps."""
    experiment = with_counted_steps(arm.experiment)
    train, base, detect = experiment.train, experiment.base, experiment.detect
    formats: dict[str, Any] = {
        "train": train.model_copy(update={"precision": device.training_precision(train.precision)}),
        "detect": detect.model_copy(
            update={"dtype": device.scoring_format(detect.dtype, device_kind=detect.device)}
        ),
    }
    if base is not None:
        precision = device.training_precision(base.precision)
        formats["base"] = base.model_copy(update={"precision": precision})
    return replace(arm, experiment=experiment.model_copy(update=formats))


def _corpus_tokens(arms: Sequence[ArmExperiment]) -> int:
    """Return the length of the clean corpus: the longest background, plus the base model's."""
    streams = max(arm.experiment.corpus.unique_tokens for arm in arms)
    base = max(arm.experiment.base.tokens if arm.experiment.base else 0 for arm in arms)
    return streams + base


def _notes(nodes: tuple[ArmNodes, ...]) -> tuple[str, ...]:
    notes: dict[str, None] = {}
    for node in nodes:
        experiment = node.arm.experiment
        if experiment.detect.reference == TWIN:
            notes[_AGAINST_THE_TWIN] = None
        files = [source.path for source in experiment.corpus.sources if source.kind == "files"]
        read = dict.fromkeys(files, "corpus.sources")
        read |= {
            source.path: f"contaminants.{source.name}"
            for source in experiment.contaminants
            if source.path
        }
        for pattern, place in read.items():
            if note := unread_note(pattern, key=place):
                notes[note] = None
        notes |= dict.fromkeys((*asked_settings(node.sources)[1], *node.further_notes))
    return tuple(notes)
