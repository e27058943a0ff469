"""A copy whose tokens were changed on the way to the model is shown, and fails page and command."""

import pytest

from inject.stream.exposures import ExposureRecorder, read_exposures
from tests.command_line import invoke
from tests.spikein.shared_run import CONTAMINATION
from tests.spikein.tiny import LIGHT, run


@pytest.mark.slow
def test_an_altered_copy_is_named_by_ledger_page_and_command(copied_run, monkeypatch):
    """The model trains on the first piece of a copy with one token changed."""
    true_record, changed = ExposureRecorder.record, []

    def record(self, fed, ids):
        start = fed.window * len(ids)
        pieces = list(self._view.pieces(start, start + len(ids)))
        if pieces and not changed:
            changed.append(self._names[pieces[0].copy])
            ids = ids.copy()
            ids[pieces[0].start] ^= 1
        true_record(self, fed, ids)

    monkeypatch.setattr(ExposureRecorder, "record", record)
    result = run(copied_run.root, *CONTAMINATION, "train.lr=0.02", *LIGHT)
    [name] = changed
    rows = read_exposures(result.folder).to_pylist()
    altered = {(row["example_id"], row["copy"]) for row in rows if row["status"] == "altered"}
    assert altered == {(name.example_id, name.copy)}
    page = result.report.read_text()
    assert "1 had other tokens than their texts have" in page
    assert name.example_id in page
    [line] = [line for line in result.summary if line.startswith("What the models were trained on")]
    assert "failed" in line
    audit = invoke("audit", result.folder, code=2)
    assert f"{name.example_id} (" in audit.output
    assert f"), copy {name.copy}" in audit.output
