"""A copy whose tokens were changed on the way to the model is shown, and fails page and command."""

import pytest
from typer.testing import CliRunner

from inject.stream.exposures import ExposureRecorder, read_exposures
from spikein.cli.main import app
from tests.spikein.pipeline.test_pipeline import one_artifact
from tests.spikein.tiny import run, write_tiny

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run whose model is fed the first piece of a copy with one token changed."""
    root = tmp_path_factory.mktemp("altered")
    write_tiny(root)
    true_record, changed = ExposureRecorder.record, []

    def record(self, **fed):
        start = fed["window"] * len(fed["ids"])
        pieces = self._view.pieces(start, start + len(fed["ids"]))
        if pieces and not changed:
            changed.append(self._names[pieces[0].copy])
            fed["ids"] = fed["ids"].copy()
            fed["ids"][pieces[0].start] ^= 1
        true_record(self, **fed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExposureRecorder, "record", record)
        result = run(root, "detect.detectors=[loss]", "train.batch_tokens=1024")
    return root, result, changed[0]


def test_the_ledger_says_that_it_was_altered(finished):
    root, _, name = finished
    rows = read_exposures(one_artifact(root, "model", "seed-0")).to_pylist()
    altered = {(row["example_id"], row["copy"]) for row in rows if row["status"] == "altered"}
    assert altered == {(name.example_id, name.copy)}


def test_the_page_shows_an_altered_copy_and_fails(finished):
    _, result, name = finished
    page = result.report.read_text()
    assert "1 had other tokens than their texts have" in page
    assert name.example_id in page
    [line] = [line for line in result.summary if line.startswith("What the models were fed")]
    assert "failed" in line


def test_the_audit_command_names_the_altered_copy_and_fails(finished):
    _, result, name = finished
    shown = CliRunner().invoke(app, ["audit", str(result.folder)])
    assert shown.exit_code == 2
    assert f"{name.example_id} (fictional), copy {name.copy}" in shown.output
