"""A run with claims: fixed when it starts, answered when it is finished."""

import json

import pytest

import spikein
from analysis.page.sections.claims import MEASURES
from inject.errors import InputError
from tests.spikein.tiny import LIGHT, graph_of, write_tiny

pytestmark = pytest.mark.slow
CLAIMS = (
    "arms={only: {}}",
    "claims.match={hypothesis: The kinds differ., detectors: [loss], "
    "contrast: {only/own: 1, only/fictional: -1}}",
    "claims.seeds={hypothesis: Seeds agree., detectors: [loss], spread: only}",
)


def test_claims_are_answered_and_then_fixed(copied_run):
    result = copied_run.run(*CLAIMS, "name=claimed")
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
    with pytest.raises(InputError, match="added: match, seeds"):
        copied_run.run(*CLAIMS)


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
