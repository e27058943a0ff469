"""Steps that make models: the base model, and one contaminated model an arm.

A `ModelNode` is where a model comes from: an artifact of the graph, or a pretrained model on
this disk or the hub, whose identity is the digests of its files or its commit.
"""

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import train.models.model_node
from detect.settings import Dtype
from inject.corpus.parts import TOKENS
from inject.examples.parts import UNSPLIT
from inject.model_folder import LOG_FILE
from inject.reading.unchanged import unchanged
from inject.settings import plain
from inject.source_digest import root
from inject.step import Cost
from inject.stream.audit_step import PASSED, require_passed
from spikein.config.schema import Experiment
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.inputs import reading_corpus
from spikein.pipeline.steps.variants import renditions_folder, variants_of
from train.checkpoint_steps import checkpoint_folder, checkpoint_steps
from train.cost import adapter_parameters
from train.execution import ExecutionSettings, deepspeed_config
from train.loop.schedule import step_count
from train.models.model_sizes import known_sizes
from train.models.shapes import Shape, flops_per_token, load_shape, parameter_count
from train.settings import LoraSettings, ModelSettings, TrainSettings

if TYPE_CHECKING:
    from train.loop.record import Progress, TrainingProgress

_LIBRARIES = ("torch", "transformers", "accelerate")
BYTES_A_PARAMETER = 16
"""float32 weight, gradient and two moments of AdamW."""


@dataclass(frozen=True, kw_only=True)
class ModelNode(train.models.model_node.ModelNode):
    """As in `train.models.model_node`, with what steps that are closures ask of it."""

    def dtype(self, asked: Dtype) -> Dtype:
        """Return the format."""
        return "float32" if asked == "auto" and self.step else asked

    def dtype_identity(self, asked: Dtype) -> str:
        """Return the format's name."""
        return self.format_identity(asked)

    def unchanged(self) -> AbstractContextManager[None]:
        """Load a pretrained model inside; it must still be the one that the step was named by."""
        if self.pretrained is None:
            return nullcontext()
        from train.models.pretrained import model_identity

        taken = partial(
            model_identity,
            self.pretrained,
            revision=self.revision,
            trust_remote_code=self.trust_remote_code,
        )
        return unchanged(self.pretrained, taken, self.identity)

    def locate(self, inputs: Mapping[str, Any], name: str) -> str:
        """Return the path or hub id to load the model from."""
        if self.step is None:
            return self.pretrained or ""
        path: Path = inputs[name].path
        return str(path if self.checkpoint is None else path / checkpoint_folder(self.checkpoint))


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a model is trained, the base model like an arm's."""

    corpus: Step
    shape: Shape | None
    """Of a model with new weights."""
    train: TrainSettings
    seed: int

    def identity(self) -> dict[str, Any]:
        """Return what decides the weights, beside the stream and the model to start from."""
        shape = None if self.shape is None else plain(self.shape)
        return {"train": plain(self.train), "shape": shape, "seed": self.seed}


def engine_identity(execution: ExecutionSettings) -> dict[str, Any]:
    """Return what of the engine decides weights beyond rounding: DeepSpeed's configuration."""
    config = deepspeed_config(execution)
    return {} if config is None else {"deepspeed": config}


def training_libraries(execution: ExecutionSettings, *, adapters: bool = False) -> tuple[str, ...]:
    """Return the libraries whose versions decide what training makes.

    Args:
        execution: of the experiment.
        adapters: whether weights are trained through adapters.
    """
    engine = ("deepspeed",) if execution.engine == "deepspeed" else ()
    return (*_LIBRARIES, *(("peft",) if adapters else ()), *engine)


def _run_training(training: Training, context: StepContext, stream: Mapping[str, Any]) -> None:
    """Train, in this process or in those that the step's execution names.

    Args:
        training: how.
        context: of the step.
        stream: further fields of the job: what the model sees, and what it starts from.
    """
    from train.job import TrainingJob, train_job

    with reading_corpus(training.corpus, context.inputs) as shards:
        job = TrainingJob(
            out=str(context.out),
            unfinished=str(context.unfinished),
            identity=context.unfinished.name,
            corpus=str(context.inputs["corpus"].path),
            shards=shards,
            shape=training.shape,
            train=training.train,
            execution=context.execution,
            seed=training.seed,
            **stream,
        )
        train_job(job, progress=report_training(context), notice=context.notice)


def base_node(experiment: Experiment, corpus: Step) -> ModelNode | None:
    """Return the model that saw no contaminant: trained here, or the pretrained one."""
    model = experiment.model
    if model.pretrained is not None:
        from train.models.pretrained import model_identity

        return ModelNode(
            pretrained=model.pretrained,
            revision=model.revision,
            trust_remote_code=model.trust_remote_code,
            identity=model_identity(
                model.pretrained,
                revision=model.revision,
                trust_remote_code=model.trust_remote_code,
            ),
        )
    if experiment.base is None:
        return None
    return ModelNode(step=_base_step(experiment, corpus))


def _base_step(experiment: Experiment, corpus: Step) -> Step:
    base, shape = experiment.base, _shape(experiment.model)
    if base is None or shape is None:
        raise TypeError("a base model is trained from a shape")
    tokens = base.tokens
    training = Training(
        corpus=corpus, shape=shape, train=base.resolved(experiment.train), seed=base.seed
    )

    def build(context: StepContext) -> None:
        _run_training(training, context, {"last_tokens": tokens})

    return Step(
        kind="model",
        label=f"base-{_count(tokens)}",
        settings={
            **training.identity(),
            "tokens": tokens,
            "from": "end",
            **engine_identity(experiment.execution),
        },
        inputs={"corpus": corpus},
        libraries=training_libraries(experiment.execution),
        volatile=(LOG_FILE,),
        execution=experiment.execution,
        code=(root(build),),
        reads={"corpus": TOKENS},
        build=build,
        cost=_cost(experiment, tokens * training.train.epochs),
    )


def arm_step(
    experiment: Experiment,
    *,
    corpus: Step,
    examples: Step,
    plan: Step,
    audit: Step,
    base: ModelNode | None,
    seed: int,
    label: str,
) -> Step:
    """Train one arm on its contaminated stream, and read back what the model saw."""
    settings, variants = experiment.train, experiment.variants
    fresh = settings.mode == "pretrain"
    shape = _shape(experiment.model) if fresh else None
    start = None if fresh else base
    if shape is None and start is None:
        raise TypeError("an arm needs a shape or a base model")

    training = Training(corpus=corpus, shape=shape, train=settings, seed=seed)

    def build(context: StepContext) -> None:
        from train.job import StartModel

        require_passed({name: one.path for name, one in context.inputs.items()})
        inputs = context.inputs
        begin = None
        if start is not None:
            begin = StartModel(
                name=start.locate(inputs, "base"),
                revision=start.revision,
                trust_remote_code=start.trust_remote_code,
                identity=None if start.pretrained is None else dict(start.identity or {}),
            )
        stream = {
            "plan": str(inputs["plan"].path),
            "examples": str(inputs["examples"].path),
            "renditions": renditions_folder(inputs),
            "variants": variants,
        }
        _run_training(training, context, {**stream, "start": begin})

    return Step(
        kind="model",
        label=label,
        settings={
            **training.identity(),
            **(start.settings("base") if start else {}),
            **engine_identity(experiment.execution),
        },
        inputs={
            "corpus": corpus,
            "examples": examples,
            "plan": plan,
            "audit": audit,
            **variants_of(plan),
            **(start.inputs("base") if start else {}),
        },
        libraries=training_libraries(experiment.execution, adapters=settings.adapters is not None),
        volatile=(LOG_FILE,),
        execution=experiment.execution,
        code=(root(build), root(ModelNode)),
        reads={"corpus": TOKENS, "examples": UNSPLIT, "audit": PASSED},
        build=build,
        cost=_cost(
            experiment,
            experiment.corpus.tokens * settings.epochs,
            models=1 + len(kept_steps(experiment)),
            lora=settings.adapters,
        ),
    )


def total_steps(experiment: Experiment) -> int:
    """Return the optimiser steps of an arm; at least 1."""
    return max(
        1, step_count(experiment.train, experiment.corpus.tokens // experiment.train.context)
    )


def kept_steps(experiment: Experiment) -> tuple[int, ...]:
    """Return the steps whose models an arm keeps.

    Raises:
        InputError: a step was asked for that the run does not have.
    """
    settings = experiment.train.checkpoints
    return () if settings is None else checkpoint_steps(settings, total_steps(experiment))


def _shape(model: ModelSettings) -> Shape | None:
    return load_shape(model.shape) if model.shape else None


def model_cost(experiment: Experiment, *, models: int = 1) -> Cost:
    """Estimate what a model takes that is trained on texts whose length is not known before."""
    found = _cost(experiment, 0, models=models)
    return replace(found, tokens=None, flops=None)


def _cost(
    experiment: Experiment, tokens: int, *, models: int = 1, lora: LoraSettings | None = None
) -> Cost:
    """Estimate a training run: FLOPs by the shape, memory for weights, gradients and moments."""
    sizes = known_sizes(experiment.model)
    if sizes is None:
        return Cost(tokens=tokens)
    parameters = parameter_count(sizes.shape, sizes.vocabulary)
    adapters = 0 if lora is None else adapter_parameters(sizes.shape, lora)
    operations = flops_per_token(sizes.shape, sizes.vocabulary, experiment.train.context, adapters)
    return Cost(
        tokens=tokens,
        flops=tokens * operations,
        memory_bytes=parameters * BYTES_A_PARAMETER,
        disk_bytes=parameters * 4 * models,
    )


def _count(tokens: int) -> str:
    """Return a number of tokens as people write it: `1M`, `300k`."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if tokens >= size:
            return f"{tokens / size:g}{unit}"
    return str(tokens)


def report_training(context: StepContext) -> "Progress":
    """Return what a training run calls to say how far it is."""

    def on_progress(moment: "TrainingProgress") -> None:
        note = f"loss {moment.loss:.3f}, {moment.tokens_per_second:,.0f} tokens/s"
        if not math.isnan(moment.mfu):
            note += f", MFU {moment.mfu:.0%}"
        context.report(moment.tokens, moment.total, unit="tokens", note=note)

    return on_progress
