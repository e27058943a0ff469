"""The training steps: their starting points and costs.

`tests/spikein/pipeline/test_identity.py` lists the steps that each setting changes.
"""

import pytest

from inject.step import Step
from inject.variants.settings import Variants
from train.execution import ExecutionSettings
from train.models.model_node import ModelNode
from train.settings import ModelSettings, TrainSettings
from train.training_step import Training, arm_step, base_step

ANY = "inject.digest:digest"
CORPUS = Step(kind="corpus", label="c", function=ANY, settings={}, execution={"imported": None})
EXAMPLES, AUDIT = (
    Step(kind=kind, label="l", function=ANY, settings={}) for kind in ("examples", "audit")
)
READ = {"corpus": CORPUS, "examples": EXAMPLES}
PLAN = Step(kind="plan", label="l", function=ANY, settings={}, inputs=READ)
STREAM = PLAN, AUDIT, Variants()
MODEL = ModelSettings(shape="llama-1m", tokenizer={"vocab_size": 4096})


def training(mode: str = "continue", **fields) -> Training:
    defaults = {
        "model": MODEL,
        "train": TrainSettings(mode=mode),
        "tokens": 300_000,
        "execution": ExecutionSettings(),
        "seed": 1,
    }
    return Training(**{**defaults, **fields})


def base() -> Step:
    return base_step(training("pretrain"), CORPUS)


def arm(setup: Training) -> Step:
    return arm_step(setup, *STREAM, start=ModelNode(step=base()), label="seed 1")


def test_new_weights_need_a_shape_and_others_a_base_model():
    fresh, further = arm(training("pretrain")), arm(training())
    assert "base" not in fresh.inputs
    assert fresh.settings["shape"]["architecture"] == "llama"
    assert further.inputs["base"].label == "base-300k"
    assert further.settings["shape"] is None
    with pytest.raises(TypeError, match="a shape or a base model"):
        arm_step(training(), *STREAM, start=None, label="l")


def test_a_checkpoint_is_a_distinct_start():
    whole, early = (
        arm_step(
            training(), *STREAM, start=ModelNode(step=base(), checkpoint=checkpoint), label="l"
        )
        for checkpoint in (None, 3)
    )
    assert whole.digest != early.digest
    assert early.execution["base"]["checkpoint"] == 3


def test_costs_depend_on_sizes_and_kept_models():
    settings = TrainSettings.model_validate({"epochs": 2, "checkpoints": {"fractions": [0.5]}})
    once, more = arm(training()).cost, arm(training(train=settings)).cost
    assert (once.tokens, more.tokens) == (300_000, 600_000)
    assert more.flops == 2 * once.flops
    assert more.disk_bytes == 2 * once.disk_bytes
    assert more.memory_bytes == once.memory_bytes == 4 * once.disk_bytes
