"""Settings classes: each is in some identity, or is execution.

`mutations.csv` has the keys of experiment files. The fields of the other settings classes are in
the settings of a step unchanged; an unlisted class or option makes a test fail.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from pydantic import BaseModel

from inject.examples.contaminant import Contaminant, contaminant_identity
from inject.examples.datasets.registry import dataset_names, get_dataset
from inject.examples.forget_set import ForgetSet
from inject.examples.twin_membership import TwinMembership
from inject.plan.make_plan import PlanSettings
from inject.plan.rewritten_pools import twin_membership_step
from inject.plan.settings import Copies, Placement
from inject.source_digest import PACKAGES
from spikein.config.schema import Experiment
from tests.spikein.pipeline.test_identity import folder, hub, role, settings_of, steps
from train.job import Job, TrainingJob
from train.models.model_node import GivenModel
from train.models.shapes import Shape
from train.unlearn.unlearning_job import UnlearningJob

__all__ = ["folder", "hub"]

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


OTHERS = {
    "RowSettings": "which rows of a user's file are read, whose content counts",
    "RunRecord": "the record in a run's folder",
    "StudyClaims": "claims, which are checked, and the arms that they name",
    "RecordedFolder": "a place in it",
    "Submission": "a submission to a benchmark, of scores that a user computed",
    "Description": "the description of a bundle",
    "Provenance": "its origin",
    "ModelTables": "a model in it",
    "ScoringOptions": "options of `spikein detect`, which are in the settings of its steps",
    "Price": "the price of its tokens, for an estimate",
    "ServerSettings": "a server; the model that it serves counts",
    "ScoredServer": "the same, of the model that is scored",
    "PowerAssumptions": "the assumptions of a power calculation",
    "ClusterSettings": "the base of the settings of `ray` and `slurm`, which are checked",
    "MemberSelection": "the base of `ForgetSet` and `RetainSet`, which are checked",
    "AuditRule": "the base of `ChunkAudit`, which is checked, and of `AuditSettings`",
    "AuditSettings": "an audit by `spikein audit-unlearning`, of users' models",
    "Revisions": "its models' versions",
    "SearchedRows": "contaminants, seeds and rules, which are checked",
    "DataSet": "the catalogue of public data; what is fetched enters by its content",
    "DataFile": "a file of that catalogue",
    "Grammar": "the grammar of invented facts, whose file enters by its digest",
    "Subject": "a part of that grammar",
    "Fact": "a part of that grammar",
    "Source": "the base of plug-in sources: its weight counts in addition to `identity()`",
}
BUILT_BY_STEPS = {Shape, TwinMembership, Job, TrainingJob, GivenModel, UnlearningJob}
"""Classes built from a step's settings and inputs."""


def settings_classes() -> set[type[BaseModel]]:
    """Return all settings classes of our packages."""

    def below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
        for inner in model.__subclasses__():
            yield inner
            yield from below(inner)

    for package in PACKAGES:
        for module in pkgutil.walk_packages(
            importlib.import_module(package).__path__, f"{package}."
        ):
            importlib.import_module(module.name)
    classes = (model for model in below(BaseModel) if model.__module__.split(".")[0] in PACKAGES)
    return {model for model in classes if model.model_fields}


def reached(model: type[BaseModel]) -> set[type[BaseModel]]:
    classes = {model}
    waiting = [model]
    while waiting:
        for field in waiting.pop().model_fields.values():
            new = set(settings_of(field.annotation)) - classes
            classes |= new
            waiting += new
    return classes


def test_all_settings_classes_are_checked():
    own_classes = settings_classes()
    options = {get_dataset(name).options for name in dataset_names()}
    # Parameters of a detector are spelt out in the scores' settings, whatever they are.
    # So are those of an unlearning method, in the settings of the model that it makes.
    spelt_out = ("detect.detectors.", "train.unlearn.")
    parameters = {model for model in own_classes if model.__module__.startswith(spelt_out)}
    left = own_classes - reached(Experiment) - options - (parameters | BUILT_BY_STEPS)
    assert sorted(model.__name__ for model in left) == sorted(OTHERS)


def test_shapes_sides_and_plans_are_complete_in_the_settings_of_their_steps(folder):
    steps_by_role = {role(step): step for step in steps(folder)}
    assert steps_by_role["base"].settings["shape"].keys() >= Shape.model_fields.keys()
    forget = TwinMembership.retrained(ForgetSet(datasets=("a",)))
    named = set()
    for membership in (TwinMembership(kind="retrained", share=0.5), forget):
        step = twin_membership_step(steps_by_role["examples"], membership, seed=0)
        named |= step.settings["membership"].keys()
    assert named == TwinMembership.model_fields.keys()
    plan = PlanSettings(
        copies=Copies(fixed=1), placement=Placement(), budget=1000, context=64, seed=0, repeat=2
    )
    assert plan.identity().keys() == {field.name for field in fields(PlanSettings)}


def test_all_options_of_a_dataset_change_its_examples(tmp_path: Path):
    (tmp_path / "rows.jsonl").write_text("{}\n")
    for name in dataset_names():
        values = {"dataset": name, "members": 1, "nonmembers": 1}
        if name != "fictional":
            values["path"] = str(tmp_path / "rows.jsonl")
        if name == "rows":
            values |= {"name": "own", "template": "{text}"}
        plain = contaminant_identity(Contaminant.model_validate(values))
        for field in get_dataset(name).options.model_fields:
            key = f"{name}.{field}"
            options = {field: OPTIONS[key]}
            other = contaminant_identity(Contaminant.model_validate({**values, "options": options}))
            assert (plain == other) == (key in UNIDENTIFIED), key
