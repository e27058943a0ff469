"""No settings class and no field of one is forgotten: each is in some identity, or execution.

`mutations.csv` has the keys of experiment files. The fields of every other settings class are here;
a class or a field that nobody named makes a test fail.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from pydantic import BaseModel

from inject.examples.contaminant import Contaminant, contaminant_identity
from inject.examples.datasets.registry import dataset_names, get_dataset
from inject.examples.forget_set import ForgetSet
from inject.examples.twin_membership import TwinMembership
from inject.plan.make_plan import PlanSettings
from inject.plan.rewritten_pools import twin_membership_step
from inject.plan.settings import Copies, Placement
from inject.source_digest import PACKAGES
from inject.variants.settings import Variants
from spikein.config.schema import Experiment
from tests.spikein.pipeline.test_identity import folder, hub, own, settings_of, steps
from tests.spikein.tiny import SHAPE
from train.job import Job, StartModel, TrainingJob
from train.models.shapes import Shape
from train.unlearn.unlearning_job import UnlearningJob

__all__ = ["folder", "hub"]

SHAPES = {
    "architecture": "olmo2",
    "hidden": 32,
    "layers": 2,
    "heads": 4,
    "kv_heads": 1,
    "intermediate": 64,
    "context": 256,
    "rope_theta": 5000.0,
    "tie_embeddings": "false",
    "norm_eps": 1.0e-6,
    "init_std": 0.03,
}
OPTIONS = {
    "arxivtection.documents": "old",
    "booktection.documents": "old",
    "booktection.length": "large",
    "fictional.forms": ["question"],
    "fictional.first": 5,
    "gpqa.subset": "diamond",
    "gpqa.password": "secret",
    "imdb.clean": True,
    "lsat.sections": ["ar"],
    "news.after": "2019-07-01",
    "news.before": "2019-07-01",
    "rows.answers": "letter",
    "rows.first_index": 1,
    "rows.shuffle_options": True,
    "rows.share": 0.5,
    "rows.where": ["kind=a"],
    "wikimia.events": "old",
}
UNIDENTIFIED = {"gpqa.password": "a secret that opens a file, whose content counts"}
MEMBERSHIPS = {
    "kind": (TwinMembership(kind="clean"), TwinMembership(kind="retrained")),
    "share": (
        TwinMembership(kind="retrained", share=0.5),
        TwinMembership(kind="retrained", share=0.4),
    ),
    "number": (TwinMembership(kind="shadow", number=0), TwinMembership(kind="shadow", number=1)),
    "forget": (
        TwinMembership.retrained(ForgetSet(datasets=("a",))),
        TwinMembership.retrained(ForgetSet(datasets=("b",))),
    ),
}
PLANS = {
    "copies": Copies(fixed=3),
    "placement": Placement(policy="window"),
    "budget": 2000,
    "context": 32,
    "seed": 1,
    "variants": Variants.model_validate(
        {"of": [{"kind": "whole"}, {"kind": "question"}], "assign_by": "copies"}
    ),
    "draw_number": 1,
}
JOB = {
    "out": "where the model is written",
    "unfinished": "where checkpoints are written",
    "identity": "the digest of the step",
    "corpus": "an input",
    "shards": "where the files of the input lie",
    "last_tokens": "`tokens` of the base model's step",
    "plan": "an input",
    "examples": "an input",
    "renditions": "an input",
    "variants": "of the step whose renditions are an input",
    "shape": "`Training.step`",
    "start": "an input, or `ModelNode.settings`",
    "train": "`Training.step`",
    "execution": "execution",
    "seed": "`Training.step`",
}
START = {
    "name": "where the model lies; which one it is, is its identity",
    "revision": "the commit is in the identity",
    "trust_remote_code": "`ModelNode.settings`",
    "identity": "`ModelNode.settings`",
}
"""How a step's settings and inputs come to the process that trains."""
OTHERS = {
    "RunRecord": "what a run's folder says of itself",
    "Place": "a place in it",
    "Description": "what a bundle says of itself",
    "Provenance": "where it comes from",
    "ModelTables": "a model in it",
    "RunSummary": "what a run found, for the page of all runs",
    "CheckVerdict": "a check of it",
    "ClusterSettings": "the base of the settings of `ray` and `slurm`, which are looked at",
    "MemberSelection": "the base of `ForgetSet` and `RetainSet`, which are looked at",
    "AuditRule": "the base of `ChunkAudit`, which is looked at, and of `AuditSettings`",
    "AuditSettings": "an audit by `spikein audit-unlearning`, of given models",
    "Revisions": "its models' versions",
    "Judge": "whom it asks",
    "SearchedRows": "contaminants, seeds and rules, which are looked at",
    "Source": "the base of plug-in sources: its weight counts beside what `identity()` returns",
}
UNLEARNING = {
    "out": "where the model is written",
    "unfinished": "where checkpoints are written",
    "identity": "the digest of the step",
    "original": "an input",
    "examples": "an input",
    "forget_ids": "of the inputs `examples` and `membership`",
    "retain_ids": "of the same, by the rules in the step's settings",
    "method": "`MethodSetting.identity`",
    "execution": "execution",
    "seed": "`seed` of the step",
}
COVERED = {Shape, TwinMembership, Job, TrainingJob, StartModel, UnlearningJob}


def imported(packages: tuple[str, ...]) -> None:
    for package in packages:
        for module in pkgutil.walk_packages(
            importlib.import_module(package).__path__, f"{package}."
        ):
            importlib.import_module(module.name)


def subclasses(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for one in model.__subclasses__():
        yield one
        yield from subclasses(one)


def reached(model: type[BaseModel]) -> set[type[BaseModel]]:
    found = {model}
    waiting = [model]
    while waiting:
        for field in waiting.pop().model_fields.values():
            new = set(settings_of(field.annotation)) - found
            found |= new
            waiting += new
    return found


def test_every_settings_class_is_looked_at():
    imported(PACKAGES)
    ours = {
        one
        for one in subclasses(BaseModel)
        if one.__module__.split(".")[0] in PACKAGES and one.model_fields
    }
    options = {get_dataset(name).options for name in dataset_names()}
    # Parameters of a detector are spelt out in the scores' settings, whatever they are.
    # So are those of an unlearning method, in the settings of the model that it makes.
    spelt_out = ("detect.detectors.", "train.unlearn.")
    parameters = {one for one in ours if one.__module__.startswith(spelt_out)} - COVERED
    left = ours - reached(Experiment) - COVERED - options - parameters
    assert sorted(one.__name__ for one in left) == sorted(OTHERS)


@pytest.mark.parametrize("name", Shape.model_fields)
def test_every_size_of_a_shape_makes_another_base_model(folder, name):
    given = SHAPE.format(architecture="llama").strip().splitlines()
    lines = [line for line in given if not line.startswith(f"{name}:")]
    path = folder / f"shape-{name}.yaml"
    path.write_text("\n".join([*lines, f"{name}: {SHAPES[name]}", ""]))
    before, after = steps(folder), steps(folder, f"model.shape={path}")
    changed = (own(before) - own(after)) + (own(after) - own(before))
    assert {role for role, _ in changed} == {"base"}


def test_every_option_of_a_dataset_is_listed():
    found = {
        f"{name}.{field}"
        for name in dataset_names()
        for field in get_dataset(name).options.model_fields
    }
    assert found == set(OPTIONS)


@pytest.mark.parametrize("key", OPTIONS)
def test_every_option_makes_other_examples(tmp_path: Path, key: str):
    name, _, field = key.partition(".")
    given = {"dataset": name, "members": 1, "nonmembers": 1}
    if name != "fictional":
        (tmp_path / "rows.jsonl").write_text("{}\n")
        given["path"] = str(tmp_path / "rows.jsonl")
    if name == "rows":
        given |= {"name": "own", "template": "{text}"}
    before = contaminant_identity(Contaminant.model_validate(given))
    after = contaminant_identity(
        Contaminant.model_validate({**given, "options": {field: OPTIONS[key]}})
    )
    assert (before == after) == (key in UNIDENTIFIED)


@pytest.mark.parametrize("field", TwinMembership.model_fields)
def test_every_part_of_a_twin_makes_other_sides(folder, field):
    [examples] = [one for one in steps(folder) if one.label.startswith("boolq")]
    one, other = (
        twin_membership_step(examples, membership, seed=0) for membership in MEMBERSHIPS[field]
    )
    assert one.digest != other.digest


@pytest.mark.parametrize("field", [one.name for one in fields(PlanSettings)])
def test_every_setting_of_a_plan_is_in_its_identity(field):
    given = {
        "copies": Copies(fixed=1), "placement": Placement(), "budget": 1000, "context": 64,
        "seed": 0,
    }  # fmt: skip
    before = PlanSettings(**given).identity()
    after = PlanSettings(**{**given, field: PLANS[field]}).identity()
    assert {name for name in before if before[name] != after[name]} == {field}


def test_everything_that_a_training_process_is_told_comes_from_the_step():
    assert set(JOB) == set(TrainingJob.model_fields)
    assert set(START) == set(StartModel.model_fields)
    assert set(UNLEARNING) == set(UnlearningJob.model_fields)
