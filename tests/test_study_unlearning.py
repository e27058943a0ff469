"""The unlearning page of docs/results: its numbers match the run's tables."""

import json
import re

import pyarrow as pa
import pytest

from analysis.findings import write_findings
from analysis.page.unlearning.study import method_title
from scripts.study_unlearning import written
from tests.analysis.unlearned import METHODS, audit_rows, measured_rows, verdict_rows


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    (folder / "figures").mkdir(parents=True)
    (folder / "figures" / "positions.png").write_bytes(b"picture")
    made = {"unlearning": measured_rows, "verdict": verdict_rows, "unlearning_audits": audit_rows}
    write_findings(folder, {name: pa.Table.from_pylist(rows()) for name, rows in made.items()})
    record = {"id": "unlearning-1", "finished": "2026-11-22T10:00:00", "version": "0.1.0"}
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def test_tables_match_the_numbers_of_the_run(run, tmp_path):
    page = written(run, images=tmp_path / "images")
    assert "Run `unlearning-1` of 2026-11-22, spikein 0.1.0." in page
    assert "and 8 others brought the model near one that never saw the texts (within [" in page
    heads = re.findall(r"(?m)^## (.*)$", page)
    assert heads[:5] == [
        "Verdicts",
        "Forgetting",
        "Memorisation of the forget set",
        "Effect of relearning",
        "Utility",
    ]
    assert "By copies" in heads
    assert "Basis of the verdicts" in heads
    assert heads[-3:] == ["The ratio rule", "The rule, by copies", "The ratio rule by seed"]
    forgetting = page.split("## Forgetting")[1].split("## ")[0]
    rows = re.findall(r"(?m)^\| `(.*?)` \| (.*?) \|", forgetting)
    assert [name for name, _ in rows] == [
        "original model",
        "retrained model",
        *map(method_title, METHODS),
    ]
    key = ("unlearned", "auc", "min_k", "all", "all", "")
    names = ("model", "measure", "detector", "copies", "dataset", "setting")
    for row in measured_rows():
        if tuple(row[name] for name in names) == key:
            cell = f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
            assert dict(rows)[method_title(row["method"])] == cell
