"""Forget and retain sets by numbers of copies and by ids, through the graph; read from the disk."""

import pyarrow.parquet as pq
import pytest

from spikein.config.load import read_experiment
from spikein.pipeline.build_graph import build_graph
from tests.spikein.pipeline.unlearning.conftest import Finished
from tests.spikein.tiny import run, write_tiny

pytestmark = pytest.mark.slow
METHODS = "methods: [{method: npo, lr: 1.0e-3, epochs: 1, retain_weight: 1.0}]"
PLAIN = ("copies={levels: [1, 2, 4]}", "detect.detectors=[loss]")


def members(folder) -> dict[str, dict]:
    rows = pq.read_table(folder / "examples.parquet").to_pylist()
    return {row["example_id"]: row for row in rows if row["side"] == "member"}


def fed(folder) -> set[str]:
    rows = pq.read_table(folder / "exposures.parquet").to_pylist()
    return {row["example_id"] for row in rows if row["step"] is not None}


def finished_run(root, *overrides: str) -> Finished:
    run(root, *PLAIN, *overrides)
    given = (*PLAIN, *overrides)
    return Finished(root, given, build_graph(read_experiment(root / "tiny.yaml", given)))


@pytest.fixture(scope="module")
def by_copies(tmp_path_factory) -> Finished:
    root = tmp_path_factory.mktemp("by-copies")
    write_tiny(root)
    section = f"unlearning={{forget: {{copies: [4]}}, retain: {{copies: [1]}}, {METHODS}}}"
    return finished_run(root, section)


def test_the_dose_decides_who_is_forgotten_and_who_is_retained(by_copies):
    node = by_copies.node
    plan = pq.read_table(by_copies.stored(node.plan) / "copy_counts.parquet").to_pylist()
    doses = {row["example_id"]: row["realised"] for row in plan if row["side"] == "member"}
    pool = members(by_copies.stored(node.examples))
    left = members(by_copies.stored(node.twins.retrained.membership))
    assert pool.keys() == doses.keys()
    forget = {name for name, dose in doses.items() if dose == 4}
    assert pool.keys() - left.keys() == forget
    assert fed(by_copies.stored(node.twins.retrained.trained)).isdisjoint(forget)
    (unlearned,) = node.unlearning.unlearned
    seen = fed(by_copies.stored(unlearned.trained))
    assert seen >= forget
    assert seen - forget
    assert {doses[name] for name in seen - forget} == {1}


def test_a_file_of_row_ids_decides_who_is_forgotten(by_copies):
    node, root = by_copies.node, by_copies.root
    rows = list(members(by_copies.stored(node.examples)).values())
    groups = list(dict.fromkeys(row["group"] for row in rows))[:3]
    listed = [row for row in rows if row["group"] in groups]
    file = root / "forget.txt"
    file.write_text("".join(f"{row['source_id']}\n" for row in listed))
    again = finished_run(root, f"unlearning={{forget: {{ids: '{file}'}}, {METHODS}}}")
    left = members(again.stored(again.node.twins.retrained.membership))
    assert {row["example_id"] for row in rows} - left.keys() == {
        row["example_id"] for row in listed
    }
    # The arm is the one that was there.
    assert again.node.trained.digest == node.trained.digest
