"""No settings class is forgotten: each is in some identity, or is execution.

`mutations.csv` has the keys of experiment files. The fields of the other settings classes stand in
the settings of a step as they are; a class or an option that nobody named makes a test fail.
"""

from dataclasses import fields
from pathlib import Path

from inject.examples.contaminant import Contaminant, contaminant_identity
from inject.examples.datasets.registry import dataset_names, get_dataset
from inject.examples.forget_set import ForgetSet
from inject.examples.twin_membership import TwinMembership
from inject.plan.make_plan import PlanSettings
from inject.plan.rewritten_pools import twin_membership_step
from inject.plan.settings import Copies, Placement
from tests.spikein.pipeline.test_identity import folder, hub, role, steps
from train.models.shapes import Shape

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


def test_shapes_sides_and_plans_stand_whole_in_the_settings_of_their_steps(folder):
    found = {role(step): step for step in steps(folder)}
    assert found["base"].settings["shape"].keys() >= Shape.model_fields.keys()
    forget = TwinMembership.retrained(ForgetSet(datasets=("a",)))
    named = set()
    for membership in (TwinMembership(kind="retrained", share=0.5), forget):
        step = twin_membership_step(found["examples"], membership, seed=0)
        named |= step.settings["membership"].keys()
    assert named == TwinMembership.model_fields.keys()
    plan = PlanSettings(
        copies=Copies(fixed=1), placement=Placement(), budget=1000, context=64, seed=0
    )
    assert plan.identity().keys() == {field.name for field in fields(PlanSettings)}


def test_every_option_of_a_dataset_makes_other_examples(tmp_path: Path):
    (tmp_path / "rows.jsonl").write_text("{}\n")
    for name in dataset_names():
        given = {"dataset": name, "members": 1, "nonmembers": 1}
        if name != "fictional":
            given["path"] = str(tmp_path / "rows.jsonl")
        if name == "rows":
            given |= {"name": "own", "template": "{text}"}
        plain = contaminant_identity(Contaminant.model_validate(given))
        for field in get_dataset(name).options.model_fields:
            key = f"{name}.{field}"
            options = {field: OPTIONS[key]}
            other = contaminant_identity(Contaminant.model_validate({**given, "options": options}))
            assert (plain == other) == (key in UNIDENTIFIED), key
