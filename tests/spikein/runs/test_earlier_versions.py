"""Runs that an earlier version of spikein made: refused in words, and left as they are."""

import pytest

from inject.errors import InputError
from spikein.runs.arms import run_arms
from spikein.runs.folder import link_artifact
from spikein.runs.replacement import publish_run
from spikein.store.manifest import Recipe
from spikein.store.store import Store
from tests.spikein.samples import write
from tests.spikein.store.damage import unseal

INPUTS = ("corpus", "examples", "plan", "audit")


def test_a_run_of_an_earlier_version_is_told_as_that_and_not_as_damage(tmp_path):
    store = Store(tmp_path / "store")
    made = {
        kind: store.obtain(
            Recipe(kind=kind, version=1, settings={}), write(kind), label=kind
        ).artifact
        for kind in INPUTS
    }
    given = {kind: artifact.digest for kind, artifact in made.items()}
    recipe = Recipe(kind="model", version=1, settings={}, inputs=given)
    model = store.obtain(recipe, write("model"), label="seed=0").artifact
    folder = publish_run(
        tmp_path / "runs",
        "old",
        lambda hidden: [link_artifact(hidden, one) for one in (*made.values(), model)],
    ).folder
    for artifact in (*made.values(), model):
        unseal(artifact / "manifest.json")
    with pytest.raises(InputError, match="earlier version") as told:
        run_arms(folder)
    assert str(folder / "report.html") in str(told.value)
    assert "damaged" not in str(told.value)
