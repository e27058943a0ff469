"""Detectors that read held-out rows, through the whole graph of a tiny experiment."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from detect.evidence.shots import IS_SHOT
from inject.errors import InputError
from tests.spikein.tiny import run, write_tiny

pytestmark = pytest.mark.slow

ASKED = "[recall, con_recall, codec, fsd, rmia, camia]"
OVERRIDES = (
    f"detect.detectors={ASKED}",
    "contaminants.0.held_out=15",
    "contaminants.0.options={forms: [question]}",
    "twins.shadows=2",
    "train.context=128",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("held-out-detectors")
    write_tiny(folder)
    # Half of the context holds a few shots, and not twelve.
    shape = folder / "shape.yaml"
    shape.write_text(shape.read_text().replace("context: 128", "context: 512"))
    run(folder, *OVERRIDES)
    return folder


def scores_of(folder):
    """The scores of the arm: those with rmia, which no base model has."""
    for path in (folder / "store" / "scores").glob("*/scores.parquet"):
        rows = pq.read_table(path).to_pylist()
        if any(row["detector"] == "rmia" for row in rows):
            return path, rows
    raise AssertionError("no scores")


def test_every_detector_scores_every_row_of_test(folder):
    _, rows = scores_of(folder)
    assert {row["detector"] for row in rows} == {
        "recall", "con_recall", "codec", "fsd", "rmia", "camia"
    }  # fmt: skip
    [pool] = [path.parent for path in (folder / "store" / "examples").glob("*/examples.json")]
    split = {
        row["example_id"]: row["split"]
        for row in pq.read_table(pool / "examples.parquet").to_pylist()
    }
    unscored = [row for row in rows if np.isnan(row["score"])]
    assert {row["detector"] for row in unscored} <= {"con_recall"}
    assert {split[row["example_id"]] for row in unscored} == {"tune"}
    assert {row["reason"] for row in unscored} == {IS_SHOT}


def test_shots_are_held_out_rows_or_members_of_tune_that_get_no_score(folder):
    [pool] = [path.parent for path in (folder / "store" / "examples").glob("*/examples.json")]
    rows = pq.read_table(pool / "examples.parquet").to_pylist()
    held_out = {row["text"] for row in pq.read_table(pool / "held_out.parquet").to_pylist()}
    known = {row["text"] for row in rows if row["side"] == "member" and row["split"] == "tune"}
    seen = {"nonmembers": set(), "members": set()}
    for path in (folder / "store" / "shots").glob("*/shots.json"):
        manifest = json.loads((path.parent / "manifest.json").read_text())
        kind = manifest["identity"]["settings"]["need"]
        for one in json.loads(path.read_text()).values():
            seen[kind[0]] |= set(one["texts"])
    assert seen["nonmembers"]
    assert seen["nonmembers"] <= held_out
    assert seen["members"]
    assert seen["members"] <= known
    _, scores = scores_of(folder)
    scored = {
        row["example_id"]
        for row in scores
        if row["detector"] == "con_recall" and not np.isnan(row["score"])
    }
    by_text = {row["text"]: row["example_id"] for row in rows}
    assert not scored & {by_text[text] for text in seen["members"]}


def test_shots_that_do_not_fit_cost_no_second_pass(folder):
    """12 shots where only a few fit: the statistics of the few are taken, not made again."""
    manifests = [
        json.loads(path.read_text())
        for path in (folder / "store" / "statistics").glob("*/manifest.json")
    ]
    behind = [one for one in manifests if one["label"].startswith("behind-nonmembers-0-")]
    assert len(behind) >= 12
    assert any(one["same_as"] for one in behind)
    path, _ = scores_of(folder)
    notes = json.loads(pq.read_schema(path).metadata[b"spikein"])["notes"]
    about = [note for note in notes if note.startswith("recall: at most")]
    assert len(about) == len(set(about)) >= 1


def test_without_held_out_rows_they_are_left_out_of_all_and_said_so(tmp_path):
    write_tiny(tmp_path)
    with pytest.raises(InputError, match=r"contaminants\.held_out"):
        run(tmp_path, "detect.detectors=[recall]")
    from spikein.config.load import read_experiment
    from spikein.pipeline.build_graph import build_graph

    graph = build_graph(read_experiment(tmp_path / "tiny.yaml", ["detect.detectors=all"]))
    for name in ("recall", "con_recall", "codec", "fsd", "camia"):
        assert any(note.startswith(f"{name} needs") for note in graph.notes), name
