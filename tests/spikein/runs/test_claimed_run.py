"""A run with claims: fixed when it starts, answered when it is finished."""

import json

import pytest

import spikein
from analysis.page.sections.claims import MEASURES
from inject.errors import InputError
from tests.spikein.tiny import graph_of, run, write_tiny

pytestmark = pytest.mark.slow
STUDY = (
    "detect.detectors=[loss, blind]",
    "analysis.task_accuracy=false",
    "analysis.dataset_detectors=[]",
    "seeds=[0, 1, 2]",
    "arms={short: {}, long: {corpus.tokens: 60_000}}",
    "claims.dilution={hypothesis: A longer corpus hides copies., detectors: [loss], "
    "contrast: {long: 1, short: -1}}",
    "claims.unique={hypothesis: The same as a line., detectors: [loss], measure: probit, "
    "effect: {of: unique, columns: [unique]}}",
    "claims.seeds={hypothesis: Seeds agree., detectors: [loss], spread: long}",
)


def test_claims_are_answered_and_then_fixed(tmp_path):
    write_tiny(tmp_path)
    result = run(tmp_path, *STUDY)
    finished = spikein.load_run(result.folder)
    rows = {row["claim"]: row for row in finished.table("claims").to_pylist()}
    assert list(rows) == ["dilution", "unique", "seeds"]
    by_arm = {
        row["corpus.tokens"]: row["value"]
        for row in finished.metrics.to_pylist()
        if (row["dataset"], row["detector"], row["copies"]) == ("all", "loss", "all")
        and (row["metric"], row["model"], row["variant"]) == ("auc", "contaminated", "all")
        and row["selection"] == "default"
    }
    difference = by_arm["60000"] - by_arm["40000"]
    assert rows["dilution"]["value"] == pytest.approx(difference)
    assert rows["dilution"]["n_seeds"] == 3
    assert rows["unique"]["low"] <= rows["unique"]["value"] <= rows["unique"]["high"]
    assert rows["seeds"]["verdict"] in ("answered", "not answered")
    digest = json.loads((result.folder / "run.json").read_text())["claims"]
    page = result.report.read_text(encoding="utf-8")
    assert digest[:12] in page
    assert "A longer corpus hides copies." in page
    assert MEASURES["deviation"] in page

    # Other claims are refused before anything is built, and the same ones are accepted.
    with pytest.raises(InputError, match="claims changed after the run started: digest"):
        run(tmp_path, *STUDY, "claims.dilution.margin=0.2", "train.lr=2e-2")
    assert run(tmp_path, *STUDY).folder == result.folder


def test_claims_change_no_training_and_no_score(tmp_path):
    write_tiny(tmp_path)
    with_claims, without = (
        {step.digest: step.kind for step in graph_of(tmp_path, *STUDY, *more).graph.steps}
        for more in ((), ("claims={}",))
    )
    assert {with_claims[digest] for digest in with_claims.keys() - without} == {"results"}
