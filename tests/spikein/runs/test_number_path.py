"""A number's path: from two columns of scores on disk to its cell of the report.

The walk "From scores to a cell" of docs/architecture.md names its functions, and
`tests/test_walks.py` verifies that they are called; here each file on the way has the same number.
"""

import re

import pyarrow.parquet as pq
import pytest

from tests.analysis.oracles import auc

pytestmark = pytest.mark.slow
ROW = re.compile(r"<tr>(?:(?!</tr>).)*</tr>", re.S)
CELL = re.compile(r'data-label="([^"]+)">([^<]*)<')


@pytest.fixture(scope="module")
def run(shared_run):
    return shared_run.folder


@pytest.fixture(scope="module")
def own_auc(run) -> tuple[float, int, int]:
    """The AUC of `loss` on the contaminated model, with its rows: over pairs, from two files."""
    rows = {
        row["example_id"]: row
        for row in pq.read_table(run / "examples.parquet").to_pylist()
        if row["split"] == "test" and row["dataset"] == "fictional"
    }
    scores: dict[str, float] = {}
    incomplete = set()
    for row in pq.read_table(run / "scores.parquet").to_pylist():
        if row["model"] != "contaminated" or row["example_id"] not in rows:
            continue
        if row["score"] is None or row["score"] != row["score"]:
            incomplete.add(row["example_id"])
        elif row["detector"] == "loss":
            scores[row["example_id"]] = row["score"]
    assert not incomplete, "only rows that all detectors scored are compared"
    members, nonmembers = (
        [score for key, score in scores.items() if rows[key]["side"] == side]
        for side in ("member", "nonmember")
    )
    return auc(members, nonmembers), len(members), len(nonmembers)


def test_the_auc_of_two_score_columns_equals_the_finding_and_the_cell_of_the_page(run, own_auc):
    value, members, nonmembers = own_auc
    place = {
        "question": "metrics", "model": "contaminated", "dataset": "fictional", "detector": "loss",
        "copies": "all", "variant": "all", "metric": "auc", "selection": "default",
    }  # fmt: skip
    (finding,) = [
        row
        for row in pq.read_table(run / "findings.parquet").to_pylist()
        if all(row[column] == expected for column, expected in place.items())
    ]
    assert finding["value"] == pytest.approx(value, abs=1e-12)
    assert (finding["n_members"], finding["n_nonmembers"]) == (members, nonmembers)
    page = (run / "results.html").read_text(encoding="utf-8")
    cells = [dict(CELL.findall(row)) for row in ROW.findall(page) if ">fictional<" in row]
    table_rows = [
        (cell["AUC"], cell["95 % interval"])
        for cell in cells
        if (cell.get("Detector"), cell.get("Selection", "")[:7]) == ("Loss", "default")
        and cell.get("Copies", "").startswith("all")
    ]
    assert (f"{value:.3f}", f"{finding['low']:.3f}–{finding['high']:.3f}") in table_rows
