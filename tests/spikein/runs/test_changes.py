"""Notices of `spikein run` about results that differ from those of the previous run."""

from pathlib import Path

import pytest

from spikein.runs.folder import link_artifact, run_rows
from spikein.runs.publication import publish_run, result_changes, setting_changes
from spikein.store.store import Store
from tests.spikein.records import change_record
from tests.spikein.samples import recipe, write

OLD = """
name: r
train: {lr: 0.001, epochs: 1}
copies: {poisson: 2}
corpus: {sources: [{kind: files, weight: 0.5}, {kind: hub}], tokens: 10}
seeds: [0]
"""
NEW = """
name: r
train: {lr: 0.002, epochs: 1}
copies: {levels: [1, 4]}
corpus: {sources: [{kind: files, weight: 0.7}, {kind: hub}], tokens: 10}
seeds: [0, 1]
"""


def published(root: Path, experiment: str, number: int):
    store = Store(root / "store")

    def fill(folder: Path) -> None:
        (folder / "experiment.yaml").write_text(experiment)
        made = store.obtain(recipe(n=number), write(str(number)), label="l").artifact
        link_artifact(folder, made)

    return publish_run(root / "runs", "r", fill)


def test_differing_settings_are_listed_with_both_values(tmp_path):
    for name, text in (("old", OLD), ("new", NEW)):
        (tmp_path / name).write_text(text)
    assert [str(change) for change in setting_changes(tmp_path / "old", tmp_path / "new")] == [
        "train.lr: 0.001 → 0.002",
        "copies.levels: absent → [1, 4]",
        "corpus.sources.0.weight: 0.5 → 0.7",
        "seeds: [0] → [0, 1]",
        "copies.poisson: 2 → absent",
    ]
    assert setting_changes(tmp_path / "new", tmp_path / "new") == []


def test_a_run_with_other_results_names_changes_and_the_previous_run(tmp_path):
    assert not result_changes(published(tmp_path, OLD, 1), "experiment.yaml")
    notices = result_changes(published(tmp_path, NEW, 2), "experiment.yaml")
    assert "train.lr: 0.001 → 0.002" in notices[0]
    assert str(tmp_path / "runs" / "r" / "1") in notices[0]
    assert not result_changes(published(tmp_path, NEW, 2), "experiment.yaml")


def test_without_differing_settings_the_differing_kinds_are_named(tmp_path):
    published(tmp_path, OLD, 1)
    notice = result_changes(published(tmp_path, OLD, 2), "experiment.yaml")[0]
    assert "No setting differs; data, code or libraries do" in notice
    assert "of thing" in notice


@pytest.mark.parametrize("damage", [{"name": None}, {"finished": "2026-01-01T00:00:00"}])
def test_the_list_of_runs_and_the_next_run_survive_a_damaged_record(tmp_path, damage):
    folder = published(tmp_path, OLD, 1).folder
    change_record(folder, **damage)
    (row,) = run_rows(tmp_path / "runs")
    assert row.problem is not None
    assert "run.json" in row.problem
    assert published(tmp_path, NEW, 2).folder.name == "2"
