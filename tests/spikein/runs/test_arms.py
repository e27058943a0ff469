"""A run of named arms that form no product: its axes, its comparisons and its record."""

import pytest

import spikein
from tests.spikein.tiny import LIGHT, run, write_tiny

pytestmark = pytest.mark.slow
ARMS = "arms={plain: {train.epochs: 1}, long: {corpus.tokens: 60_000}, fixed: {copies: {fixed: 2}}}"


def test_a_run_of_named_arms_compares_those_that_differ_in_one_axis(tmp_path):
    write_tiny(tmp_path)
    result = run(tmp_path, *LIGHT, ARMS)
    finished = spikein.load_run(result.folder)
    # All arms have one epoch, so epochs are not an axis.
    assert finished.axes == ("corpus.tokens", "copies")
    plain, long, fixed = ("40000", "poisson=2"), ("60000", "poisson=2"), ("40000", "fixed=2")
    arms = [
        (row["corpus.tokens"], row["sweep.copies"])
        for row in finished.models.to_pylist()
        if row["role"] == "contaminated"
    ]
    assert arms == [plain, long, fixed]
    contrasts = {
        (row["factor"], row["versus"], row["level"])
        for row in finished.factors.to_pylist()
        if row["kind"] == "contrast"
    }
    assert contrasts == {
        ("corpus.tokens", "40000", "60000"),
        ("copies", "poisson=2", "fixed=2"),
    }
    page = result.report.read_text(encoding="utf-8")
    assert "60,000 tokens" in page
    assert all(page.count(f">{name}<") > 1 for name in ("plain", "long", "fixed"))
    again = spikein.plan(result.folder / "experiment.yaml", store=tmp_path / "store")
    assert again.arms == 3
    assert all(row.stored for row in again.rows)
