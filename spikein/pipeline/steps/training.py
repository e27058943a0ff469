"""From an experiment to the steps that train its models (`train.training_step`)."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import train.models.model_node
from detect.settings import Dtype
from inject.reading.unchanged import unchanged
from inject.step import Step
from spikein.config.schema import Experiment
from train import training_step
from train.checkpoint_steps import checkpoint_folder
from train.training_step import SpikedStream, Training, base_step


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


def base_node(experiment: Experiment, corpus: Step) -> ModelNode | None:
    """Return the model that saw no contaminant: trained here, or the pretrained one."""
    model, base = experiment.model, experiment.base
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
    if base is None:
        return None
    training = Training(
        model=model,
        train=base.resolved(experiment.train),
        tokens=base.tokens,
        execution=experiment.execution,
        seed=base.seed,
    )
    return ModelNode(step=base_step(training, corpus))


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
    """Train one arm of an experiment (`train.training_step.arm_step`)."""
    training = Training(
        model=experiment.model,
        train=experiment.train,
        tokens=experiment.corpus.tokens,
        execution=experiment.execution,
        seed=seed,
    )
    stream = SpikedStream(corpus, examples, plan, audit, experiment.variants)
    return training_step.arm_step(training, stream, start=base, label=label)
