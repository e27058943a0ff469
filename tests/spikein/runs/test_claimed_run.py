"""A run with claims: fixed when it starts, answered when it is finished."""

import json

import pytest

import spikein
from analysis.page.sections.claims import MEASURES
from inject.errors import InputError
from spikein.runs.claims import claims_design
from tests.spikein.tiny import LIGHT, graph_of, write_tiny

pytestmark = pytest.mark.slow
CLAIMS = (
    "arms={only: {}}",
    "claims.match={hypothesis: The kinds differ., detectors: [loss], "
    "contrast: {only/own: 1, only/fictional: -1}}",
    "claims.seeds={hypothesis: Seeds agree., detectors: [loss], spread: only}",
)

FEWER = ("analysis.dataset_detectors=[]", "analysis.task_accuracy=false")


def test_claims_are_answered_and_then_fixed(copied_run):
    result = copied_run.run(*CLAIMS, *FEWER, "name=claimed")
    finished = spikein.load_run(result.folder)
    rows = {row["claim"]: row for row in finished.table("claims").to_pylist()}
    aucs = {
        row["dataset"]: row["value"]
        for row in finished.metrics.to_pylist()
        if (row["model"], row["detector"], row["copies"]) == ("contaminated", "loss", "all")
        and (row["selection"], row["metric"], row["variant"]) == ("default", "auc", "all")
    }
    assert rows["match"]["value"] == pytest.approx(aucs["own"] - aucs["fictional"])
    for row in rows.values():
        assert (row["verdict"], row["note"]) == ("not answered", "fewer than 3 seeds: 1")
        assert row["n_seeds"] == 1
    digest = json.loads((result.folder / "run.json").read_text())["claims"]
    page = result.report.read_text(encoding="utf-8")
    assert digest[:12] in page
    assert "The kinds differ." in page
    assert MEASURES["deviation"] in page
    # Before anything is built.
    with pytest.raises(InputError, match="claims changed after the run started: digest"):
        copied_run.run(*CLAIMS, "name=claimed", "claims.match.margin=0.2", "train.lr=2e-2")
    for changed, name in (
        ("seeds=[0, 1]", "seeds"),
        ("analysis.confidence=0.5", "analysis.confidence"),
        ("detect.tune_share=0.1", "detect.tune_share"),
        ("arms={only: {}, other: {train.lr: 2e-2}}", "arms.only"),
    ):
        with pytest.raises(InputError, match=rf"design of the claims changed .*changed: {name}"):
            copied_run.run(*CLAIMS, "name=claimed", changed)
    with pytest.raises(InputError, match="added: match, seeds"):
        copied_run.run(*CLAIMS)


def test_design_of_claims_is_that_of_the_experiment(tmp_path):
    write_tiny(tmp_path)
    arms = "arms={short: {}, long: {corpus.tokens: 80_000}}"
    claim = "claims.long={hypothesis: h, detectors: [loss], contrast: {long: 1, short: -1}}"
    changed = ("seeds=[4, 2]", "analysis.confidence=0.9", "detect.tune_share=0.5")
    design = claims_design(graph_of(tmp_path, *LIGHT, arms, claim, *changed))
    assert (
        json.loads(json.dumps(design))
        == design
        == {
            "seeds": [2, 4],
            "analysis.confidence": 0.9,
            "analysis.max_unscored": 0.1,
            "analysis.zero_copies": "apart",
            "detect.tune_share": 0.5,
            "arms.short": {"corpus.tokens": "40000"},
            "arms.long": {"corpus.tokens": "80000"},
        }
    )


def test_claims_change_no_training_and_no_score(tmp_path):
    write_tiny(tmp_path)
    arms = "arms={short: {}, long: {corpus.tokens: 80_000}}"
    effect = (
        "claims.unique={hypothesis: h, detectors: [loss], "
        "effect: {of: unique, columns: [unique], arms: [short, long]}}"
    )
    with_claims, without = (graph_of(tmp_path, *LIGHT, arms, *claims) for claims in ((effect,), ()))
    changed = {*(s.digest for s in with_claims.graph.steps)} - {
        *(s.digest for s in without.graph.steps)
    }
    assert changed == {with_claims.results.digest}
    settings = with_claims.results.settings["claims"]
    assert settings["arms"] == {
        "short": {"corpus.tokens": "40000"},
        "long": {"corpus.tokens": "80000"},
    }
    columns = settings["design"]
    assert columns["long"]["unique"] - columns["short"]["unique"] == pytest.approx(1)
    assert "claims" not in without.results.settings
