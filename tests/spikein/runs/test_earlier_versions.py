"""Runs that an earlier version of spikein made: refused in words, and left as they are."""

import shutil

import pytest

from inject.errors import InputError
from spikein.api.report import render_report
from spikein.runs.arms import run_arms
from spikein.runs.folder import link_artifact
from spikein.runs.replacement import publish_run
from spikein.runs.status import run_rows
from spikein.runs.version_check import earlier_version_note, require_current_version
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
    assert f"spikein run {folder / 'experiment.yaml'}" in str(told.value)
    [row] = run_rows(tmp_path / "runs")
    assert row.problem == earlier_version_note(folder) is not None
    with pytest.raises(InputError, match="earlier version"):
        render_report(folder)


def test_a_run_of_this_version_passes_and_a_damaged_one_is_left_to_who_reads_it(tmp_path):
    store = Store(tmp_path / "store")
    made = store.obtain(
        Recipe(kind="corpus", version=1, settings={}), write("corpus"), label="c"
    ).artifact
    folder = publish_run(
        tmp_path / "runs", "new", lambda hidden: link_artifact(hidden, made)
    ).folder
    require_current_version(folder)
    assert earlier_version_note(folder) is None
    shutil.rmtree(tmp_path / "store")
    require_current_version(folder)
