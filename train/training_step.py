"""The steps that train a model: the base model, and one contaminated model per arm."""

from dataclasses import dataclass, replace
from typing import Any

from inject.corpus.corpus import TOKENS
from inject.examples.example import UNSPLIT
from inject.model_folder import LOG_FILE
from inject.settings import plain
from inject.step import Cost, Step, StepContext
from inject.stream.audit_report import PASSED, require_passed
from inject.stream.inputs import corpus_execution, reading_corpus, variants_of
from inject.variants.settings import Variants
from train.cost import adapter_parameters
from train.execution import ExecutionSettings, engine_identity, training_libraries
from train.job import TrainingJob, report_training, run, run_job
from train.models.model_node import ModelNode
from train.models.model_sizes import known_sizes, model_cost
from train.models.shapes import flops_per_token, load_shape
from train.schedule import kept_steps
from train.settings import ModelSettings, TrainSettings


@dataclass(frozen=True, kw_only=True)
class Training:
    """Training of a model, of the base model or of an arm."""

    model: ModelSettings
    train: TrainSettings
    tokens: int
    """Tokens of the stream, which each epoch reads once."""
    execution: ExecutionSettings
    seed: int

    @property
    def fresh(self) -> bool:
        """Whether training starts from new weights."""
        return self.train.mode == "pretrain"

    def step(
        self,
        function: str,
        label: str,
        inputs: dict[str, Step],
        settings: dict[str, Any],
        execution: dict[str, Any],
    ) -> Step:
        """Return the step of this training.

        Args:
            function: the step function, from this module.
            label: label for display.
            inputs: `corpus`, and further inputs.
            settings: further settings that determine the weights.
            execution: further execution settings of the function.
        """
        shape = plain(load_shape(self.model.shape)) if self.fresh and self.model.shape else None
        return Step(
            kind="model",
            label=label,
            function=f"{__name__}:{function}",
            settings={
                # Counted from the start by now.
                "train": plain(self.train, exclude={"checkpoints": {"after_copies"}}),
                "shape": shape,
                "seed": self.seed,
                **settings,
                **engine_identity(self.execution),
            },
            inputs=inputs,
            libraries=training_libraries(self.execution, adapters=self.train.adapters is not None),
            volatile=(LOG_FILE,),
            execution={
                **corpus_execution(inputs["corpus"]),
                "training": plain(self.execution),
                **execution,
            },
            processes=self.execution.processes,
            reads={"corpus": TOKENS, "examples": UNSPLIT, "audit": PASSED},
            cost=self._cost(),
        )

    def _cost(self) -> Cost:
        """Estimate the run: FLOPs by the shape, memory for weights, gradients and moments."""
        train, tokens = self.train, self.tokens * self.train.epochs
        flops = None
        if sizes := known_sizes(self.model):
            lora = 0 if train.adapters is None else adapter_parameters(sizes.shape, train.adapters)
            flops = tokens * flops_per_token(sizes.shape, sizes.vocabulary, train.context, lora)
        steps = kept_steps(train, self.tokens)
        return replace(model_cost(self.model, models=1 + len(steps)), tokens=tokens, flops=flops)


def base_step(training: Training, corpus: Step) -> Step:
    """Train the model that saw no contaminant, on the last tokens of the clean corpus."""
    tokens = training.tokens
    return training.step(
        "build_base",
        f"base-{_count(tokens)}",
        {"corpus": corpus},
        {"tokens": tokens, "from": "end"},
        {},
    )


def build_base(context: StepContext) -> None:
    """Train on the last tokens of the corpus."""
    _train(context, {"last_tokens": context.settings["tokens"]})


def arm_step(
    training: Training,
    plan: Step,
    audit: Step,
    variants: Variants,
    *,
    start: ModelNode | None,
    label: str,
) -> Step:
    """Train one arm on its contaminated stream, and read back the model's exposures.

    Args:
        training: training settings.
        plan: plan of the stream.
        audit: audit of that stream, which must pass before training.
        variants: the texts that copies can carry.
        start: the initial model; unused if weights are new.
        label: label for display.
    """
    start = None if training.fresh else start
    if start is None and not (training.fresh and training.model.shape):
        raise TypeError("an arm needs a shape or a base model")
    return training.step(
        "build_arm",
        label,
        {
            "corpus": plan.inputs["corpus"],
            "examples": plan.inputs["examples"],
            "plan": plan,
            "audit": audit,
            **variants_of(plan),
            **(start.inputs("base") if start else {}),
        },
        start.settings("base") if start else {},
        {"variants": plain(variants), **(start.execution("base") if start else {})},
    )


def build_arm(context: StepContext) -> None:
    """Train on the stream of the plan."""
    inputs = context.inputs
    require_passed(inputs["audit"])
    start = ModelNode.given(context, "base") if "base" in context.execution else None
    stream = {
        "plan": str(inputs["plan"]),
        "examples": str(inputs["examples"]),
        "renditions": str(inputs["variants"]) if "variants" in inputs else None,
        "variants": context.execution["variants"],
        "start": start,
    }
    _train(context, stream)


def _train(context: StepContext, stream: dict[str, Any]) -> None:
    """Train, in this process or in those of the step's execution settings.

    Args:
        context: context of the step.
        stream: further fields of the job: training data, and initial model.
    """
    with reading_corpus(context) as shards:
        job = TrainingJob.model_validate(
            {
                "out": str(context.out),
                "unfinished": str(context.unfinished),
                "identity": context.unfinished.name,
                "corpus": str(context.inputs["corpus"]),
                "shards": shards,
                **{name: context.settings[name] for name in ("shape", "train", "seed")},
                "execution": context.execution["training"],
                **stream,
            }
        )
        run_job(
            run,
            job,
            context.unfinished,
            progress=report_training(context.report),
            notice=context.notice,
        )


def _count(tokens: int) -> str:
    """Return a number of tokens in short form: `1M`, `300k`."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if tokens >= size:
            return f"{tokens / size:g}{unit}"
    return str(tokens)
