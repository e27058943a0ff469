"""The number formats that `auto` selects are part of a step's identity."""

import pytest

from spikein.config.load import read_experiment
from spikein.pipeline.build_graph import build_graph
from tests.spikein.pipeline.mutations import PRETRAINED
from tests.spikein.pipeline.test_identity import folder, hub, own, role, steps
from tests.spikein.tiny import LIGHT, build, write_tiny
from train.device import Device
from train.loop.log import read_log

__all__ = ["folder", "hub"]

CPU = Device("cpu")
OLD_GPU = Device("cuda")
GPU = Device("cuda", bfloat16=True)
FAST_CPU = Device("cpu", bfloat16=True)


def differing(folder, *overrides, device=CPU, other=GPU):
    before = own(steps(folder, *overrides, device=device))
    after = own(steps(folder, *overrides, device=other))
    return {name for name, _ in (before - after) + (after - before)}


def test_auto_precision_on_a_gpu_is_another_training(folder):
    assert differing(folder) == {"base", "model"}
    by_role = {role(step): step for step in steps(folder, device=GPU)}
    assert by_role["base"].settings["train"]["precision"] == "bfloat16"
    assert by_role["model"].settings["train"]["precision"] == "bfloat16"


def test_the_same_arithmetic_has_the_same_digest_on_any_device(folder):
    assert differing(folder, other=OLD_GPU) == set()
    assert differing(folder, other=Device("mps")) == set()
    for precision in ("float32", "bfloat16"):
        overrides = (f"train.precision={precision}", f"base.precision={precision}")
        assert differing(folder, *overrides) == set()
    overrides = ("train.precision=bfloat16", "base.precision=bfloat16")
    assert [step.digest for step in steps(folder, *overrides)] == [
        step.digest for step in steps(folder, device=GPU)
    ]


def test_fastest_is_another_training_only_if_the_arithmetic_differs(folder):
    overrides = ("train.precision=fastest", "base.precision=fastest")
    assert differing(folder, *overrides, other=FAST_CPU) == {"base", "model"}
    assert differing(folder, *overrides, device=FAST_CPU) == set()
    # The default stays float32 on every processor.
    assert differing(folder, other=FAST_CPU) == set()
    assert differing(folder, "train.precision=fastest", other=FAST_CPU) == {"model"}
    for device, precision in ((CPU, "float32"), (FAST_CPU, "bfloat16")):
        by_role = {role(step): step for step in steps(folder, *overrides, device=device)}
        assert by_role["base"].settings["train"]["precision"] == precision
        assert by_role["model"].settings["train"]["precision"] == precision


def test_a_pretrained_model_is_scored_in_its_own_format_only_on_a_gpu(folder):
    other = {"model", "statistics", "gradients", "accuracy"}
    assert differing(folder, *PRETRAINED) == other
    assert differing(folder, *PRETRAINED, other=OLD_GPU) == other - {"model"}
    overrides = (*PRETRAINED, "detect.dtype=float32")
    assert differing(folder, *overrides, other=OLD_GPU) == set()
    on_cpu = (*PRETRAINED, "detect.device=cpu")
    assert differing(folder, *on_cpu, other=OLD_GPU) == set()


@pytest.mark.slow
def test_a_step_computes_in_its_named_format_on_any_machine(tmp_path):
    """Named for a GPU with bfloat16 and run on this machine, which has none."""
    experiment = read_experiment(
        write_tiny(tmp_path), ("train.mode=pretrain", "base=null", "corpus.tokens=20000", *LIGHT)
    )
    losses = []
    for device, precision in ((CPU, "float32"), (GPU, "bfloat16")):
        [node] = build_graph(experiment, device=device).nodes
        [artifact] = build(tmp_path, node.trained)
        assert artifact.manifest.identity["settings"]["train"]["precision"] == precision
        losses.append([row.loss for row in read_log(artifact.path)])
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
