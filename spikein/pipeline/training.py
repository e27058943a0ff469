"""From an experiment to the steps that train its models (`train.training_step`)."""

from inject.step import Step
from spikein.config.schema import Experiment
from train import training_step
from train.models.model_node import ModelNode
from train.training_step import SpikedStream, Training, base_step


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
