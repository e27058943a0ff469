"""Jobs end to end: their files, rejected settings and known properties of methods."""

import math
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from inject.errors import InputError
from inject.stream.exposures import read_exposures
from tests.train.unlearn.made import (
    examples,
    forget_ids,
    job,
    load,
    retain_ids,
    text_loss,
    unlearn,
)
from train.loop.log import read_log
from train.loop.record import TrainingDiverged
from train.models.model_node import GivenModel
from train.unlearn.job import unlearn_job
from train.unlearn.registry import method_names

OWN = {"rmu": {"layer": 1, "alpha": 1.0, "steering": 20.0}, "relabel": {"reinforced_lr": 3e-3}}


def forget_loss(folder) -> float:
    model, tokenizer = load(folder), AutoTokenizer.from_pretrained(folder)
    lost = [
        text_loss(model, tokenizer(example.text, return_tensors="np")["input_ids"][0])
        for example in examples()
        if example.example_id in forget_ids()
    ]
    return sum(lost) / len(lost)


@pytest.fixture(scope="module")
def knowing(world, tmp_path_factory):
    """A world whose model has learned the members."""
    place = tmp_path_factory.mktemp("knowing")
    shutil.copytree(world, place / "world")
    entry = {"method": "task_vector", "epochs": 25, "lr": 1e-2}
    ids = (*forget_ids(), *retain_ids())
    made = job(world, place / "learning", entry, forget_ids=ids, retain_ids=())
    from train.unlearn.stages import run_stage

    run_stage(made, None)
    shutil.rmtree(place / "world" / "model")
    shutil.copytree(place / "learning" / "out", place / "world" / "model")
    return place / "world"


@pytest.mark.parametrize(
    ("method", "mode"), [*((method, "full") for method in method_names()), ("npo", "lora")]
)
def test_all_methods_raise_the_forget_loss(knowing, tmp_path, method, mode):
    entry = {"method": method, "mode": mode, "epochs": 10, **OWN.get(method, {})}
    out = unlearn(knowing, tmp_path, entry)
    assert forget_loss(out) > forget_loss(knowing / "model") + 0.05
    assert all(math.isfinite(row.loss) for row in read_log(out))
    fed = read_exposures(out).to_pylist()
    assert {row["example_id"] for row in fed if row["role"] == "forget"} == set(forget_ids())
    assert {row["status"] for row in fed} <= {"whole", "never reached"}
    assert (out / "adapter").is_dir() == (mode == "lora")


def test_npo_diverges_more_slowly_than_gradient_ascent(knowing, tmp_path):
    """Zhang et al. 2024, figure 1: at equal rate and steps NPO's forget loss is far lower."""
    before = forget_loss(knowing / "model")
    entry = {"epochs": 16, "schedule": "constant", "warmup": 0.0, "lr": 2e-3}
    rise = {
        method: forget_loss(unlearn(knowing, tmp_path / method, {"method": method, **entry}))
        - before
        for method in ("gradient_ascent", "npo")
    }
    assert 0 < rise["npo"] < 0.8 * rise["gradient_ascent"]


def test_task_vector_subtracts_the_fine_tuning_update(world, tmp_path):
    """Compare the stored weights of the original, the fine-tuned and the resulting model."""
    entry = {"method": "task_vector", "scale": 0.5}
    out = unlearn(world, tmp_path / "negated", entry)
    made = job(world, tmp_path / "tuned", entry)
    from train.unlearn.stages import run_stage

    run_stage(made, None)
    original, tuned, negated = (
        load_file(folder / "model.safetensors")
        for folder in (world / "model", tmp_path / "tuned" / "out", out)
    )
    for name, weight in original.items():
        expected = weight.double() - 0.5 * (tuned[name].double() - weight.double())
        torch.testing.assert_close(negated[name].double(), expected, atol=1e-6, rtol=1e-6)
    assert any((tuned[name] != original[name]).any() for name in original)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"forget_ids": ()}, "the forget set is empty"),
        ({"forget_ids": (*forget_ids(), "0" * 16)}, "1 of 8 texts are not among the members"),
        ({"retain_ids": (examples()[-1].example_id,)}, "1 of 1 texts are not among the members"),
        ({"retain_ids": forget_ids()[:1]}, "1 texts are in both the forget set and the retain set"),
        (
            {"retain_ids": (), "method": {"method": "npo", "retain_weight": 1.0}},
            "needs a retain set, and this one is empty",
        ),
        ({"method": {"method": "npo", "sweep": {"lr": [1, 2]}}}, "a job has one setting"),
        ({"method": {"method": "rmu", "mode": "lora"}}, "mode lora leaves the weights"),
        ({"method": {"method": "task_vector", "mode": "lora"}}, "mode lora leaves the weights"),
        ({"method": {"method": "rmu", "layer": 3}}, "block 3 is set, but the model has 3"),
        ({"method": {"method": "dpo", "context": 8}}, "have no room for a prompt and an answer"),
    ],
)
def test_invalid_jobs_are_rejected_before_training(world, tmp_path, more, message):
    with pytest.raises(InputError, match=message):
        unlearn(world, tmp_path, **{"method": "npo", **more})
    assert list((tmp_path / "out").iterdir()) == []


def test_an_original_with_a_nan_weight_is_rejected(world, tmp_path):
    shutil.copytree(world / "model", tmp_path / "model")
    file = tmp_path / "model" / "model.safetensors"
    weights = load_file(file)
    weights["model.norm.weight"][0] = float("nan")
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"model\.norm\.weight"):
        unlearn(world, tmp_path, "npo", original=GivenModel(path=str(tmp_path / "model")))


def test_a_diverging_run_reports_the_step(world, tmp_path):
    bad_job = job(world, tmp_path, {"method": "gradient_ascent", "lr": 1e30, "max_grad_norm": None})
    with pytest.raises(TrainingDiverged, match="the loss of step"):
        unlearn_job(bad_job)
