"""`spikein plan --power`: from assumptions, from a finished run, and refusals."""

from types import SimpleNamespace

import pytest

from analysis.factors.power import difference_power
from inject.errors import InputError
from spikein.api import power as module
from spikein.api.power import power
from tests.command_line import invoke


def test_the_table_is_printed():
    result = invoke(
        "plan", "quickstart", "--power", "--assume", "auc=0.7", "--assume", "delta=0.1", code=0
    )
    assert "power: difference 0.1" in result.output
    assert "Nothing was run" in result.output
    assert "as given" in result.output


def test_power_matches_the_experiment_and_grows_with_members():
    result = power("quickstart-full", assume=["delta=0.1"])
    assert result.members == 150
    # A quarter chooses settings, and some of Poisson's members have no copy.
    assert result.tested < 0.75 * result.members
    row = next(candidate for candidate in result.rows if candidate.seeds == 5)
    expected = difference_power(0.1, result.tested, 5, result.assumed)
    assert row.difference_power == pytest.approx(expected)
    many = power("quickstart-full", overrides={"contaminants.0.members": 600}, assume=["delta=0.1"])
    assert many.rows[0].auc_power > result.rows[0].auc_power


def test_bad_assumptions_are_refused():
    for assumed, message in (
        (["delt=0.1"], "Did you mean 'delta'"),
        (["auc=1.2"], "auc: is the number 1.2"),
        (["auc=0.9", "delta=0.2"], "is not an AUC"),
    ):
        with pytest.raises(InputError, match=message):
            power("quickstart", assume=assumed)


def test_a_finished_run_gives_its_variances(monkeypatch):
    rows = [
        {"kind": "variance", "detector": "loss", "term": term, "value": value}
        for term, values in {
            "design_effect": (1.0, 2.0, 3.0),
            "seed_deviation": (0.01, 0.02),
            "correlation": (0.7,),
        }.items()
        for value in values
    ] + [{"kind": "variance", "detector": "zlib", "term": "design_effect", "value": 99.0}]
    run = SimpleNamespace(metrics=None, axes=(), factors=SimpleNamespace(to_pylist=lambda: rows))
    best = SimpleNamespace(detector="loss", cell=SimpleNamespace(value=0.66))
    monkeypatch.setattr(module, "load_run", lambda name, runs: run)
    monkeypatch.setattr(module, "split_by_cohort", lambda metrics, axes: [])
    monkeypatch.setattr(module, "find_headline", lambda tables: best)
    result = power("quickstart", from_run="earlier", assume=["correlation=0.4"])
    assert result.assumed.design_effect == 2.0
    assert result.assumed.seed_deviation == pytest.approx(0.015)
    assert result.assumed.auc == 0.66
    assert result.assumed.correlation == 0.4
    assert result.sources["design_effect"] == "the run earlier"
    assert result.sources["correlation"] == "as given"
