"""Detectors that read held-out rows, through the graph of a tiny experiment to their scores."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from detect.evidence.shots import IS_SHOT
from inject.errors import InputError
from tests.spikein.tiny import build, graph_of, stored, write_tiny

REQUESTED = {"recall", "con_recall", "codec", "fsd", "rmia", "camia"}
OVERRIDES = (
    f"detect.detectors=[{', '.join(sorted(REQUESTED))}]",
    "contaminants.0.held_out=15",
    "contaminants.0.options={forms: [question]}",
    "twins.shadows=2",
    "train.context=128",
    "corpus.tokens=20_000",
)


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """The folder of the experiment and that of the arm's scores."""
    folder = tmp_path_factory.mktemp("held-out-detectors")
    write_tiny(folder)
    # Half of the context has room for a few shots, but not for twelve.
    shape = folder / "shape.yaml"
    shape.write_text(shape.read_text().replace("context: 128", "context: 512"))
    [scores] = build(folder, graph_of(folder, *OVERRIDES).nodes[0].scores)
    return folder, scores.path / "scores.parquet"


def rows_of(path):
    return pq.read_table(path).to_pylist()


@pytest.mark.slow
def test_shots_are_held_out_rows_or_members_of_tune_that_get_no_score(scored):
    folder, scores = scored
    [pool] = [path.parent for path in (folder / "store" / "examples").glob("*/examples.json")]
    rows = {row["example_id"]: row for row in rows_of(pool / "examples.parquet")}
    held_out = {row["text"] for row in rows_of(pool / "held_out.parquet")}
    tune_members = {
        row["text"] for row in rows.values() if (row["side"], row["split"]) == ("member", "tune")
    }
    seen = {"nonmembers": set(), "members": set()}
    for path in stored(folder, "shots"):
        manifest = json.loads((path / "manifest.json").read_text())
        kind = manifest["identity"]["settings"]["need"]
        for shots in json.loads((path / "shots.json").read_text()).values():
            seen[kind[0]] |= set(shots["texts"])
    assert set() < seen["nonmembers"] <= held_out
    assert set() < seen["members"] <= tune_members
    # All detectors score all other rows.
    assert {row["detector"] for row in rows_of(scores)} == REQUESTED
    unscored = [row for row in rows_of(scores) if np.isnan(row["score"])]
    assert {row["detector"] for row in unscored} == {"con_recall"}
    assert {rows[row["example_id"]]["text"] for row in unscored} == seen["members"]
    assert {row["reason"] for row in unscored} == {IS_SHOT}


@pytest.mark.slow
def test_shots_that_do_not_fit_cost_no_second_pass(scored):
    """If only a few of 12 shots fit, the existing statistics for those few are used."""
    folder, scores = scored
    manifests = [
        json.loads((path / "manifest.json").read_text()) for path in stored(folder, "statistics")
    ]
    behind = [entry for entry in manifests if entry["label"].startswith("behind-nonmembers-0-")]
    assert len(behind) >= 12
    assert any(entry["same_as"] for entry in behind)
    notes = json.loads(pq.read_schema(scores).metadata[b"spikein"])["notes"]
    about = [note for note in notes if note.startswith("recall: at most")]
    assert len(about) == len(set(about)) >= 1


def test_without_held_out_rows_all_skips_these_detectors_with_a_note(tmp_path):
    write_tiny(tmp_path)
    with pytest.raises(InputError, match=r"contaminants\.held_out"):
        graph_of(tmp_path, "detect.detectors=[recall]")
    notes = graph_of(tmp_path, "detect.detectors=all").notes
    for name in REQUESTED - {"rmia"}:
        assert any(note.startswith(f"{name} needs") for note in notes), name


def test_too_few_held_out_rows_for_a_detector_are_refused_before_a_run(tmp_path):
    write_tiny(tmp_path)
    few = "contaminants.0.held_out=8"
    with pytest.raises(InputError, match="camia needs 10 held-out rows of a dataset"):
        graph_of(tmp_path, few, "detect.detectors=[camia]")
    assert graph_of(tmp_path, few, "detect.detectors=[recall]").nodes
